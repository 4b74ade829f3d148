from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.conversations.chat.schemas import ChatReply
from app.domain.conversations.embed.schemas import PublicReply
from app.kit import validation
from app.kit.validation import NOT_BLANK

_VOICE_PATTERN = r"^(?![\s\S]*\n)[A-Za-z0-9][A-Za-z0-9_+-]*$"
validation.describe_pattern(_VOICE_PATTERN, "must be the name of a voice, like en-us or alloy")

SpokenText = Annotated[str, Meta(min_length=1, max_length=5000, pattern=NOT_BLANK)]
VoiceName = Annotated[
    str,
    Meta(
        max_length=64,
        pattern=_VOICE_PATTERN,
        description="A voice of the speech model, like `en-us` or `de` of the embedded one",
    ),
]


class AudioReply(ChatReply, kw_only=True):
    """The chat reply, and what was understood."""

    example: ClassVar[dict[str, Any]] = {
        **ChatReply.example,
        "transcript": "When does the shop open?",
    }

    transcript: str


class PublicAudioReply(PublicReply, kw_only=True):
    """The reply to a visitor, and what was understood."""

    example: ClassVar[dict[str, Any]] = {
        **PublicReply.example,
        "transcript": "When does the shop open?",
    }

    transcript: str


class SpeakText(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"text": "The shop opens at 9 in the morning."}

    text: SpokenText
    voice: VoiceName | None = None
