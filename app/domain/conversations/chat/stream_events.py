"""What happens in a turn, in order. Every way of chatting is made from these."""

from typing import Any, Literal

import msgspec

from app.domain.agents.tools.api import CallStatus
from app.domain.sources import SourceView

from .schemas import ChatReply


class TurnStarted(msgspec.Struct, frozen=True):
    conversation_id: str
    message_id: str


class QueueMoved(msgspec.Struct, frozen=True):
    """The turn waits for the local model: at position 1 it is next, at 0 its turn has come."""

    position: int


class Progress(msgspec.Struct, frozen=True):
    """The local model has worked for this many seconds, and has not said anything yet."""

    seconds: int
    stage: Literal["thinking"] = "thinking"


class TextDelta(msgspec.Struct, frozen=True):
    delta: str


class ToolUse(msgspec.Struct, frozen=True):
    """`parent_id` is the call within which a sub-agent made this one; `function` the tool's name
    for the model.
    """

    id: str
    tool: str
    tool_id: str | None
    input: Any
    parent_id: str | None = None
    function: str = ""


class ToolResult(msgspec.Struct, frozen=True):
    id: str
    tool: str
    tool_id: str | None
    output: Any
    status: CallStatus
    execution_time_ms: int
    parent_id: str | None = None
    sources: tuple[SourceView, ...] = ()


class TurnFinished(msgspec.Struct, frozen=True):
    reply: ChatReply


LoopEvent = QueueMoved | Progress | TextDelta | ToolUse | ToolResult
StreamEvent = TurnStarted | LoopEvent | TurnFinished
