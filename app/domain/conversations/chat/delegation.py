"""Sub-agents as something that a model can call: each answers with its own model and prompt."""

import re
from contextlib import aclosing
from itertools import count
from typing import Any, Final

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime, SubAgentInfo
from app.domain.agents.knowledge.api import Reader
from app.domain.agents.llm.api import Function, Message, Models
from app.domain.agents.search.api import WebSearch
from app.domain.agents.tools.api import AgentTools, CallOutcome, ToolOffer
from app.services import Services

from . import history
from .agent_loop import LoopConfig, TokenBudget, run_loop
from .history import find_passages
from .stream_events import TextDelta, ToolResult, ToolUse
from .toolbox import Report, Toolbox

MAX_DEPTH: Final = 3
_NOT_NAME = re.compile(r"[^a-z0-9]+")
_NAME_CHARS = 40
_PARAMETERS = {
    "type": "object",
    "properties": {
        "task": {"type": "string", "description": "What to do, with all that is needed to do it"}
    },
    "required": ["task"],
}


class Delegation:
    """The sub-agents of one agent, at one depth of a turn."""

    def __init__(
        self,
        services: Services,
        runtime: AgentRuntime,
        budget: TokenBudget,
        depth: int,
        reader: Reader,
    ) -> None:
        self._services = services
        self._tenant_id = runtime.tenant_id
        self._budget = budget
        self._depth = depth
        self._reader = reader
        # Visitors of a web site meet no drafts.
        visible = [
            child
            for child in runtime.sub_agents
            if not reader.is_visitor or child.status == "published"
        ]
        self.offers = _offers(visible) if depth < MAX_DEPTH else []

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], report: Report
    ) -> CallOutcome:
        task = arguments.get("task")
        if not isinstance(task, str) or not task.strip():
            return CallOutcome({"error": "describe in `task` what to do"}, "failed")
        if self._budget.is_exhausted:
            return CallOutcome({"error": "this turn has used up its tokens"}, "failed")
        # Counts for itself, besides the sub-agent's own requests: of many at once, none slips by.
        self._budget.requests += 1
        async with self._services.db.tx(self._tenant_id, autocommit=True) as tx:
            child = await agents.load_runtime(tx, self._services.keyring, offer.tool_id or "")
        config = LoopConfig(
            models=self._services.get(Models),
            tenant_id=self._tenant_id,
            target=child.target,
            temperature=child.answer_temperature,
            max_tokens=child.answer_tokens,
            toolboxes=toolboxes_for(
                self._services, child, self._budget, self._depth + 1, self._reader
            ),
            live=False,
        )
        window = await config.models.window_of(child.target)
        passages = await find_passages(self._services, child, window, task, reader=self._reader)
        quoted = passages.prompt if passages is not None else None
        system = history.system_message(child.system_prompt, passages=quoted)
        messages, deltas = [system, Message("user", task)], []
        async with aclosing(run_loop(config, messages, self._budget)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    deltas.append(event.delta)
                elif isinstance(event, ToolUse | ToolResult):
                    report(_nest(event, call_id))
        sources = tuple(passages.sources) if passages is not None else ()
        return CallOutcome("".join(deltas), sources=sources)


def toolboxes_for(
    services: Services, runtime: AgentRuntime, budget: TokenBudget, depth: int, reader: Reader
) -> list[Toolbox]:
    """Everything that this agent can call. An area that gives agents more to call adds its own."""
    delegation = Delegation(services, runtime, budget, depth, reader)
    return [AgentTools(services, runtime), delegation, WebSearch(services, runtime)]


def _offers(sub_agents: list[SubAgentInfo]) -> list[ToolOffer]:
    offers: list[ToolOffer] = []
    taken: set[str] = set()
    for child in sub_agents:
        plain = _NOT_NAME.sub("_", child.name.lower()).strip("_")[:_NAME_CHARS]
        name = f"delegate_to_{plain or 'agent'}"
        for number in count(2):
            if name not in taken:
                break
            name = f"delegate_to_{plain or 'agent'}_{number}"
        taken.add(name)
        description = child.delegation_prompt or child.description
        function = Function(name, description or f"Hand a task over to {child.name}", _PARAMETERS)
        # Sub-agents that only talk may be asked twice.
        offers.append(ToolOffer(function, child.name, child.id, repeatable=not child.has_tools))
    return offers


def _nest(event: ToolUse | ToolResult, call_id: str) -> ToolUse | ToolResult:
    """A call of a sub-agent, as part of the delegation that it belongs to."""
    inner = f"{call_id}.{event.id}"
    outer = f"{call_id}.{event.parent_id}" if event.parent_id else call_id
    if isinstance(event, ToolUse):
        return ToolUse(inner, event.tool, event.tool_id, event.input, outer)
    return ToolResult(
        inner,
        event.tool,
        event.tool_id,
        event.output,
        event.status,
        event.execution_time_ms,
        outer,
        event.sources,
    )
