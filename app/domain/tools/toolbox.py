"""Attached tools as something that a model can call."""

import re
from itertools import count
from typing import Any

from app.domain.agents.brain import Ability, Brain
from app.domain.chat.toolbox import Offer, Outcome, Tell
from app.domain.models.protocol import Function
from app.domain.tools import executions
from app.domain.tools.configs import KINDS
from app.parts import Parts
from db.fast import Row

_NOT_NAME = re.compile(r"[^A-Za-z0-9_]+")
_NAME_CHARS = 60
_KEPT_CHARS = 32_768


class Tools:
    """The tools of one agent. Each call is a run of its own, known by the call's id: asked for
    again after a crash, it is not run again.
    """

    def __init__(self, parts: Parts, brain: Brain) -> None:
        self._parts = parts
        self._tenant_id = brain.tenant_id
        self._agent_id = brain.agent_id
        self.offers = _offers(brain.abilities)

    async def run(self, offer: Offer, call_id: str, given: dict[str, Any], tell: Tell) -> Outcome:  # noqa: ARG002
        row = await executions.perform(
            self._parts,
            self._tenant_id,
            offer.tool_id or "",
            given,
            agent_id=self._agent_id,
            call_id=call_id,
        )
        output, error = _fitting(row), executions.failure_of(row)
        if error is None:
            return Outcome(output)
        said: dict[str, Any] = {"error": error.message, "code": error.code}
        if output is not None:
            said["output"] = output
        return Outcome(said, row["status"])


def _fitting(row: Row) -> Any:
    """The output as a conversation keeps it; the run itself has the whole."""
    text = row["output"]
    if text is None or len(text) <= _KEPT_CHARS:
        return executions.output_of(row)
    return {"truncated": True, "execution_id": row["id"], "beginning": text[:_KEPT_CHARS]}


def _offers(abilities: list[Ability]) -> list[Offer]:
    offers: list[Offer] = []
    taken: set[str] = set()
    for one in abilities:
        plain = _NOT_NAME.sub("_", one.slug).strip("_")[:_NAME_CHARS] or "tool"
        # Names that begin so are the sub-agents'.
        plain = plain if not plain.startswith("delegate_to_") else f"tool_{plain}"[:_NAME_CHARS]
        name = next(
            name
            for number in count(1)
            if (name := plain if number == 1 else f"{plain[:_NAME_CHARS]}_{number}") not in taken
        )
        taken.add(name)
        # Providers refuse what does not say so.
        takes = {"type": "object", **(one.input_schema or KINDS[one.tool_type].takes)}
        function = Function(name, one.description or one.name, takes)
        offers.append(Offer(function, one.name, one.id, repeatable=True))
    return offers
