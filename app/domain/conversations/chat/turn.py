"""One turn of a conversation: an async generator of events, from the question to the stored reply.

Sync, streamed, asynchronous, public and OpenAI-compatible chat are thin layers over it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.knowledge.api import Reader
from app.domain.agents.llm.api import FinishReason, Message, Models, QueueLimits
from app.domain.agents.llm.errors import ModelFailed
from app.domain.sources import SourceView, select_cited
from app.jobs import background
from app.jobs.renewal import Renewal
from app.kit import clock, error_mapping
from app.kit.errors import ApiError, ProviderError
from app.observe import metrics
from app.services import Services

from . import attached_texts, history, seen_turns, turn_queries
from .agent_loop import ClientFunctions, Journal, LoopConfig, TokenBudget, run_loop
from .client_input import ClientInput, id_prefix_of
from .delegation import toolboxes_for
from .history import PastMessage, find_passages, list_questions
from .schemas import ChatReply, MessageAttachment, Source, ToolCallView, Visitor
from .seen_turns import SeenTurn
from .stream_events import (
    ClientCall,
    LoopEnded,
    LoopEvent,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ToolResult,
    ToolUse,
    TurnFigures,
    TurnFinished,
    TurnStarted,
)
from .tool_calls import fail_unknown_calls, parse_arguments

LEASE_SECONDS: Final = 60.0
TURN_SECONDS: Final = 900.0
_TOO_LONG = f"The turn took more than {TURN_SECONDS:g} seconds"
_RENEW_SECONDS = 20.0
# How turns wait for the local model. A stream shows its position meanwhile. A job gives the slot of
# its worker back soon and comes again; it leaves half of the places to callers who are waiting.
_STREAM_QUEUE: Final = QueueLimits(seconds=120)
_JOB_QUEUE: Final = QueueLimits(seconds=10, places=4, waits_for_place=True)


OnTokens = Callable[[int], Awaitable[None]]


class Speaker(msgspec.Struct, frozen=True):
    """Whose conversation it is: a user's, or a visitor's under an embed key. `visitor` is known
    when their site has signed who they are, and in which `groups` of its customers.
    """

    user_id: str | None = None
    embed_key_id: str | None = None
    session_id: str | None = None
    visitor: Visitor | None = None
    groups: tuple[str, ...] = ()

    @property
    def is_visitor(self) -> bool:
        return self.embed_key_id is not None

    @property
    def reader(self) -> Reader:
        """Whose documents its questions are answered from."""
        return Reader.visitor(self.groups) if self.is_visitor else Reader.inside()


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the past that is asked again, with what its conversation had before it."""

    conversation_id: str
    text: str
    attachments: list[MessageAttachment]
    past: list[PastMessage]
    # The entries of `past`, the oldest first.
    entry_ids: list[str]


class Turn(msgspec.Struct, kw_only=True):
    runtime: AgentRuntime
    speaker: Speaker
    source: Source
    conversation_id: str
    question_id: str
    message_id: str
    # No agent has answered in the conversation yet; and whether this very turn created it.
    is_new: bool
    created_conversation: bool = False
    text: str
    context: dict[str, Any] | None = None
    past: list[PastMessage] = []
    attachments: list[MessageAttachment] = []
    # Where the last turn begins that this one takes the place of.
    replaced_from: int | None = None
    # The answer in it, which stays if the new one fails before its first word: its id and place.
    replaced_answer: tuple[str, int] | None = None
    asked_at: datetime = msgspec.field(default_factory=clock.now)
    # Whether the caller knows the ids of the conversation and the answer.
    is_announced: bool = False
    # An asynchronous chat stores its question when it is accepted, and holds by its job's id.
    question_stored: bool = False
    holder: str
    client: ClientInput = msgspec.field(default_factory=ClientInput)
    # Called with the tokens of the turn when it is over, complete or not.
    on_tokens: OnTokens | None = None
    replay: Replay | None = None


