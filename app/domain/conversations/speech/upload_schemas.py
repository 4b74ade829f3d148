"""The multipart body of a recording; only the web tier imports the class of uploads."""

from typing import Annotated

import msgspec
from litestar.datastructures import UploadFile
from msgspec import Meta

from app.domain.conversations.embed.schemas import SessionId
from app.kit import validation

_ID_OR_EMPTY = r"^(?![\s\S]*\n)[A-Za-z0-9_]*$"
validation.describe_pattern(_ID_OR_EMPTY, "must be the id of a conversation")


class AudioQuestion(msgspec.Struct):
    """A WAV, MP3 or WebM recording of at most 25 MB and 10 minutes."""

    audio: UploadFile
    conversation_id: (
        Annotated[
            str,
            Meta(
                max_length=64,
                pattern=_ID_OR_EMPTY,
                description="Continues one of your conversations; without it, a new one begins",
            ),
        ]
        | None
    ) = None


class VisitorRecording(msgspec.Struct):
    """A WAV, MP3 or WebM recording of at most 25 MB and 10 minutes."""

    audio: UploadFile
    session_id: SessionId
