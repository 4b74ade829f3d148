"""What an agent can do besides talking. Tools, sub-agents and searches each are a toolbox."""

from collections.abc import Callable
from typing import Any, Protocol

from app.domain.agents.tools.api import CallOutcome, ToolOffer

from .stream_events import ToolResult, ToolUse

Report = Callable[[ToolUse | ToolResult], None]


class Toolbox(Protocol):
    @property
    def offers(self) -> list[ToolOffer]: ...

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], report: Report
    ) -> CallOutcome:
        """Runs a call. `report` passes on the calls that it makes itself; a problem is an outcome
        or raised.
        """
        ...
