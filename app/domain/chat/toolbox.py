"""What an agent can do besides talking. Tools, sub-agents and searches each bring a box."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from app.domain.chat.steps import CallStatus, ToolResult, ToolUse
from app.domain.models.protocol import Function

Tell = Callable[[ToolUse | ToolResult], None]


class Offer(msgspec.Struct, frozen=True):
    """One thing that the model may call, and what people know it as.

    `repeatable`: nothing bad comes of running the same call twice, so it may run again when a
    worker died in the middle of it.
    """

    function: Function
    tool: str
    tool_id: str | None
    repeatable: bool


class Outcome(msgspec.Struct, frozen=True):
    output: Any
    status: CallStatus = "completed"


class ToolBox(Protocol):
    @property
    def offers(self) -> list[Offer]: ...

    async def run(self, offer: Offer, call_id: str, given: dict[str, Any], tell: Tell) -> Outcome:
        """Do it. `tell` lets the turn know of steps within; a problem is an outcome or raised."""
        ...
