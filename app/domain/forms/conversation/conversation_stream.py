"""A turn of a form's conversation as server-sent events: those of chat, and the progress."""

import re
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from app.domain.conversations.chat import api as chat
from app.kit import sse

from . import conversations
from .conversation_schemas import FormTurn
from .conversations import Turn

_PARTS = re.compile(r"\s*\S+|\s+")
_encode = msgspec.json.Encoder().encode


async def stream(turn: Turn) -> AsyncGenerator[bytes, None]:
    """A failure is the last event."""
    try:
        result = await conversations.take(turn)
    except Exception as error:  # noqa: BLE001  # becomes the stream's last event
        yield sse.event("error", _encode(chat.error_body(error)))
        return
    for event in _list_events(turn.conversation.id, result):
        yield event


def _list_events(conversation_id: str, result: FormTurn) -> list[bytes]:
    message = result.assistant_message
    start = {"conversation_id": conversation_id, "message_id": message.id}
    deltas = _PARTS.findall(message.content)
    progress: dict[str, Any] = {
        "fields_completed": result.fields_completed,
        "fields_total": result.fields_total,
        "form_completed": result.form_completed,
        "submission_id": result.submission_id,
        "field_id": message.field_id,
    }
    return [
        sse.event("message_start", _encode(start)),
        *(sse.event("content_delta", _encode({"delta": delta})) for delta in deltas),
        sse.event("form_progress", _encode(progress)),
        sse.event("message_stop", _encode({"message_id": message.id})),
    ]
