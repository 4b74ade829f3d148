"""The data of server-sent events that show a part of what happens in a turn."""

from typing import Any, ClassVar

import msgspec

from app.domain.agents.tools.api import CallStatus
from app.domain.sources import SourceView

from .schemas import IsRefusal, ReplyEnd, TokenUsage
from .seen_schemas import FirstToken, ResponseTime

_TOOL_ID = "tool_01k9x3m7e8c0v2q4r6t8w0y2a4"


class ToolUseEvent(msgspec.Struct):
    """An agent calls a tool. `parent_id` is the call within which a sub-agent made this one. To
    visitors, `tool_id` is null and `input` is empty.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": "call_1",
        "tool": "Opening hours",
        "tool_id": _TOOL_ID,
        "input": {"day": "monday"},
        "parent_id": None,
    }

    id: str
    tool: str
    tool_id: str | None
    input: Any
    parent_id: str | None


class ToolResultEvent(msgspec.Struct):
    """A call of a tool has ended. To visitors, `tool_id` and `output` are null."""

    example: ClassVar[dict[str, Any]] = {
        "id": "call_1",
        "tool": "Opening hours",
        "tool_id": _TOOL_ID,
        "output": {"opens": "9:00"},
        "status": "completed",
        "execution_time_ms": 120,
        "parent_id": None,
    }

    id: str
    tool: str
    tool_id: str | None
    output: Any
    status: CallStatus
    execution_time_ms: int
    parent_id: str | None


class MessageStop(msgspec.Struct):
    """The answer is complete and stored. `cost_usd` is for callers with usage:read; it is null for
    others, and 0 for a model whose price is not known.
    """

    example: ClassVar[dict[str, Any]] = {
        "message_id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "usage": {"prompt_tokens": 42, "completion_tokens": 10, "total_tokens": 52},
        "sources": [SourceView.example],
        "finish_reason": "stop",
        "response_time_ms": 812,
        "first_token_ms": 240,
        "cost_usd": 0.000012,
    }

    message_id: str
    usage: TokenUsage
    sources: list[SourceView]
    finish_reason: ReplyEnd
    is_refusal: IsRefusal = False
    response_time_ms: ResponseTime = 0
    first_token_ms: FirstToken = None
    cost_usd: float | None = None
