"""A turn as server-sent events, in the interface's own format."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from app.kit import error_mapping, sse
from app.kit.error_mapping import ErrorBody

from .stream_events import (
    Progress,
    QueueMoved,
    StreamEvent,
    TextDelta,
    ToolResult,
    ToolUse,
    TurnFinished,
    TurnStarted,
)

_encode = msgspec.json.Encoder().encode


async def encode_stream(
    events: AsyncGenerator[StreamEvent, None], *, is_public: bool = False
) -> AsyncGenerator[bytes, None]:
    """Once the stream has begun, a failure is its last event. Visitors do not see the input and
    output of tools.
    """
    try:
        async with aclosing(events):
            async for event in events:
                yield _to_sse(_without_content(event) if is_public else event)
    except Exception as error:  # noqa: BLE001  # becomes the stream's last event
        yield sse.event("error", _encode(error_body(error)))


def error_body(error: Exception) -> ErrorBody:
    api_error = error_mapping.to_api_error(error)
    if api_error.status >= error_mapping.HTTP_SERVER_ERROR:
        error_mapping.report(api_error, error, "a stream")
    return ErrorBody(api_error.code, api_error.message, api_error.details)


def _to_sse(event: StreamEvent) -> bytes:
    match event:
        case TextDelta():
            return b"event: content_delta\ndata: %s\n\n" % _encode(event)
        case TurnStarted():
            return sse.event("message_start", _encode(event))
        case QueueMoved():
            return sse.event("queue", _encode(event))
        case Progress():
            return sse.event("progress", _encode(event))
        case ToolUse():
            return sse.event("tool_use", _encode(_without_field(event, "function")))
        case ToolResult():
            # The reply has the sources of all calls.
            return sse.event("tool_result", _encode(_without_field(event, "sources")))
        case TurnFinished(reply):
            stop = {
                "message_id": reply.message.id,
                "usage": reply.usage,
                "sources": reply.sources,
            }
            return sse.event("message_stop", _encode(stop))


def _without_content(event: StreamEvent) -> StreamEvent:
    match event:
        case ToolUse():
            return ToolUse(event.id, event.tool, None, {}, event.parent_id)
        case ToolResult(id=call_id, tool=tool, status=status):
            took, parent_id = event.execution_time_ms, event.parent_id
            return ToolResult(call_id, tool, None, None, status, took, parent_id)
    return event


def _without_field(event: msgspec.Struct, name: str) -> dict[str, Any]:
    fields = msgspec.structs.asdict(event)
    del fields[name]
    return fields
