"""The multipart body of a recording; only the web tier imports the class of uploads."""

from typing import Annotated

import msgspec
from litestar.datastructures import UploadFile
from msgspec import Meta


class AudioQuestion(msgspec.Struct):
    """A WAV, MP3 or WebM recording of at most 25 MB and 10 minutes."""

    audio: UploadFile
    conversation_id: (
        Annotated[
            str,
            Meta(
                max_length=64,
                description="Goes on with a conversation of yours; without it, a new one",
            ),
        ]
        | None
    ) = None
