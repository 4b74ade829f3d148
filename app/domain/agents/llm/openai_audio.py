"""Requests for transcription and speech in OpenAI's wire format."""

import secrets
from typing import Any

import msgspec

from app.kit.texts import storable

from .openai_completions import decode
from .protocol import Target, Transcription, UsedTokens

_DEFAULT_VOICE = "alloy"
# Providers tell the format of a recording by the file's name.
EXTENSIONS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/webm": "webm"}


class _Transcription(msgspec.Struct):
    text: str
    # Any, because a transcription is not refused for figures that cannot be read.
    usage: Any = None


class _UsedAudio(msgspec.Struct):
    """A model counts tokens or seconds."""

    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float | None = None


_decoder = msgspec.json.Decoder(_Transcription)
_MAX_SECONDS = 86_400.0


def read_transcription(target: Target, raw: bytes) -> Transcription:
    """Raises ModelFailed for an answer without a text."""
    answer = decode(_decoder, target, raw)
    text = storable(answer.text)
    try:
        usage = msgspec.convert(answer.usage, _UsedAudio)
    except msgspec.ValidationError:
        return Transcription(text)
    used = UsedTokens.from_provider(usage.input_tokens, usage.output_tokens)
    seconds = None if usage.seconds is None else min(max(0.0, usage.seconds), _MAX_SECONDS)
    return Transcription(text, used if usage.input_tokens else None, seconds)


def encode_transcription(target: Target, audio: bytes, media_type: str) -> tuple[bytes, str]:
    """Returns a multipart body and its content type."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\n'
        f"{target.name_at_provider}\r\n"
        f'--{boundary}\r\ncontent-disposition: form-data; name="response_format"\r\n\r\njson\r\n'
        f'--{boundary}\r\ncontent-disposition: form-data; name="file"; '
        f'filename="audio.{EXTENSIONS[media_type]}"\r\ncontent-type: {media_type}\r\n\r\n'
    )
    body = b"".join([head.encode(), audio, f"\r\n--{boundary}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={boundary}"


def speech_body(target: Target, text: str, voice: str | None) -> dict[str, Any]:
    return {
        "model": target.name_at_provider,
        "input": text,
        "voice": voice or _DEFAULT_VOICE,
        "response_format": "mp3",
    }
