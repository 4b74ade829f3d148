"""Requests for transcription and speech in OpenAI's wire format."""

import secrets
from typing import Any

from app.domain.models.protocol import Target

_DEFAULT_VOICE = "alloy"
# Providers tell the format of a recording by the file's name.
EXTENSIONS = {"audio/wav": "wav", "audio/mpeg": "mp3", "audio/webm": "webm"}


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
