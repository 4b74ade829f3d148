"""The calls of a round: run side by side, and reported step by step."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final

import msgspec

from app.domain.agents.llm.api import FinishReason, Message, ToolCall
from app.domain.agents.llm.errors import ModelNotConfigured
from app.domain.agents.tools.api import CallOutcome, CallStatus, ToolOffer
from app.domain.sources import SourceView
from app.jobs import background
from app.kit import logs
from app.kit.errors import ApiError, ProviderError
from app.kit.ids import new_id
from app.kit.texts import is_deeper, without_nul

from .stream_events import ToolResult, ToolUse
from .toolbox import Toolbox

log = logs.get("chat")

MAX_CALLS: Final = 16
_MAX_OUTPUT_CHARS = 50_000
_MAX_DEPTH = 64
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNKNOWN = (
    "The outcome of this call is not known: it was interrupted, and it was not repeated because "
    "it may have had effects."
)

Offers = dict[str, tuple[Toolbox, ToolOffer]]
# None marks the end of a call.
EventQueue = asyncio.Queue[ToolUse | ToolResult | None]


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
    sources: tuple[SourceView, ...] = ()


class NestedCall(msgspec.Struct):
    """A call that a sub-agent made within one of ours."""

    use: ToolUse
    result: ToolResult | None = None


class Round(msgspec.Struct):
    """The model's text and calls, and the tokens used for them, by model."""

    text: str
    calls: list[Call]
    inner: list[NestedCall] = []
    used: dict[str, list[int]] = {}
    # Calls that the client runs: they end the turn.
    client_calls: list[ToolCall] = []
    finish_reason: FinishReason = "stop"

    @property
    def has_calls(self) -> bool:
        return bool(self.calls or self.client_calls)


def collect_offers(toolboxes: list[Toolbox]) -> Offers:
    """By function name; the first toolbox with a name keeps it."""
    offers: Offers = {}
    for toolbox in toolboxes:
        for offer in toolbox.offers:
            offers.setdefault(offer.function.name, (toolbox, offer))
    return offers


def new_call(offers: Offers, name: str, arguments: str) -> Call:
    """With an id of ours: some providers count from 0 in every answer."""
    known = offers.get(name)
    if known is None:
        return Call(new_id("call"), name, arguments, name)
    return Call(new_id("call"), name, arguments, known[1].tool, known[1].tool_id)


def round_messages(this_round: Round) -> list[Message]:
    """A round as the model sees it in the next request."""
    calls = tuple(
        ToolCall(call.id, _safe_name(call), _safe_arguments(call)) for call in this_round.calls
    )
    return [
        Message("assistant", this_round.text, calls),
        *(
            Message("tool", render_output(call.output), tool_call_id=call.id)
            for call in this_round.calls
        ),
    ]


def _safe_name(call: Call) -> str:
    return call.name if _NAME.fullmatch(call.name) else "unknown"


def _safe_arguments(call: Call) -> str:
    """Providers refuse arguments that broke off in the middle when they are sent back."""
    return call.arguments if isinstance(parse_arguments(call.arguments), dict) else "{}"


def render_output(output: Any) -> str:
    """A tool's output as text for a model."""
    text = output if isinstance(output, str) else msgspec.json.encode(output).decode()
    return text if len(text) <= _MAX_OUTPUT_CHARS else text[:_MAX_OUTPUT_CHARS] + "… (cut)"


