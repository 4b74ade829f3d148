"""One agent thinking: ask the model, run what it calls, ask again, until it has answered.

No database is touched here. What must survive a crash goes through the journal, before it happens.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from app.domain.chat.steps import CallStatus, Delta, Thought, ToolResult, ToolUse
from app.domain.chat.toolbox import Offer, Outcome, ToolBox
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
from app.http.errors import ApiError
from app.kit import logs
from app.kit.ids import new_id

log = logs.get("chat")

MAX_ROUNDS = 10
MAX_CALLS = 16
TURN_TOKENS = 200_000
_OUTPUT_CHARS = 50_000
_UNKNOWN = (
    "The outcome of this call is not known: it was interrupted, and it was not repeated because "
    "it may have had effects."
)


class Spend:
    """What a turn has used of each model, its sub-agents included, and how much it may."""

    def __init__(self, limit: int = TURN_TOKENS) -> None:
        self.limit = limit
        self.by_model: dict[str, list[int]] = {}

    def add(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        used = self.by_model.setdefault(model, [0, 0])
        used[0] += prompt_tokens
        used[1] += completion_tokens

    @property
    def prompt_tokens(self) -> int:
        return sum(used[0] for used in self.by_model.values())

    @property
    def completion_tokens(self) -> int:
        return sum(used[1] for used in self.by_model.values())

    @property
    def exhausted(self) -> bool:
        return self.prompt_tokens + self.completion_tokens >= self.limit


class Call(msgspec.Struct):
    """A call of a round. Without a status its outcome is not known."""

    id: str
    name: str
    arguments: str
    tool: str = ""
    tool_id: str | None = None
    output: Any = None
    status: CallStatus | None = None
    execution_time_ms: int = 0


class Round(msgspec.Struct):
    """What the model said and called, and what it used for that."""

    text: str
    calls: list[Call]
    prompt_tokens: int = 0
    completion_tokens: int = 0


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
    offers = _offers(mind.boxes)
    rounds = journal.rounds if journal else []
    said = ""
    for done in rounds:
        spend.add(mind.target.model, done.prompt_tokens, done.completion_tokens)
        if done.text:
            said = done.text
            yield Delta(done.text)
        async with aclosing(_run(done, offers, journal)) as steps:
            async for step in steps:
                yield step
        messages += _as_messages(done)
    while True:
        may_call = len(rounds) < MAX_ROUNDS and not spend.exhausted
        this = Round("", [])
        async with aclosing(_ask(mind, messages, offers if may_call else {}, this)) as texts:
            async for text in texts:
                if said and not this.text and not said[-1].isspace():
                    yield Delta("\n\n")
                this.text += text
                said = this.text
                yield Delta(text)
        spend.add(mind.target.model, this.prompt_tokens, this.completion_tokens)
        if not this.calls or not may_call:
            return
        rounds.append(this)
        async with aclosing(_run(this, offers, journal)) as steps:
            async for step in steps:
                yield step
        messages += _as_messages(this)


async def _ask(
    mind: Mind, messages: list[Message], offers: dict[str, tuple[ToolBox, Offer]], this: Round
) -> AsyncGenerator[str, None]:
    """Ask once; the text as it comes. Calls and usage are noted in `this`."""
    ask = Ask(
        messages=messages,
        temperature=mind.temperature,
        max_tokens=mind.max_tokens,
        functions=tuple(offer.function for _, offer in offers.values()),
        response_format=mind.response_format,
        live=mind.live,
    )
    used: Used | None = None
    said: list[str] = []
    try:
        async with aclosing(mind.models.answer(mind.target, ask)) as pieces:
            async for piece in pieces:
                match piece:
                    case Text(text):
                        said.append(text)
                        yield text
                    case ToolCall(_, name, arguments):
                        this.calls.append(_call(offers, name, arguments))
                    case Used():
                        used = piece
    finally:
        # Broken off or silent about it: what was sent and said has been used all the same.
        if used is None and said:
            asked = sum(estimated_tokens(message.content) for message in messages)
            used = Used(asked, estimated_tokens("".join(said)))
        if used is not None:
            this.prompt_tokens, this.completion_tokens = used.prompt_tokens, used.completion_tokens


def _offers(boxes: list[ToolBox]) -> dict[str, tuple[ToolBox, Offer]]:
    """By function name; the first to take a name keeps it."""
    found: dict[str, tuple[ToolBox, Offer]] = {}
    for box in boxes:
        for offer in box.offers:
            found.setdefault(offer.function.name, (box, offer))
    return found


def _call(offers: dict[str, tuple[ToolBox, Offer]], name: str, arguments: str) -> Call:
    """With an id of ours: some providers count from 0 in every answer."""
    known = offers.get(name)
    if known is None:
        return Call(new_id("call"), name, arguments, name)
    return Call(new_id("call"), name, arguments, known[1].tool, known[1].tool_id)


def _as_messages(done: Round) -> list[Message]:
    """A round as the model wants to see it again."""
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in done.calls)
    return [
        Message("assistant", done.text, calls),
        *(Message("tool", shown(call.output), tool_call_id=call.id) for call in done.calls),
    ]


def shown(output: Any) -> str:
    """A tool's output as text for a model."""
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return text if len(text) <= _OUTPUT_CHARS else text[:_OUTPUT_CHARS] + "… (cut)"


