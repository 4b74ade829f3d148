"""A runner of the agent loop, with a toolbox and a journal for tests."""

from contextlib import aclosing
from typing import Any

from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import Function, Message, Target
from app.domain.agents.tools.offers import CallOutcome, ToolOffer
from app.domain.conversations.chat.agent_loop import LoopConfig, TokenBudget, run_loop
from app.domain.conversations.chat.stream_events import LoopEvent, TextDelta
from app.domain.conversations.chat.tool_calls import Round
from app.domain.conversations.chat.toolbox import Report, Toolbox
from app.services import Services
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import PROVIDER


class StubToolbox:
    """A toolbox with one tool that records its arguments and returns a fixed outcome."""

    def __init__(self, outcome: CallOutcome | Exception, *, repeatable: bool = True) -> None:
        function = Function("tool", "A tool", {"type": "object"})
        self.offers = [ToolOffer(function, "Tool", None, repeatable)]
        self.arguments: list[dict[str, Any]] = []
        self._outcome = outcome

    async def run(
        self, offer: ToolOffer, call_id: str, arguments: dict[str, Any], report: Report
    ) -> CallOutcome:
        self.arguments.append(arguments)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class RecordingJournal:
    """Records the number of rounds and of outcomes at each save."""

    def __init__(self, rounds: list[Round]) -> None:
        self.rounds = rounds
        self.saves: list[tuple[int, int]] = []

    async def save(self) -> None:
        calls = [call for item in self.rounds for call in item.calls]
        self.saves.append((len(self.rounds), sum(call.status is not None for call in calls)))


class LoopRunner:
    """Runs the agent loop on the scripted model, without an agent or a conversation."""

    def __init__(self, services: Services, models: ModelServer, model: str) -> None:
        self._services, self._models, self._model = services, models, model
        self.budget = TokenBudget()

    def build_config(self, *toolboxes: Toolbox, live: bool = False) -> LoopConfig:
        target = Target(f"{PROVIDER}/{self._model}", PROVIDER, "sk-x", self._models.url)
        return LoopConfig(
            models=self._services.get(Models),
            tenant_id="ten_x",
            target=target,
            temperature=0.5,
            max_tokens=10,
            toolboxes=list(toolboxes),
            live=live,
        )

    def script(self, *replies: Reply) -> None:
        self._models.script(self._model, *replies)

    @property
    def asked(self) -> list[dict[str, Any]]:
        return self._models.asked(self._model)

    async def run(
        self, *toolboxes: Toolbox, journal: RecordingJournal | None = None, live: bool = False
    ) -> list[LoopEvent]:
        messages = [Message("user", "Hello")]
        loop_events = run_loop(
            self.build_config(*toolboxes, live=live), messages, self.budget, journal
        )
        async with aclosing(loop_events) as steps:
            return [step async for step in steps]


def join_text(steps: list[LoopEvent]) -> str:
    return "".join(step.delta for step in steps if isinstance(step, TextDelta))
