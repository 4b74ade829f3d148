"""One agent thinking: ask the model, run what it calls, ask again, until it has answered.

No database is touched here. What must survive a crash goes through the journal, before it happens.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from app.domain.chat import calls
from app.domain.chat.calls import Offers, Round
from app.domain.chat.steps import Delta, Thought, ToolResult, ToolUse
from app.domain.chat.toolbox import ToolBox
from app.domain.models.gateway import Models
from app.domain.models.protocol import (
    Ask,
    Message,
    Target,
    Text,
    ToolCall,
    Used,
    estimated_tokens,
)

MAX_ROUNDS = 10
TURN_TOKENS = 200_000
TURN_ASKS = 50


class Spend:
    """What a turn has used of each model, its sub-agents included, and how much it may."""

    def __init__(self, limit: int = TURN_TOKENS) -> None:
        self.limit = limit
        self.by_model: dict[str, list[int]] = {}
        self.asked = 0
        self._weight = 0

    def add(
        self, model: str, prompt_tokens: int, completion_tokens: int, at_least: int = 0
    ) -> None:
        """`at_least` is what it must have been, whatever the provider says."""
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
    def exhausted(self) -> bool:
        return self._weight >= self.limit or self.asked >= TURN_ASKS


class Journal(Protocol):
    """Keeps the rounds of a turn that must go on after a crash."""

    rounds: list[Round]

    async def keep(self) -> None: ...


class Mind(msgspec.Struct, frozen=True, kw_only=True):
    """Who thinks, with what."""

    models: Models
    target: Target
    temperature: float
    max_tokens: int
    boxes: list[ToolBox]
    live: bool
    response_format: dict[str, Any] | None = None


async def think(
    mind: Mind, messages: list[Message], spend: Spend, journal: Journal | None = None
) -> AsyncGenerator[Thought, None]:
    offers = calls.offers_of(mind.boxes)
    rounds = journal.rounds if journal else []
    said = ""
    for done in rounds:
        for model, used in done.used.items():
            spend.add(model, *used)
        if done.text:
            yield Delta(_apart(said) + done.text)
            said = done.text
        before = spend.since(done.used)
        async with aclosing(_run(done, offers, journal, spend, before)) as steps:
            async for step in steps:
                yield step
        messages += calls.as_messages(done)
    while True:
        may_call = len(rounds) < MAX_ROUNDS and not spend.exhausted
        this, before, texts = Round("", []), spend.copy(), list[str]()
        asking = _ask(mind, messages, offers, this, spend, may_call=may_call)
        async with aclosing(asking) as heard:
            async for text in heard:
                yield Delta(text if texts else _apart(said) + text)
                texts.append(text)
        this.text = "".join(texts)
        said = this.text or said
        if not this.calls or not may_call:
            return
        rounds.append(this)
        async with aclosing(_run(this, offers, journal, spend, before)) as steps:
            async for step in steps:
                yield step
        messages += calls.as_messages(this)


def _apart(said: str) -> str:
    """What is said after a round of calls is a paragraph of its own."""
    return "\n\n" if said and not said[-1].isspace() else ""


async def _ask(
    mind: Mind,
    messages: list[Message],
    offers: Offers,
    this: Round,
    spend: Spend,
    *,
    may_call: bool,
) -> AsyncGenerator[str, None]:
    """Ask once; the text as it comes. Calls are noted in `this`, what was used in `spend`."""
    ask = Ask(
        messages=messages,
        temperature=mind.temperature,
        max_tokens=mind.max_tokens,
        functions=tuple(offer.function for _, offer in offers.values()),
        may_call=may_call,
        response_format=mind.response_format,
        live=mind.live,
    )
    used: Used | None = None
    said: list[str] = []
    spend.asked += 1
    try:
        async with aclosing(mind.models.answer(mind.target, ask)) as pieces:
            async for piece in pieces:
                match piece:
                    case Text(text):
                        said.append(text)
                        yield text
                    case ToolCall(_, name, arguments):
                        this.calls.append(calls.called(offers, name, arguments))
                    case Used():
                        used = piece
    finally:
        # Broken off or silent about it: what was sent and said has been used all the same.
        asked = sum(estimated_tokens(message.content) for message in messages)
        answered = estimated_tokens("".join(said))
        if used is None and (said or this.calls):
            used = Used(asked, answered)
        if used is not None:
            told = (used.prompt_tokens, used.completion_tokens)
            spend.add(mind.target.model, *told, at_least=(asked + answered) // 2)


async def _run(
    this: Round,
    offers: Offers,
    journal: Journal | None,
    spend: Spend,
    before: dict[str, list[int]],
) -> AsyncGenerator[ToolUse | ToolResult, None]:
    """The calls of a round, kept before they run and once they have."""
    fresh = journal is not None and any(call.status is None for call in this.calls)
    if journal is not None and fresh:
        this.used = spend.since(before)
        await journal.keep()
    async with aclosing(calls.run(this, offers)) as steps:
        async for step in steps:
            yield step
    if journal is not None and fresh:
        this.used = spend.since(before)
        await journal.keep()
