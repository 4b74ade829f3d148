"""Functions that a model may call, and the outcome of a call."""

from typing import Any, Final, Literal

import msgspec

from app.domain.agents.llm.api import Function
from app.domain.sources import SourceView

# The function that searches the web, for agents that may; no tool of such an agent has its name.
WEB_SEARCH: Final = "web_search"

CallStatus = Literal["completed", "failed", "timeout"]


class ToolOffer(msgspec.Struct, frozen=True):
    """A function that the model may call. `tool` is the tool's name for people.

    `repeatable`: running the same call twice does no harm, so it may run again after a worker died
    during the call.
    """

    function: Function
    tool: str
    tool_id: str | None
    repeatable: bool


class CallOutcome(msgspec.Struct, frozen=True):
    output: Any
    status: CallStatus = "completed"
    # What the output was made from; shown with the reply.
    sources: tuple[SourceView, ...] = ()
