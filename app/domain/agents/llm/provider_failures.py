"""Builds the `ModelFailed` errors that both adapters raise."""

from typing import Any

from app.net.redaction import Redactor

from .errors import ModelFailed
from .protocol import Target

MAX_TOOL_CALLS = 64
_MAX_MESSAGE_CHARS = 500
_MASK = "***"
_MIN_CHARS = 4


def too_many_calls(target: Target) -> ModelFailed:
    """Calls are limited because each one costs a row and an event, whether it runs or not."""
    message = f"{target.model} called more than {MAX_TOOL_CALLS} tools at once"
    return ModelFailed(target.model, "broken", message)


def answer_too_long(target: Target) -> ModelFailed:
    return ModelFailed(target.model, "broken", f"{target.model}: the answer is too long")


def answer_incomplete(target: Target) -> ModelFailed:
    return ModelFailed(target.model, "broken", f"{target.model} broke off its answer")


def embeddings_missing(target: Target) -> ModelFailed:
    return ModelFailed(target.model, "broken", f"{target.model} left out embeddings")


def ranking_broken(target: Target) -> ModelFailed:
    message = f"{target.model} did not return one score for each passage"
    return ModelFailed(target.model, "broken", message)


def speech_not_mp3(target: Target) -> ModelFailed:
    return ModelFailed(target.model, "broken", f"{target.model} did not return an MP3 file")


def check_mp3(target: Target, content: bytes) -> bytes:
    """Returns the content if it starts as an MP3 file does: with a tag, or the bits of a frame."""
    is_frame = content[:1] == b"\xff" and content[1:2] >= b"\xe0"
    if not (is_frame or content.startswith(b"ID3")):
        raise speech_not_mp3(target)
    return content


def error_message(target: Target, body: Any, default: str = "the provider reports an error") -> str:
    """Returns the message in a provider's error body with its key masked, or the default."""
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message.strip():
        message = default
    return mask_key(target, f"{target.model}: {message}")


def mask_key(target: Target, text: str) -> str:
    """Replaces the provider's key, removes NUL characters and shortens the text."""
    if target.api_key:
        # The redactor leaves out very short keys.
        text = text.replace(target.api_key, _MASK) if len(target.api_key) < _MIN_CHARS else text
        text = Redactor([target.api_key], _MASK).text(text, _MAX_MESSAGE_CHARS)
    return text.replace("\0", "")[:_MAX_MESSAGE_CHARS]
