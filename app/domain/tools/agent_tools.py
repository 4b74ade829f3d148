"""Attached tools as something that a model can call."""

import re
from itertools import count
from typing import Any

from app.domain.agents.service import AgentRuntime, AttachedToolInfo
from app.domain.models.service import Function
from app.domain.tools import executions
from app.domain.tools.configs import TOOL_TYPES
from app.domain.tools.offers import CallOutcome, ToolOffer
from app.services import Services
from db.fast import Row

_NOT_NAME = re.compile(r"[^A-Za-z0-9_]+")
_NAME_CHARS = 60
_STORED_CHARS = 32_768


class AgentTools:
    """The tools of one agent. Each call is an execution that is known by the call's id: after a
    crash it is not run again.
    """

    def __init__(self, services: Services, runtime: AgentRuntime) -> None:
        self._services = services
        self._tenant_id = runtime.tenant_id
        self._agent_id = runtime.agent_id
        self.offers = _offers(runtime.tools)

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], _report: object
    ) -> CallOutcome:
        row = await executions.perform(
            self._services,
            self._tenant_id,
            offer.tool_id or "",
            arguments,
            agent_id=self._agent_id,
            call_id=call_id,
        )
        output, error = _shortened(row), executions.failure_of(row)
        if error is None:
            return CallOutcome(output)
        failure: dict[str, Any] = {"error": error.message, "code": error.code}
        if output is not None:
            failure["output"] = output
        return CallOutcome(failure, row["status"])


def _shortened(row: Row) -> Any:
    """The output as a conversation stores it; the execution has all of it."""
    text = row["output"]
    if text is None or len(text) <= _STORED_CHARS:
        return executions.output_of(row)
    return {"truncated": True, "execution_id": row["id"], "beginning": text[:_STORED_CHARS]}


def _offers(tools: list[AttachedToolInfo]) -> list[ToolOffer]:
    offers: list[ToolOffer] = []
    taken: set[str] = set()
    for tool in tools:
        plain = _NOT_NAME.sub("_", tool.slug).strip("_")[:_NAME_CHARS] or "tool"
        # Names with that prefix belong to sub-agents.
        plain = plain if not plain.startswith("delegate_to_") else f"tool_{plain}"[:_NAME_CHARS]
        name = next(
            name
            for number in count(1)
            if (name := plain if number == 1 else f"{plain[:_NAME_CHARS]}_{number}") not in taken
        )
        taken.add(name)
        # Providers refuse parameters without a type.
        parameters = {
            "type": "object",
            **(tool.input_schema or TOOL_TYPES[tool.tool_type].parameters),
        }
        function = Function(name, tool.description or tool.name, parameters)
        offers.append(ToolOffer(function, tool.name, tool.id, repeatable=True))
    return offers
