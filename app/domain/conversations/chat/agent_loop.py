"""The tool-calling loop: ask the model, run what it calls, ask again, until it has answered.

No database is touched here. What must survive a crash goes through the journal, before it happens.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, Protocol

import msgspec

from app.domain.agents.llm.api import (
    Message,
    ModelRequest,
    Models,
    QueueLimits,
    QueuePosition,
    Target,
    Text,
    ToolCall,
    UsedTokens,
    Waiting,
    estimate_tokens,
)

from . import tool_calls
from .stream_events import LoopEvent, Progress, QueueMoved, TextDelta, ToolResult, ToolUse
from .tool_calls import Offers, Round
from .toolbox import Toolbox

MAX_ROUNDS: Final = 10
MAX_TURN_TOKENS: Final = 200_000
MAX_TURN_REQUESTS: Final = 50


class TokenBudget:
    """What a turn has used of each model, its sub-agents included, and how much it may use."""

    def __init__(self, limit: int = MAX_TURN_TOKENS) -> None:
        self.limit = limit
        self.by_model: dict[str, list[int]] = {}
        self.requests = 0
        self._weight = 0

    def add(
        self, model: str, prompt_tokens: int, completion_tokens: int, at_least: int = 0
    ) -> None:
        """`at_least` is what it must have been, whatever the provider reports."""
        used = self.by_model.setdefault(model, [0, 0])
        used[0] += prompt_tokens
        used[1] += completion_tokens
        self._weight += max(prompt_tokens + completion_tokens, at_least)

    def copy(self) -> dict[str, list[int]]:
        return {model: list(used) for model, used in self.by_model.items()}

    def since(self, earlier: dict[str, list[int]]) -> dict[str, list[int]]:
        return {
            model: [now - then for now, then in zip(used, earlier.get(model, [0, 0]), strict=True)]
            for model, used in self.by_model.items()
        }

    @property
    def prompt_tokens(self) -> int:
        return sum(used[0] for used in self.by_model.values())

    @property
    def completion_tokens(self) -> int:
        return sum(used[1] for used in self.by_model.values())

    @property
    def is_exhausted(self) -> bool:
        return self._weight >= self.limit or self.requests >= MAX_TURN_REQUESTS


class Journal(Protocol):
    """Stores the rounds of a turn that must continue after a crash."""

    rounds: list[Round]

    async def save(self) -> None: ...


class LoopConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The model that is asked, and what it may call."""

    models: Models
    tenant_id: str
    target: Target
    temperature: float
    max_tokens: int
    toolboxes: list[Toolbox]
    # Whether the answer is passed on as it comes.
    live: bool
    response_format: dict[str, Any] | None = None
    queue: QueueLimits = QueueLimits()


async def run_loop(
    config: LoopConfig,
    messages: list[Message],
    budget: TokenBudget,
    journal: Journal | None = None,
) -> AsyncGenerator[LoopEvent, None]:
    offers = tool_calls.collect_offers(config.toolboxes)
    rounds = journal.rounds if journal else []
    text = ""
    for earlier_round in rounds:
        for model, used in earlier_round.used.items():
            budget.add(model, *used)
        if earlier_round.text:
            yield TextDelta(_separator(text) + earlier_round.text)
            text = earlier_round.text
        before = budget.since(earlier_round.used)
        async with aclosing(_run_calls(earlier_round, offers, journal, budget, before)) as events:
            async for event in events:
                yield event
        messages += tool_calls.round_messages(earlier_round)
    while True:
        may_call = len(rounds) < MAX_ROUNDS and not budget.is_exhausted
        this_round, before, deltas = Round("", []), budget.copy(), list[str]()
        asking = _ask(config, messages, offers, this_round, budget, may_call=may_call)
        async with aclosing(asking) as pieces:
            async for piece in pieces:
                if isinstance(piece, QueueMoved | Progress):
                    yield piece
                    continue
                yield TextDelta(piece if deltas else _separator(text) + piece)
                deltas.append(piece)
        this_round.text = "".join(deltas)
        text = this_round.text or text
        if not this_round.calls or not may_call:
            return
        rounds.append(this_round)
        async with aclosing(_run_calls(this_round, offers, journal, budget, before)) as events:
            async for event in events:
                yield event
        messages += tool_calls.round_messages(this_round)


def _separator(text: str) -> str:
    """Text after a round of calls is a paragraph of its own."""
    return "\n\n" if text and not text[-1].isspace() else ""


async def _ask(
    config: LoopConfig,
    messages: list[Message],
    offers: Offers,
    this_round: Round,
    budget: TokenBudget,
    *,
    may_call: bool,
) -> AsyncGenerator[str | QueueMoved | Progress, None]:
    """Asks once and yields the text as it arrives. Adds calls to the round, and tokens to the
    budget.
    """
    request = _build_request(config, messages, offers, may_call=may_call)
    used: UsedTokens | None = None
    texts: list[str] = []
    budget.requests += 1
    try:
        async with aclosing(config.models.answer(config.target, request)) as pieces:
            async for piece in pieces:
                match piece:
                    case Text(text):
                        texts.append(text)
                        yield text
                    case ToolCall(_, name, arguments):
                        this_round.calls.append(tool_calls.new_call(offers, name, arguments))
                    case UsedTokens():
                        used = piece
                    case QueuePosition(position):
                        yield QueueMoved(position)
                    case Waiting(seconds):
                        yield Progress(seconds)
    finally:
        _add_usage(config.target.model, messages, texts, this_round, budget, used)


def _build_request(
    config: LoopConfig, messages: list[Message], offers: Offers, *, may_call: bool
) -> ModelRequest:
    return ModelRequest(
        messages=messages,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        functions=tuple(offer.function for _, offer in offers.values()),
        may_call=may_call,
        response_format=config.response_format,
        is_streamed=config.live,
        tenant_id=config.tenant_id,
        queue=config.queue,
    )


def _add_usage(
    model: str,
    messages: list[Message],
    texts: list[str],
    this_round: Round,
    budget: TokenBudget,
    used: UsedTokens | None,
) -> None:
    """An answer that broke off, or came without figures, has used tokens all the same."""
    prompt_tokens = sum(estimate_tokens(message.content) for message in messages)
    completion_tokens = estimate_tokens("".join(texts))
    if used is None and (texts or this_round.calls):
        used = UsedTokens(prompt_tokens, completion_tokens)
    if used is not None:
        at_least = (prompt_tokens + completion_tokens) // 2
        budget.add(model, used.prompt_tokens, used.completion_tokens, at_least=at_least)


async def _run_calls(
    this_round: Round,
    offers: Offers,
    journal: Journal | None,
    budget: TokenBudget,
    before: dict[str, list[int]],
) -> AsyncGenerator[ToolUse | ToolResult, None]:
    """The calls of a round, stored before they run and once they have."""
    has_new_calls = journal is not None and any(call.status is None for call in this_round.calls)
    if journal is not None and has_new_calls:
        this_round.used = budget.since(before)
        await journal.save()
    async with aclosing(tool_calls.run_round(this_round, offers)) as events:
        async for event in events:
            yield event
    if journal is not None and has_new_calls:
        this_round.used = budget.since(before)
        await journal.save()
