"""The tools of an agent as functions that a model can call."""

import re
from itertools import chain, count
from typing import Any

from app.domain.agents.definition.api import AgentRuntime, AttachedToolInfo
from app.domain.agents.llm.api import Function
from app.services import Services
from db.fast import Row

from . import executions
from .configs import TOOL_TYPES
from .offers import WEB_SEARCH, CallOutcome, ToolOffer

_NOT_NAME = re.compile(r"[^A-Za-z0-9_]+")
_MAX_NAME_CHARS = 60
_MAX_OUTPUT_CHARS = 32_768


class AgentTools:
    """The tools of one agent. Each call is an execution with the call's id, so that the same call
    does not run twice after a crash.
    """

    def __init__(self, services: Services, runtime: AgentRuntime) -> None:
        self._services = services
        self._tenant_id = runtime.tenant_id
        self._agent_id = runtime.agent_id
        used_names = set() if runtime.web_search is None else {WEB_SEARCH}
        self.offers = _build_offers(runtime.tools, used_names)

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], _report: object
    ) -> CallOutcome:
        row = await executions.run_and_wait(
            self._services,
            self._tenant_id,
            offer.tool_id or "",
            arguments,
            agent_id=self._agent_id,
            call_id=call_id,
        )
        output, error = _truncate_output(row), executions.build_failure(row)
        if error is None:
            return CallOutcome(output)
        failure: dict[str, Any] = {"error": error.message, "code": error.code}
        if output is not None:
            failure["output"] = output
        return CallOutcome(failure, row["status"])


def _truncate_output(row: Row) -> Any:
    """Returns the output as a conversation stores it. The execution has the whole output."""
    text = row["output"]
    if text is None or len(text) <= _MAX_OUTPUT_CHARS:
        return executions.decode_output(row)
    return {"truncated": True, "execution_id": row["id"], "beginning": text[:_MAX_OUTPUT_CHARS]}


def _build_offers(tools: list[AttachedToolInfo], used_names: set[str]) -> list[ToolOffer]:
    offers: list[ToolOffer] = []
    for tool in tools:
        name = _function_name(tool.slug, used_names)
        used_names.add(name)
        # Providers refuse parameters without a type.
        parameters = {
            "type": "object",
            **(tool.input_schema or TOOL_TYPES[tool.tool_type].parameters),
        }
        function = Function(name, tool.description or tool.name, parameters)
        offers.append(ToolOffer(function, tool.name, tool.id, repeatable=True))
    return offers


def _function_name(slug: str, used_names: set[str]) -> str:
    """Returns a valid function name for a slug that is not among `used_names`."""
    base = _NOT_NAME.sub("_", slug).strip("_")[:_MAX_NAME_CHARS] or "tool"
    if base.startswith("delegate_to_"):
        # Names with that prefix belong to sub-agents.
        base = f"tool_{base}"[:_MAX_NAME_CHARS]
    numbered = (f"{base}_{number}" for number in count(2))
    return next(name for name in chain([base], numbered) if name not in used_names)
