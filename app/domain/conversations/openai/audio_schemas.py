"""OpenAI's wire format of speech and transcription."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.conversations.speech.api import AudioFormat
from app.domain.conversations.speech.schemas import SpokenText, VoiceName

AudioModel = Annotated[str, Meta(max_length=250)]


class CreateSpeech(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "model": "openai/tts-1",
        "input": "The shop opens at 9 in the morning.",
        "voice": "alloy",
    }

    model: AudioModel
    input: SpokenText
    voice: VoiceName | None = None
    response_format: AudioFormat | None = None
    speed: Annotated[float, Meta(ge=0.25, le=4)] | None = None
    instructions: Annotated[str, Meta(max_length=4096)] | None = None
    stream_format: Annotated[
        Literal["audio", "sse"] | None, Meta(description="`sse` is refused with 422")
    ] = None


class AudioUsage(msgspec.Struct, omit_defaults=True):
    """Tokens where the model reports them, or else the length of the recording."""

    type: Literal["tokens", "duration"]
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class TranscriptionReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Only `verbose_json` has the fields after the text, except `usage`; segments and words are
    those that a provider's model returns.
    """

    example: ClassVar[dict[str, Any]] = {
        "text": "When does the shop open?",
        "usage": {"type": "duration", "seconds": 1.8},
    }

    text: str
    task: str | None = None
    language: str | None = None
    duration: float | None = None
    segments: list[Any] | None = None
    words: list[Any] | None = None
    usage: AudioUsage | None = None
