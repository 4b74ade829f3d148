"""What happens in a turn, in order. Every way of chatting is made from these."""

from typing import Any, ClassVar, Literal

import msgspec

from app.domain.agents.llm.api import FinishReason
from app.domain.agents.tools.api import CallStatus
from app.domain.sources import SourceView

from .schemas import ChatReply


class TurnStarted(msgspec.Struct, frozen=True):
    example: ClassVar[dict[str, Any]] = {
        "conversation_id": "cnv_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "message_id": "msg_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    conversation_id: str
    message_id: str


class ModelAccepted(msgspec.Struct, frozen=True):
    """A model has begun to answer."""


class QueueMoved(msgspec.Struct, frozen=True):
    """The turn waits for the local model: at position 1 it is next, at 0 its turn has come."""

    example: ClassVar[dict[str, Any]] = {"position": 1}

    position: int


class Progress(msgspec.Struct, frozen=True):
    """The local model has worked for this many seconds, and has not said anything yet."""

    example: ClassVar[dict[str, Any]] = {"seconds": 4, "stage": "thinking"}

    seconds: int
    stage: Literal["thinking"] = "thinking"


class TextDelta(msgspec.Struct, frozen=True):
    """The next part of the text."""

    example: ClassVar[dict[str, Any]] = {"delta": "The shop opens"}

    delta: str


class RefusalDelta(TextDelta, frozen=True):
    """The next part of a text in which the model refuses to answer."""


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


class ClientCall(msgspec.Struct, frozen=True):
    """A call of a function that the client runs itself; `arguments` is the model's JSON text."""

    id: str
    name: str
    arguments: str


class LoopEnded(msgspec.Struct, frozen=True):
    finish_reason: FinishReason


class TurnFigures(msgspec.Struct, frozen=True):
    response_time_ms: int = 0
    first_token_ms: int | None = None
    cost_usd: float | None = None


class TurnFinished(msgspec.Struct, frozen=True):
    reply: ChatReply
    figures: TurnFigures = TurnFigures()


LoopEvent = (
    ModelAccepted
    | QueueMoved
    | Progress
    | TextDelta
    | ToolUse
    | ToolResult
    | ClientCall
    | LoopEnded
)
StreamEvent = TurnStarted | LoopEvent | TurnFinished
