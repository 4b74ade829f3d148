"""Sub-agents as something that a model can call: the child thinks with its own model and prompt."""

import re
from contextlib import aclosing
from itertools import count
from typing import Any

from app.domain.agents import brain as brains
from app.domain.agents.brain import Brain, Child
from app.domain.chat.steps import Delta, ToolResult, ToolUse
from app.domain.chat.think import Mind, Spend, think
from app.domain.chat.toolbox import Offer, Outcome, Tell, ToolBox
from app.domain.models.protocol import Function, Message
from app.domain.tools.toolbox import Tools
from app.parts import Parts

MAX_DEPTH = 3
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
    """The children of one agent, at one depth of a turn."""

    def __init__(
        self, parts: Parts, brain: Brain, spend: Spend, depth: int, *, public: bool
    ) -> None:
        self._parts = parts
        self._tenant_id = brain.tenant_id
        self._spend = spend
        self._depth = depth
        self._public = public
        # Visitors of a web site meet nothing that is still a draft.
        children = [child for child in brain.children if not public or child.status == "published"]
        self.offers = _offers(children) if depth < MAX_DEPTH else []

    async def run(self, offer: Offer, call_id: str, given: dict[str, Any], tell: Tell) -> Outcome:
        task = given.get("task")
        if not isinstance(task, str) or not task.strip():
            return Outcome({"error": "say in `task` what is to be done"}, "failed")
        if self._spend.exhausted:
            return Outcome({"error": "this turn has used up its tokens"}, "failed")
        # Counts for itself, besides what the child asks then: of many at once, none slips by.
        self._spend.asked += 1
        async with self._parts.db.tx(self._tenant_id, read_only=True) as tx:
            child = await brains.load(tx, self._parts.keyring, offer.tool_id or "")
        mind = Mind(
            models=self._parts.models,
            target=child.target,
            temperature=child.temperature,
            max_tokens=child.max_tokens,
            boxes=boxes_of(self._parts, child, self._spend, self._depth + 1, public=self._public),
            live=False,
        )
        messages = [Message("system", child.system_prompt), Message("user", task)]
        said = []
        async with aclosing(think(mind, messages, self._spend)) as steps:
            async for step in steps:
                if isinstance(step, Delta):
                    said.append(step.delta)
                else:
                    tell(_within(step, call_id))
        return Outcome("".join(said))


def boxes_of(
    parts: Parts, brain: Brain, spend: Spend, depth: int, *, public: bool
) -> list[ToolBox]:
    """Everything that this agent can do. An area that gives agents something to do adds its box."""
    return [Tools(parts, brain), Delegation(parts, brain, spend, depth, public=public)]


def _offers(children: list[Child]) -> list[Offer]:
    offers: list[Offer] = []
    taken: set[str] = set()
    for child in children:
        plain = _NOT_NAME.sub("_", child.name.lower()).strip("_")[:_NAME_CHARS]
        name = f"delegate_to_{plain or 'agent'}"
        for number in count(2):
            if name not in taken:
                break
            name = f"delegate_to_{plain or 'agent'}_{number}"
        taken.add(name)
        told = child.delegation_prompt or child.description or f"Hand a task over to {child.name}"
        # Children who only talk may do so twice.
        function = Function(name, told, _PARAMETERS)
        offers.append(Offer(function, child.name, child.id, repeatable=not child.acts))
    return offers


def _within(step: ToolUse | ToolResult, call_id: str) -> ToolUse | ToolResult:
    """A step of a child, told as part of the delegation that it belongs to."""
    inner = f"{call_id}.{step.id}"
    outer = f"{call_id}.{step.parent_id}" if step.parent_id else call_id
    if isinstance(step, ToolUse):
        return ToolUse(inner, step.tool, step.tool_id, step.input, outer)
    return ToolResult(
        inner,
        step.tool,
        step.tool_id,
        step.output,
        step.status,
        step.execution_time_ms,
        outer,
    )
