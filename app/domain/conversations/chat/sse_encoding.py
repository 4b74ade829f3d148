"""A turn as server-sent events, in the interface's own format."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec

from app.kit import error_mapping, sse
from app.kit.error_mapping import ErrorBody

from .stream_events import (
    ClientCall,
    LoopEnded,
    ModelAccepted,
    Progress,
    QueueMoved,
    StreamEvent,
    TextDelta,
    ToolResult,
    ToolUse,
    TurnFinished,
    TurnStarted,
)
from .stream_schemas import MessageStop, ToolResultEvent, ToolUseEvent

# The events of a stream, in the order in which they come.
EVENTS: Final[dict[str, Any]] = {
    "message_start": TurnStarted,
    "queue": QueueMoved,
    "progress": Progress,
    "tool_use": ToolUseEvent,
    "tool_result": ToolResultEvent,
    "content_delta": TextDelta,
    "message_stop": MessageStop,
    "error": ErrorBody,
}
_NAMES: Final = {kind: name for name, kind in EVENTS.items()}
_encode = msgspec.json.Encoder().encode


async def encode_stream(
    events: AsyncGenerator[StreamEvent, None],
    *,
    is_public: bool = False,
    shows_costs: bool = False,
) -> AsyncGenerator[bytes, None]:
    """Once the stream has begun, a failure is its last event. Visitors do not see the input and
    output of tools.
    """
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, TurnFinished) and not shows_costs:
                    yield _to_sse(_without_cost(event))
                elif not isinstance(event, ModelAccepted | ClientCall | LoopEnded):
                    yield _to_sse(_without_content(event) if is_public else event)
    except Exception as error:  # noqa: BLE001  # becomes the stream's last event
        yield sse.event("error", _encode(error_body(error)))


def error_body(error: Exception) -> ErrorBody:
    api_error = error_mapping.to_api_error(error)
    if api_error.status >= error_mapping.HTTP_SERVER_ERROR:
        error_mapping.report(api_error, error, "a stream")
    return ErrorBody(api_error.code, api_error.message, api_error.details)


_Shown = TurnStarted | QueueMoved | Progress | TextDelta | ToolUse | ToolResult | TurnFinished


def _to_sse(event: _Shown) -> bytes:
    if isinstance(event, TextDelta):
        return b"event: content_delta\ndata: %s\n\n" % _encode(event)
    data = _to_data(event)
    return sse.event(_NAMES[type(data)], _encode(data))


def _to_data(event: _Shown) -> msgspec.Struct:
    match event:
        case ToolUse():
            return ToolUseEvent(event.id, event.tool, event.tool_id, event.input, event.parent_id)
        case ToolResult(id=call_id, tool=tool, tool_id=tool_id, output=output, status=status):
            # The reply has the sources of all calls.
            took, parent_id = event.execution_time_ms, event.parent_id
            return ToolResultEvent(call_id, tool, tool_id, output, status, took, parent_id)
        case TurnFinished(reply, figures):
            return MessageStop(
                reply.message.id,
                reply.usage,
                reply.sources,
                reply.finish_reason,
                reply.is_refusal,
                figures.response_time_ms,
                figures.first_token_ms,
                figures.cost_usd,
            )
    return event


def _without_cost(event: TurnFinished) -> TurnFinished:
    figures = msgspec.structs.replace(event.figures, cost_usd=None)
    return TurnFinished(event.reply, figures)


def _without_content(event: _Shown) -> _Shown:
    match event:
        case ToolUse():
            return ToolUse(event.id, event.tool, None, {}, event.parent_id)
        case ToolResult(id=call_id, tool=tool, status=status):
            took, parent_id = event.execution_time_ms, event.parent_id
            return ToolResult(call_id, tool, None, None, status, took, parent_id)
    return event
