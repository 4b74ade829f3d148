"""A turn as server-sent events, in the interface's own words."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from app.domain.chat.steps import Delta, Finished, Started, Step, ToolResult, ToolUse
from app.http import errors, sse

_encode = msgspec.json.Encoder().encode


async def spoken(
    steps: AsyncGenerator[Step, None], *, public: bool = False
) -> AsyncGenerator[bytes, None]:
    """Once the stream has begun, a failure is its last event. In public, what goes into tools and
    comes out of them is nobody's business.
    """
    try:
        async with aclosing(steps):
            async for step in steps:
                yield _event(_discreet(step) if public else step)
    except Exception as error:  # noqa: BLE001  # told like any other failure of a request
        yield sse.event("error", _encode(told(error)))


def told(error: Exception) -> errors.ErrorBody:
    known = errors.to_api_error(error)
    if known.status >= errors.HTTP_SERVER_ERROR:
        errors.report(known, error, "a stream")
    return errors.ErrorBody(known.code, known.message, known.details)


def _event(step: Step) -> bytes:
    match step:
        case Delta():
            return b"event: content_delta\ndata: %s\n\n" % _encode(step)
        case Started():
            return sse.event("message_start", _encode(step))
        case ToolUse():
            return sse.event("tool_use", _encode(_without(step, "function")))
        case ToolResult():
            return sse.event("tool_result", _encode(step))
        case Finished(reply):
            done = {
                "message_id": reply.message.id,
                "usage": reply.usage,
                "sources": reply.sources,
            }
            return sse.event("message_stop", _encode(done))


def _discreet(step: Step) -> Step:
    match step:
        case ToolUse():
            return ToolUse(step.id, step.tool, None, {}, step.parent_id)
        case ToolResult():
            return ToolResult(
                step.id, step.tool, None, None, step.status, step.execution_time_ms, step.parent_id
            )
    return step


def _without(step: msgspec.Struct, name: str) -> dict[str, Any]:
    fields = msgspec.structs.asdict(step)
    del fields[name]
    return fields
