"""What a model may call, whoever provides it."""

from typing import Any, Literal

import msgspec

from app.domain.models.service import Function

CallStatus = Literal["completed", "failed", "timeout"]


class ToolOffer(msgspec.Struct, frozen=True):
    """A function that the model may call, and the tool's name for people.

    `repeatable`: running the same call twice does no harm, so it may run again when a worker died
    in the middle of it.
    """

    function: Function
    tool: str
    tool_id: str | None
    repeatable: bool


class CallOutcome(msgspec.Struct, frozen=True):
    output: Any
    status: CallStatus = "completed"
