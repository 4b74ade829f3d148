"""A turn of a form's conversation as server-sent events: those of chat, and the progress."""

import re
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec

from app.domain.conversations.chat import api as chat
from app.kit import sse
from app.kit.error_mapping import ErrorBody

from . import conversations
from .conversation_schemas import FormMessageStop, FormProgress, FormTurn
from .conversations import Turn

EVENTS: Final[dict[str, Any]] = {
    "message_start": chat.TurnStarted,
    "content_delta": chat.TextDelta,
    "form_progress": FormProgress,
    "message_stop": FormMessageStop,
    "error": ErrorBody,
}
_NAMES: Final = {kind: name for name, kind in EVENTS.items()}
_PARTS = re.compile(r"\s*\S+|\s+")
_encode = msgspec.json.Encoder().encode


async def stream(turn: Turn) -> AsyncGenerator[bytes, None]:
    """A failure is the last event."""
    try:
        result = await conversations.take(turn)
    except Exception as error:  # noqa: BLE001  # becomes the stream's last event
        yield _to_sse(chat.error_body(error))
        return
    for event in _list_events(turn.conversation.id, result):
        yield _to_sse(event)


def _list_events(conversation_id: str, result: FormTurn) -> list[msgspec.Struct]:
    message = result.assistant_message
    progress = FormProgress(
        result.fields_completed,
        result.fields_total,
        result.form_completed,
        result.submission_id,
        message.field_id,
    )
    return [
        chat.TurnStarted(conversation_id, message.id),
        *map(chat.TextDelta, _PARTS.findall(message.content)),
        progress,
        FormMessageStop(message.id),
    ]


def _to_sse(event: msgspec.Struct) -> bytes:
    return sse.event(_NAMES[type(event)], _encode(event))