async def run_round(
    this_round: Round, offers: Offers
) -> AsyncGenerator[ToolUse | ToolResult, None]:
    """Runs the calls without an outcome side by side; yields events as they happen."""
    arguments = {call.id: parse_arguments(call.arguments) for call in this_round.calls}
    finished = {call.id for call in this_round.calls if call.status is not None}
    this_round.inner = [
        inner for inner in this_round.inner if inner.use.id.partition(".")[0] in finished
    ]
    for call in this_round.calls:
        for event in _earlier_events(call, arguments[call.id], this_round):
            yield event
    queue: EventQueue = asyncio.Queue()
    tasks = [
        background.start(_run_call(call, arguments[call.id], offers, queue, position))
        for position, call in enumerate(
            call for call in this_round.calls if call.id not in finished
        )
    ]
    try:
        running = len(tasks)
        while running:
            report = await queue.get()
            if report is None:
                running -= 1
                continue
            _remember_nested(this_round, report)
            yield report
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _earlier_events(
    call: Call, arguments: Any, this_round: Round
) -> Iterator[ToolUse | ToolResult]:
    """The call itself; and its result, if it ran on an earlier attempt."""
    yield ToolUse(call.id, call.tool, call.tool_id, arguments, function=call.name)
    if call.status is None:
        return
    for inner in this_round.inner:
        if inner.use.id.startswith(f"{call.id}."):
            yield inner.use
            if inner.result is not None:
                yield inner.result
    yield _result(call)


def _remember_nested(this_round: Round, event: ToolUse | ToolResult) -> None:
    """Keeps the calls within our calls, for a second attempt to report."""
    if event.parent_id is None:
        return
    if isinstance(event, ToolUse):
        this_round.inner.append(NestedCall(event))
        return
    for inner in this_round.inner:
        if inner.use.id == event.id:
            inner.result = event


async def _run_call(
    call: Call, arguments: Any, offers: Offers, queue: EventQueue, position: int
) -> None:
    started = time.perf_counter()
    try:
        outcome = await _run_tool(call, arguments, offers, queue, position)
        call.output, call.status = outcome.output, outcome.status
        call.sources = outcome.sources
        call.execution_time_ms = round((time.perf_counter() - started) * 1000)
        queue.put_nowait(_result(call))
    finally:
        queue.put_nowait(None)


async def _run_tool(
    call: Call, arguments: Any, offers: Offers, queue: EventQueue, position: int
) -> CallOutcome:
    """Any problem is an outcome that the model reads."""
    if call.name not in offers:
        return CallOutcome({"error": f"there is no tool {call.name}"}, "failed")
    if position >= MAX_CALLS:
        return CallOutcome({"error": f"at most {MAX_CALLS} calls at a time"}, "failed")
    if not isinstance(arguments, dict):
        return CallOutcome({"error": "the arguments are not a JSON object"}, "failed")
    toolbox, offer = offers[call.name]
    try:
        return await toolbox.run(offer, call.id, arguments, queue.put_nowait)
    except (ProviderError, ModelNotConfigured) as error:
        # How a sub-agent is set up is not shown in a conversation with its parent.
        log.warning("a tool call got no answer", tool=call.tool, reason=error.message)
        return CallOutcome({"error": "it could not answer", "code": error.code}, "failed")
    except ApiError as error:
        return CallOutcome({"error": error.message, "code": error.code}, "failed")
    except Exception:
        log.exception("a tool call raised", tool=call.tool)
        return CallOutcome({"error": "the tool failed"}, "failed")


def fail_unknown_calls(rounds: list[Round], toolboxes: list[Toolbox]) -> None:
    """After a crash: calls that may have had effects are not run a second time."""
    offers = collect_offers(toolboxes)
    for call in (call for item in rounds for call in item.calls if call.status is None):
        known = offers.get(call.name)
        if known is not None and not known[1].repeatable:
            call.output, call.status = {"error": _UNKNOWN}, "failed"


def parse_arguments(text: str) -> Any:
    """Returns the text itself where it is not JSON, or nested too deeply."""
    if not text.strip():
        return {}
    try:
        arguments = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return text if is_deeper(arguments, _MAX_DEPTH) else without_nul(arguments)


def _result(call: Call) -> ToolResult:
    return ToolResult(
        call.id,
        call.tool,
        call.tool_id,
        call.output,
        call.status or "failed",
        call.execution_time_ms,
        sources=call.sources,
    )