class Transcript:
    """What a turn has produced so far; half of it is still worth storing."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[str, ToolCallView] = {}
        self.functions: dict[str, str] = {}
        # The passages in the prompt, in the order of their numbers, and what tools found.
        self.passages: list[SourceView] = []
        # Those passages as the prompt has them, and what else the model was given.
        self.quoted: str | None = None
        self.seen: SeenTurn | None = None
        self.first_token_ms: int | None = None
        self.figures = TurnFigures()
        self._tool_sources: list[SourceView] = []
        self.finish_reason: FinishReason = "stop"
        self.is_refusal = False
        self.budget = TokenBudget()
        self.started = time.perf_counter()

    def add(self, event: LoopEvent) -> None:
        match event:
            case TextDelta(delta):
                if self.first_token_ms is None:
                    self.first_token_ms = self.elapsed_ms
                self.texts.append(delta)
                self.is_refusal = isinstance(event, RefusalDelta)
            case ToolUse(id=call_id, tool=tool, tool_id=tool_id):
                self.functions[call_id] = event.function
                self.calls[call_id] = ToolCallView(
                    call_id, tool, tool_id, event.input, None, "failed", 0, event.parent_id
                )
            case ClientCall(call_id, name, arguments):
                self.functions[call_id] = name
                call_input = parse_arguments(arguments)
                self.calls[call_id] = ToolCallView(
                    call_id, name, None, call_input, None, "requested", 0
                )
            case LoopEnded(finish_reason):
                self.finish_reason = finish_reason
            case ToolResult():
                call = self.calls[event.id]
                call.output, call.status = event.output, event.status
                call.execution_time_ms = event.execution_time_ms
                known = self._tool_sources
                known += [source for source in event.sources if source not in known]

    @property
    def elapsed_ms(self) -> int:
        return round((time.perf_counter() - self.started) * 1000)

    @property
    def sources(self) -> list[SourceView]:
        """Passages that the text cites, or all where it cites none, and what tools found."""
        return [*select_cited(self.content, self.passages), *self._tool_sources]

    @property
    def content(self) -> str:
        return "".join(self.texts)

    @property
    def is_empty(self) -> bool:
        return not self.texts and not self.calls


class TurnStore(Protocol):
    """Stores a turn when it is over: complete, or as far as it came, with what made it fail."""

    async def save_complete(self, transcript: Transcript) -> ChatReply: ...

    async def save_partial(self, transcript: Transcript, failure: ApiError | None) -> None: ...


async def run(
    services: Services, turn: Turn, store: TurnStore, *, live: bool, journal: Journal | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """The events of the turn. Whatever ends it early, what was said until then is stored."""
    transcript = Transcript()
    with background.busy():
        try:
            yield TurnStarted(turn.conversation_id, turn.message_id)
            async with (
                _hold_conversation(services, turn),
                aclosing(_run_loop(services, turn, transcript, journal, live=live)) as events,
            ):
                async for event in events:
                    transcript.add(event)
                    yield event
                reply = await store.save_complete(transcript)
        except BaseException as error:
            # None when the caller left, or stopped the answer.
            failure = _failure_of(error, turn) if isinstance(error, Exception) else None
            outcome = "interrupted" if failure is None else "failed"
            metrics.TURNS.labels(turn.source, outcome).inc()
            # In a task of its own: a cancelled caller must not take the reply along.
            await asyncio.shield(background.spawn(store.save_partial(transcript, failure)))
            raise
    metrics.TURNS.labels(turn.source, "answered").inc()
    yield TurnFinished(reply, transcript.figures)


def _failure_of(error: Exception, turn: Turn) -> ApiError:
    """Names the answer that failed: it can be replaced by another one."""
    failure = error_mapping.to_api_error(error)
    if isinstance(failure, ProviderError):
        ids = {"conversation_id": turn.conversation_id, "message_id": turn.message_id}
        failure.details = {**(failure.details or {}), **ids}
    return failure


async def _run_loop(
    services: Services, turn: Turn, transcript: Transcript, journal: Journal | None, *, live: bool
) -> AsyncGenerator[LoopEvent, None]:
    queue = _STREAM_QUEUE if live else QueueLimits() if journal is None else _JOB_QUEUE
    config = _loop_config(services, turn, transcript.budget, queue, live=live)
    if journal is not None:
        fail_unknown_calls(journal.rounds, config.toolboxes)
    messages = await _messages(services, turn, config, transcript)
    transcript.seen = seen_turns.describe(turn.runtime, config, len(messages))
    async with aclosing(run_loop(config, messages, transcript.budget, journal)) as events:
        async for event in events:
            yield event
            if time.perf_counter() - transcript.started > TURN_SECONDS:
                raise ModelFailed(config.target.model, "timeout", _TOO_LONG)


async def final_reply(events: AsyncGenerator[StreamEvent, None]) -> ChatReply:
    """Runs a turn to its end."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TurnFinished):
                return event.reply
    raise RuntimeError("a turn ended without a reply")