# Running the calls of a round


async def _run(
    this: Round, offers: dict[str, tuple[ToolBox, Offer]], journal: Journal | None
) -> AsyncGenerator[ToolUse | ToolResult, None]:
    """All calls side by side; steps in the order in which they happen."""
    again = [call for call in this.calls if call.status is None]
    inputs = {call.id: _input(call) for call in this.calls}
    if again and journal is not None:
        await journal.keep()
    for call in this.calls:
        yield ToolUse(call.id, call.tool, call.tool_id, inputs[call.id], function=call.name)
        if call.status is not None:
            yield _result(call)
    if not again:
        return
    told: asyncio.Queue[ToolUse | ToolResult | None] = asyncio.Queue()
    tasks = [
        asyncio.create_task(_one(call, inputs[call.id], offers, told, position))
        for position, call in enumerate(again)
    ]
    try:
        left = len(tasks)
        while left:
            step = await told.get()
            if step is None:
                left -= 1
            else:
                yield step
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if journal is not None:
        await journal.keep()


async def _one(
    call: Call,
    given: Any,
    offers: dict[str, tuple[ToolBox, Offer]],
    told: "asyncio.Queue[ToolUse | ToolResult | None]",
    position: int,
) -> None:
    started = time.perf_counter()
    outcome = await _outcome(call, given, offers, told, position)
    call.output, call.status = outcome.output, outcome.status
    call.execution_time_ms = round((time.perf_counter() - started) * 1000)
    told.put_nowait(_result(call))
    told.put_nowait(None)


async def _outcome(
    call: Call,
    given: Any,
    offers: dict[str, tuple[ToolBox, Offer]],
    told: "asyncio.Queue[ToolUse | ToolResult | None]",
    position: int,
) -> Outcome:
    """Whatever goes wrong is told to the model, which may know better."""
    if call.name not in offers:
        return Outcome({"error": f"there is no tool {call.name}"}, "failed")
    if position >= MAX_CALLS:
        return Outcome({"error": f"at most {MAX_CALLS} calls at a time"}, "failed")
    if not isinstance(given, dict):
        return Outcome({"error": "the arguments are not a JSON object"}, "failed")
    box, offer = offers[call.name]
    try:
        return await box.run(offer, call.id, given, told.put_nowait)
    except ApiError as error:
        return Outcome({"error": error.message, "code": error.code}, "failed")
    except Exception:
        log.exception("a tool call raised", tool=call.tool)
        return Outcome({"error": "the tool failed"}, "failed")


def forget_unknown(rounds: list[Round], boxes: list[ToolBox]) -> None:
    """After a crash: calls that may have had effects are not run a second time."""
    offers = _offers(boxes)
    for call in (call for done in rounds for call in done.calls if call.status is None):
        known = offers.get(call.name)
        if known is not None and not known[1].repeatable:
            call.output, call.status = {"error": _UNKNOWN}, "failed"


def _input(call: Call) -> Any:
    if not call.arguments.strip():
        return {}
    try:
        return msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return call.arguments


def _result(call: Call) -> ToolResult:
    return ToolResult(
        call.id,
        call.tool,
        call.tool_id,
        call.output,
        call.status or "failed",
        call.execution_time_ms,
    )
