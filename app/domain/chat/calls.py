"""The calls of a round: what the model wants done, done side by side, and told step by step."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from app.domain.chat.steps import CallStatus, ToolResult, ToolUse
from app.domain.chat.toolbox import Offer, Outcome, ToolBox
from app.domain.models.protocol import Message, ModelNotConfigured, ToolCall
from app.http.errors import ApiError, ProviderError
from app.kit import logs
from app.kit.ids import new_id
from app.kit.texts import is_deeper, without_nul

log = logs.get("chat")

MAX_CALLS = 16
_OUTPUT_CHARS = 50_000
_DEEPEST = 64
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNKNOWN = (
    "The outcome of this call is not known: it was interrupted, and it was not repeated because "
    "it may have had effects."
)

Offers = dict[str, tuple[ToolBox, Offer]]
Told = asyncio.Queue[ToolUse | ToolResult | None]


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


class Inner(msgspec.Struct):
    """A call that a sub-agent made within one of ours."""

    use: ToolUse
    result: ToolResult | None = None


class Round(msgspec.Struct):
    """What the model said and called, and what was used for all that, per model."""

    text: str
    calls: list[Call]
    inner: list[Inner] = []
    used: dict[str, list[int]] = {}


def offers_of(boxes: list[ToolBox]) -> Offers:
    """By function name; the first to take a name keeps it."""
    found: Offers = {}
    for box in boxes:
        for offer in box.offers:
            found.setdefault(offer.function.name, (box, offer))
    return found


def called(offers: Offers, name: str, arguments: str) -> Call:
    """With an id of ours: some providers count from 0 in every answer."""
    known = offers.get(name)
    if known is None:
        return Call(new_id("call"), name, arguments, name)
    return Call(new_id("call"), name, arguments, known[1].tool, known[1].tool_id)


def as_messages(done: Round) -> list[Message]:
    """A round as the model wants to see it again."""
    calls = tuple(ToolCall(call.id, _named(call), _object(call)) for call in done.calls)
    return [
        Message("assistant", done.text, calls),
        *(Message("tool", shown(call.output), tool_call_id=call.id) for call in done.calls),
    ]


def _named(call: Call) -> str:
    return call.name if _NAME.fullmatch(call.name) else "unknown"


def _object(call: Call) -> str:
    """What a model broke off in the middle of its arguments would be refused when sent back."""
    return call.arguments if isinstance(_input(call), dict) else "{}"


def shown(output: Any) -> str:
    """A tool's output as text for a model."""
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return text if len(text) <= _OUTPUT_CHARS else text[:_OUTPUT_CHARS] + "… (cut)"


async def run(this: Round, offers: Offers) -> AsyncGenerator[ToolUse | ToolResult, None]:
    """Whatever has no outcome yet, all side by side; steps in the order in which they happen."""
    inputs = {call.id: _input(call) for call in this.calls}
    known = {call.id for call in this.calls if call.status is not None}
    this.inner = [inner for inner in this.inner if inner.use.id.partition(".")[0] in known]
    for call in this.calls:
        for step in _begun(call, inputs[call.id], this):
            yield step
    told: Told = asyncio.Queue()
    tasks = [
        asyncio.create_task(_one(call, inputs[call.id], offers, told, position))
        for position, call in enumerate(call for call in this.calls if call.id not in known)
    ]
    try:
        left = len(tasks)
        while left:
            news = await told.get()
            if news is None:
                left -= 1
                continue
            _note(this, news)
            yield news
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _begun(call: Call, given: Any, this: Round) -> Iterator[ToolUse | ToolResult]:
    """That it is called; and if that was on an earlier attempt, what came of it."""
    yield ToolUse(call.id, call.tool, call.tool_id, given, function=call.name)
    if call.status is None:
        return
    for inner in this.inner:
        if inner.use.id.startswith(f"{call.id}."):
            yield inner.use
            if inner.result is not None:
                yield inner.result
    yield _result(call)


def _note(this: Round, step: ToolUse | ToolResult) -> None:
    """Remember what happens within our calls, for a second attempt to tell."""
    if step.parent_id is None:
        return
    if isinstance(step, ToolUse):
        this.inner.append(Inner(step))
        return
    for inner in this.inner:
        if inner.use.id == step.id:
            inner.result = step


async def _one(
    call: Call,
    given: Any,
    offers: Offers,
    told: Told,
    position: int,
) -> None:
    started = time.perf_counter()
    try:
        outcome = await _outcome(call, given, offers, told, position)
        call.output, call.status = outcome.output, outcome.status
        call.execution_time_ms = round((time.perf_counter() - started) * 1000)
        told.put_nowait(_result(call))
    finally:
        told.put_nowait(None)


async def _outcome(
    call: Call,
    given: Any,
    offers: Offers,
    told: Told,
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
    except (ProviderError, ModelNotConfigured) as error:
        # How the child is set up is not for whoever talks to its parent.
        log.warning("a tool call got no answer", tool=call.tool, reason=error.message)
        return Outcome({"error": "it could not answer", "code": error.code}, "failed")
    except ApiError as error:
        return Outcome({"error": error.message, "code": error.code}, "failed")
    except Exception:
        log.exception("a tool call raised", tool=call.tool)
        return Outcome({"error": "the tool failed"}, "failed")


def forget_unknown(rounds: list[Round], boxes: list[ToolBox]) -> None:
    """After a crash: calls that may have had effects are not run a second time."""
    offers = offers_of(boxes)
    for call in (call for done in rounds for call in done.calls if call.status is None):
        known = offers.get(call.name)
        if known is not None and not known[1].repeatable:
            call.output, call.status = {"error": _UNKNOWN}, "failed"


def _input(call: Call) -> Any:
    if not call.arguments.strip():
        return {}
    try:
        given = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return call.arguments
    return call.arguments if is_deeper(given, _DEEPEST) else without_nul(given)


def _result(call: Call) -> ToolResult:
    return ToolResult(
        call.id,
        call.tool,
        call.tool_id,
        call.output,
        call.status or "failed",
        call.execution_time_ms,
    )
