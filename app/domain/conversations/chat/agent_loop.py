"""The tool-calling loop: ask the model, run what it calls, ask again, until it has answered.

No database is touched here. What must survive a crash goes through the journal, before it happens.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, Protocol

import msgspec

from app.domain.agents.llm.api import (
    Accepted,
    Finished,
    Function,
    Message,
    ModelOptions,
    ModelRequest,
    Models,
    QueueLimits,
    QueuePosition,
    Refusal,
    Target,
    Text,
    ToolCall,
    ToolChoice,
    UsedTokens,
    Waiting,
    estimate_tokens,
)

from . import tool_calls
from .stream_events import (
    ClientCall,
    LoopEnded,
    LoopEvent,
    ModelAccepted,
    Progress,
    QueueMoved,
    RefusalDelta,
    TextDelta,
    ToolResult,
    ToolUse,
)
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


class ClientFunctions(msgspec.Struct, frozen=True):
    """Functions that the caller runs itself. A call of one ends the turn; its id is the prefix and
    its number. With `takes_one_call`, others beside it are left out; the model can make them again.
    """

    functions: tuple[Function, ...] = ()
    id_prefix: str = ""
    takes_one_call: bool = False

    def names(self) -> set[str]:
        return {function.name for function in self.functions}


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
    client: ClientFunctions = ClientFunctions()
    # For the first request of the turn: a model that has to call something every time never ends.
    tool_choice: ToolChoice = "auto"
    options: ModelOptions = ModelOptions()
    may_retry: bool = True


async def run_loop(
    config: LoopConfig,
    messages: list[Message],
    budget: TokenBudget,
    journal: Journal | None = None,
) -> AsyncGenerator[LoopEvent, None]:
    offers = tool_calls.collect_offers(config.toolboxes)
    rounds = journal.rounds if journal else []
    for number, earlier_round in enumerate(rounds):
        for model, used in earlier_round.used.items():
            budget.add(model, *used)
        if earlier_round.text:
            yield TextDelta(_separator(rounds[:number]) + earlier_round.text)
        before = budget.since(earlier_round.used)
        async with aclosing(_run_calls(earlier_round, offers, journal, budget, before)) as events:
            async for event in events:
                yield event
        messages += tool_calls.round_messages(earlier_round)
    while not _is_over(rounds):
        may_call = len(rounds) < MAX_ROUNDS and not budget.is_exhausted
        this_round, before = Round("", []), budget.copy()
        choice = (config.tool_choice if not rounds else "auto") if may_call else "none"
        asking = _ask_for_round(config, messages, offers, rounds, this_round, budget, choice)
        async with aclosing(asking) as parts:
            async for part in parts:
                yield part
        if not may_call or not this_round.has_calls:
            reason = this_round.finish_reason
            yield LoopEnded("stop" if reason == "tool_calls" else reason)
            return
        rounds.append(this_round)
        async with aclosing(_run_calls(this_round, offers, journal, budget, before)) as events:
            async for event in events:
                yield event
        messages += tool_calls.round_messages(this_round)
    for call in rounds[-1].client_calls:
        yield ClientCall(call.id, call.name, call.arguments)
    # The arguments of the last call may have been cut off.
    yield LoopEnded("length" if rounds[-1].finish_reason == "length" else "tool_calls")


def _is_over(rounds: list[Round]) -> bool:
    """True when the client has to run something."""
    return bool(rounds and rounds[-1].client_calls)


def _separator(rounds: list[Round]) -> str:
    """Text after a round of calls is a paragraph of its own."""
    text = next((earlier.text for earlier in reversed(rounds) if earlier.text), "")
    return "\n\n" if text and not text[-1].isspace() else ""


async def _ask_for_round(
    config: LoopConfig,
    messages: list[Message],
    offers: Offers,
    rounds: list[Round],
    this_round: Round,
    budget: TokenBudget,
    tool_choice: ToolChoice,
) -> AsyncGenerator[ModelAccepted | QueueMoved | Progress | TextDelta, None]:
    deltas: list[str] = []
    asking = _ask(config, messages, offers, this_round, budget, tool_choice)
    async with aclosing(asking) as pieces:
        async for piece in pieces:
            if not isinstance(piece, Text):
                yield piece
                continue
            kind = RefusalDelta if isinstance(piece, Refusal) else TextDelta
            yield kind(piece.text if deltas else _separator(rounds) + piece.text)
            deltas.append(piece.text)
    this_round.text = "".join(deltas)


async def _ask(
    config: LoopConfig,
    messages: list[Message],
    offers: Offers,
    this_round: Round,
    budget: TokenBudget,
    tool_choice: ToolChoice,
) -> AsyncGenerator[Text | ModelAccepted | QueueMoved | Progress, None]:
    """Asks once and yields the text as it arrives. Adds calls to the round, and tokens to the
    budget.
    """
    request = _build_request(config, messages, offers, tool_choice)
    used: UsedTokens | None = None
    texts: list[str] = []
    budget.requests += 1
    try:
        async with aclosing(config.models.answer(config.target, request)) as pieces:
            async for piece in pieces:
                match piece:
                    case Text(text):
                        texts.append(text)
                        yield piece
                    case Accepted():
                        yield ModelAccepted()
                    case ToolCall():
                        _add_call(config.client, offers, this_round, piece)
                    case Finished(reason):
                        this_round.finish_reason = reason
                    case UsedTokens():
                        used = piece
                    case QueuePosition(position):
                        yield QueueMoved(position)
                    case Waiting(seconds):
                        yield Progress(seconds)
    finally:
        _add_usage(config.target.model, messages, texts, this_round, budget, used)


def _add_call(client: ClientFunctions, offers: Offers, this_round: Round, call: ToolCall) -> None:
    if call.name in client.names():
        if this_round.client_calls and client.takes_one_call:
            return
        call_id = f"{client.id_prefix}{len(this_round.client_calls)}"
        this_round.client_calls.append(ToolCall(call_id, call.name, call.arguments))
    else:
        this_round.calls.append(tool_calls.new_call(offers, call.name, call.arguments))


def _build_request(
    config: LoopConfig, messages: list[Message], offers: Offers, tool_choice: ToolChoice
) -> ModelRequest:
    return ModelRequest(
        messages=messages,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        functions=(*(offer.function for _, offer in offers.values()), *config.client.functions),
        tool_choice=tool_choice,
        options=config.options,
        may_retry=config.may_retry,
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
    if used is None and (texts or this_round.calls or this_round.client_calls):
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
    """The calls of a round, stored before they run and once they have. Calls for the client are
    stored as well, so that another attempt ends the turn with the same ones.
    """
    is_new = any(call.status is None for call in this_round.calls) or not this_round.calls
    has_new_calls = journal is not None and is_new
    if journal is not None and has_new_calls:
        this_round.used = budget.since(before)
        await journal.save()
    async with aclosing(tool_calls.run_round(this_round, offers)) as events:
        async for event in events:
            yield event
    if journal is not None and has_new_calls:
        this_round.used = budget.since(before)
        await journal.save()