def _loop_config(
    services: Services, turn: Turn, budget: TokenBudget, queue: QueueLimits, *, live: bool
) -> LoopConfig:
    runtime, client = turn.runtime, turn.client
    return LoopConfig(
        models=services.get(Models),
        tenant_id=runtime.tenant_id,
        target=runtime.target,
        temperature=(
            runtime.answer_temperature if client.temperature is None else client.temperature
        ),
        max_tokens=max_tokens_of(runtime, turn.speaker, client.max_tokens),
        toolboxes=toolboxes_for(services, runtime, budget, 0, turn.speaker.reader),
        live=live,
        response_format=client.response_format,
        queue=queue,
        client=ClientFunctions(
            client.functions, id_prefix_of(turn.message_id), client.takes_one_call
        ),
        tool_choice=client.tool_choice,
        options=client.options,
        # The libraries of these clients repeat a request themselves.
        may_retry=turn.source != "openai",
    )


def max_tokens_of(runtime: AgentRuntime, speaker: Speaker, wanted: int | None) -> int:
    """A caller may ask for less than the agent's limit; one who signed in also for all of it, where
    an answer is shorter otherwise.
    """
    if wanted is None:
        return runtime.answer_tokens
    return min(runtime.answer_tokens if speaker.is_visitor else runtime.max_tokens, wanted)


async def _messages(
    services: Services, turn: Turn, config: LoopConfig, transcript: Transcript
) -> list[Message]:
    window = await services.get(Models).window_of(config.target)
    *earlier, query = list_questions(turn.text, turn.past, turn.client.history)
    passages = await find_passages(
        services,
        turn.runtime,
        window,
        query,
        reader=turn.speaker.reader,
        has_attachments=bool(turn.attachments),
        earlier=earlier,
    )
    if passages is not None:
        transcript.passages = passages.sources
    prompt = transcript.quoted = passages.prompt if passages is not None else None
    system = history.system_message(turn.runtime.system_prompt, turn.context, prompt)
    said = [message.content for message in turn.client.before]
    room = history.room_for(window, config.max_tokens, system.content, turn.text, *said)
    agent = (turn.runtime.tenant_id, turn.runtime.agent_id)
    question = (turn.text, turn.attachments)
    quoted = await attached_texts.quote(services, agent, question, turn.past, window, room)
    client = turn.client
    asked = [Message("user", quoted.question, parts=client.parts)] if client.has_question else []
    if client.history is not None:
        return [system, *client.instructions, *client.history, *asked]
    with_calls = bool(client.functions or client.results)
    with_calls = with_calls or any(toolbox.offers for toolbox in config.toolboxes)
    past = history.select_history(
        quoted.past, quoted.budget, with_calls=with_calls, is_answering=bool(client.results)
    )
    messages = [system, *client.instructions, *past]
    if client.before:
        return [*history.merge_neighbours(messages), *client.before, *asked]
    return history.merge_neighbours([*messages, *asked])


@asynccontextmanager
async def _hold_conversation(services: Services, turn: Turn) -> AsyncIterator[None]:
    """Renews the turn's lease of the conversation; a job has one that needs no renewal."""
    if turn.holder != turn.message_id:
        yield
        return
    lease = (turn.runtime.tenant_id, turn.conversation_id, turn.holder, LEASE_SECONDS)

    async def renew() -> None:
        async with services.db.tx(turn.runtime.tenant_id, autocommit=True) as tx:
            await turn_queries.renew(tx, *lease)

    renewal = Renewal(_RENEW_SECONDS, renew)
    try:
        yield
    finally:
        renewal.stop()
