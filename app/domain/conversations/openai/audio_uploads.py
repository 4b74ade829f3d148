"""The multipart body of a transcription; only the web tier imports the class of uploads."""

from typing import Annotated, Literal

import msgspec
from litestar.datastructures import UploadFile
from msgspec import Meta

from .audio_schemas import AudioModel


class TranscriptionForm(msgspec.Struct, kw_only=True):
    """A WAV, MP3 or WebM recording of at most 25 MB and 10 minutes."""

    file: UploadFile
    model: AudioModel
    language: Annotated[str, Meta(max_length=64)] | None = None
    prompt: Annotated[str, Meta(max_length=4096)] | None = None
    response_format: Literal["json", "text", "verbose_json"] = "json"
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    stream: bool | None = None
    granularities: str | list[str] | None = msgspec.field(
        name="timestamp_granularities[]", default=None
    )
    include: str | list[str] | None = msgspec.field(name="include[]", default=None)
