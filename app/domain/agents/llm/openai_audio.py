"""Requests for transcription and speech in OpenAI's wire format."""

import secrets
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.kit.texts import storable

from .openai_completions import decode
from .protocol import SpeechOptions, Target, Transcription, TranscriptionOptions, UsedTokens

_DEFAULT_VOICE = "alloy"
# Providers tell the format of a recording by the file's name.
EXTENSIONS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/webm": "webm"}


class _Transcription(msgspec.Struct):
    text: str
    # Any, because a transcription is not refused for figures that cannot be read.
    usage: Any = None
    language: Any = None
    duration: Any = None
    segments: Any = None
    words: Any = None


class _UsedAudio(msgspec.Struct):
    """A model counts tokens or seconds."""

    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float | None = None


_decoder = msgspec.json.Decoder(_Transcription)
_MAX_SECONDS = 86_400.0
_MAX_LANGUAGE_CHARS = 64
_Parts = Annotated[list[dict[str, Any]], Meta(max_length=100_000)]


def read_transcription(target: Target, raw: bytes) -> Transcription:
    """Raises ModelFailed for an answer without a text."""
    answer = decode(_decoder, target, raw)
    usage = _convert(answer.usage, _UsedAudio) or _UsedAudio()
    used = UsedTokens.from_provider(usage.input_tokens, usage.output_tokens)
    seconds = _convert(answer.duration, float) if usage.seconds is None else usage.seconds
    language = answer.language
    return Transcription(
        storable(answer.text),
        used if usage.input_tokens else None,
        None if seconds is None else min(max(0.0, seconds), _MAX_SECONDS),
        storable(language)[:_MAX_LANGUAGE_CHARS] if isinstance(language, str) else None,
        _convert(answer.segments, _Parts),
        _convert(answer.words, _Parts),
    )


def _convert(value: Any, kind: Any) -> Any:
    """Returns None for a value of another form. Some providers write numbers as strings."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind, strict=kind is not float)
    except msgspec.ValidationError:
        return None


def encode_transcription(
    target: Target, audio: bytes, media_type: str, options: TranscriptionOptions
) -> tuple[bytes, str]:
    """Returns a multipart body and its content type."""
    boundary = secrets.token_hex(16)
    fields = {
        "model": target.name_at_provider,
        "response_format": options.response_format,
        **options.fields(),
    }
    granularities = fields.pop("timestamp_granularities", [])
    parts = [*fields.items(), *(("timestamp_granularities[]", item) for item in granularities)]
    texts = "".join(
        f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in parts
    )
    head = (
        f'{texts}--{boundary}\r\ncontent-disposition: form-data; name="file"; '
        f'filename="audio.{EXTENSIONS[media_type]}"\r\ncontent-type: {media_type}\r\n\r\n'
    )
    body = b"".join([head.encode(), audio, f"\r\n--{boundary}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={boundary}"


def speech_body(
    target: Target, text: str, voice: str | None, options: SpeechOptions
) -> dict[str, Any]:
    return {
        "model": target.name_at_provider,
        "input": text,
        "voice": voice or _DEFAULT_VOICE,
        "response_format": "mp3",
        **options.fields(),
    }
