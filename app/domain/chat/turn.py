"""One turn of a conversation: an async generator of typed steps, from the question to the kept
reply. Sync, streamed, asynchronous, public and OpenAI-compatible chat are thin layers over it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from typing import Any, NoReturn, Protocol

import asyncpg
import msgspec

from app.domain.agents.brain import Brain
from app.domain.agents.errors import AgentNotFound
from app.domain.chat import history, queries
from app.domain.chat.calls import forget_unknown
from app.domain.chat.delegation import boxes_of
from app.domain.chat.errors import ConversationBusy, ConversationNotFound
from app.domain.chat.events import ChatMessage, ChatStarted
from app.domain.chat.history import Past
from app.domain.chat.schemas import (
    ChatReply,
    MessageStatus,
    ReplyMessage,
    Source,
    TokenUsage,
    ToolCallView,
)
from app.domain.chat.steps import Delta, Finished, Started, Step, Thought, ToolResult, ToolUse
from app.domain.chat.think import Journal, Mind, Spend, think
from app.domain.events import service as events
from app.domain.events.event import Event
from app.domain.models import prices
from app.domain.models.protocol import Message, ModelFailed
from app.http import metrics
from app.kit import background, clock, logs, trace
from app.kit.ids import new_id
from app.kit.renewal import Renewal
from app.kit.texts import as_json
from app.parts import Parts
from db.fast import Row
from db.session import Tx

log = logs.get("chat")

LEASE_SECONDS = 60.0
TURN_SECONDS = 900.0
_TOO_LONG = f"The turn took more than {TURN_SECONDS:g} seconds"
_RENEW_SECONDS = 20.0
_TITLE_CHARS = 80
# A job keeps its conversation until it ends in whatever way; nothing else frees it.
_FOR_A_JOB_SECONDS = 100 * 365 * 86400.0


class Who(msgspec.Struct, frozen=True):
    """Whose conversation it is: a user's, or a visitor's under an embed key."""

    user_id: str | None = None
    embed_key_id: str | None = None
    session_id: str | None = None


class Turn(msgspec.Struct, kw_only=True):
    brain: Brain
    who: Who
    source: Source
    conversation_id: str
    question_id: str
    message_id: str
    # Nobody was answered in it yet; and whether this very turn began it.
    is_new: bool
    is_opened: bool = False
    text: str
    context: dict[str, Any] | None = None
    past: list[Past] = []
    asked_at: datetime = msgspec.field(default_factory=clock.now)
    # An asynchronous chat keeps its question when it is accepted, and holds by its job's id.
    question_kept: bool = False
    holder: str
    # What a caller of the OpenAI-compatible endpoint may ask for, within the agent's own limits.
    temperature: float | None = None
    max_tokens: int | None = None
    response_format: dict[str, Any] | None = None
    told: list[Message] = []


class Talk:
    """What has been said and done so far; half of it is still worth keeping."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[str, ToolCallView] = {}
        self.functions: dict[str, str] = {}
        self.spend = Spend()
        self.started = time.perf_counter()

    def hear(self, step: Thought) -> None:
        match step:
            case Delta(delta):
                self.texts.append(delta)
            case ToolUse():
                self.functions[step.id] = step.function
                self.calls[step.id] = ToolCallView(
                    step.id, step.tool, step.tool_id, step.input, None, "failed", 0, step.parent_id
                )
            case ToolResult():
                call = self.calls[step.id]
                call.output, call.status = step.output, step.status
                call.execution_time_ms = step.execution_time_ms

    @property
    def content(self) -> str:
        return "".join(self.texts)

    @property
    def is_empty(self) -> bool:
        return not self.texts and not self.calls


class Keeper(Protocol):
    """Where a turn goes when it is over: kept whole, or as far as it came."""

    async def whole(self, talk: Talk) -> ChatReply: ...

    async def part(self, talk: Talk) -> None: ...


# Beginning


async def begin(
    tx: Tx,
    brain: Brain,
    who: Who,
    source: Source,
    text: str,
    *,
    conversation_id: str | None = None,
    context: dict[str, Any] | None = None,
    job_id: str | None = None,
) -> Turn:
    """Take the conversation for one turn, or begin one. 409 while somebody else has it."""
    question_id, message_id = new_id("msg"), new_id("msg")
    turn = Turn(
        brain=brain,
        who=who,
        source=source,
        conversation_id=conversation_id or new_id("cnv"),
        question_id=question_id,
        message_id=message_id,
        is_new=conversation_id is None,
        text=text,
        context=context,
        holder=job_id or message_id,
    )
    seconds = _FOR_A_JOB_SECONDS if job_id else LEASE_SECONDS
    held = (turn.conversation_id, brain.agent_id, turn.holder, seconds, who.user_id)
    if conversation_id is not None and who.embed_key_id is None:
        rows = await queries.resume(tx, brain.tenant_id, *held, with_job=job_id is not None)
    else:
        rows = await _open(tx, turn, *held)
    if not rows:
        await _refuse(tx, turn)
    first = rows[0]
    turn.is_opened = first["is_new"]
    turn.past = _folded(rows)
    if not turn.is_opened and first["as_of"] != first["message_count"]:
        turn.past = await past_of(tx, brain.tenant_id, turn.conversation_id)
    turn.is_new = is_new(turn.past)
    return turn


def is_new(past: list[Past]) -> bool:
    """A conversation counts as one once somebody was answered in it."""
    return all(item.role == "user" for item in past)


async def _open(tx: Tx, turn: Turn, *held: object) -> list[Row]:
    who, brain = turn.who, turn.brain
    started = ChatStarted(brain.agent_id, turn.conversation_id, who.user_id, turn.source)
    packed = events.packed([started], tenant_id=brain.tenant_id)
    given = (who.embed_key_id, who.session_id, turn.source, packed)
    try:
        return await queries.open_new(tx, brain.tenant_id, *held, *given)
    except asyncpg.ForeignKeyViolationError:
        raise AgentNotFound("This agent, or the key to it, was deleted at this moment") from None


async def _refuse(tx: Tx, turn: Turn) -> NoReturn:
    brain, who = turn.brain, turn.who
    known = who.embed_key_id is not None or await queries.exists(
        tx, brain.tenant_id, turn.conversation_id, brain.agent_id, who.user_id
    )
    if not known:
        raise ConversationNotFound(
            f"You have no conversation {turn.conversation_id[:64]} with this agent"
        )
    raise ConversationBusy("The agent is still answering in this conversation; wait for it to end")


async def past_of(tx: Tx, tenant_id: str, conversation_id: str) -> list[Past]:
    """The conversation so far."""
    return _folded(await queries.history(tx, tenant_id, conversation_id))


def _folded(rows: list[Row]) -> list[Past]:
    """Tool calls belong to the replies that they led to."""
    past: list[Past] = []
    calls: list[dict[str, Any]] = []
    for row in reversed(rows):
        if row["type"] == "message":
            past.append(Past(row["role"], row["content"] or "", calls))
            calls = []
        elif row["data"] is not None:
            calls.append(msgspec.json.decode(row["data"]))
    return past


# Running


async def run(
    parts: Parts, turn: Turn, keeper: Keeper, *, live: bool, journal: Journal | None = None
) -> AsyncGenerator[Step, None]:
    """The steps of the turn. Whatever ends it early, what was said until then is kept."""
    talk = Talk()
    with background.busy():
        try:
            yield Started(turn.conversation_id, turn.message_id)
            async with aclosing(_thoughts(parts, turn, talk, journal, live=live)) as steps:
                async for step in steps:
                    talk.hear(step)
                    yield step
            reply = await keeper.whole(talk)
        except BaseException:
            metrics.TURNS.labels(turn.source, "interrupted").inc()
            # In a task of its own: whoever is cancelled here must not take the reply along.
            await asyncio.shield(background.spawn(keeper.part(talk)))
            raise
    metrics.TURNS.labels(turn.source, "answered").inc()
    yield Finished(reply)


async def _thoughts(
    parts: Parts, turn: Turn, talk: Talk, journal: Journal | None, *, live: bool
) -> AsyncGenerator[Thought, None]:
    mind = _mind(parts, turn, talk.spend, live=live)
    if journal is not None:
        forget_unknown(journal.rounds, mind.boxes)
    messages = await _messages(parts, turn, mind)
    async with (
        _renewed(parts, turn),
        aclosing(think(mind, messages, talk.spend, journal)) as steps,
    ):
        async for step in steps:
            yield step
            if time.perf_counter() - talk.started > TURN_SECONDS:
                raise ModelFailed(mind.target.model, "timeout", _TOO_LONG)


async def reply_of(steps: AsyncGenerator[Step, None]) -> ChatReply:
    """For callers who want the end of it only."""
    async with aclosing(steps):
        async for step in steps:
            if isinstance(step, Finished):
                return step.reply
    raise RuntimeError("a turn ended without a reply")


def _mind(parts: Parts, turn: Turn, spend: Spend, *, live: bool) -> Mind:
    brain = turn.brain
    return Mind(
        models=parts.models,
        target=brain.target,
        temperature=brain.temperature if turn.temperature is None else turn.temperature,
        max_tokens=min(brain.max_tokens, turn.max_tokens or brain.max_tokens),
        boxes=boxes_of(parts, brain, spend, 0, public=turn.who.embed_key_id is not None),
        live=live,
        response_format=turn.response_format,
    )


async def _messages(parts: Parts, turn: Turn, mind: Mind) -> list[Message]:
    first = history.system_message(turn.brain.system_prompt, turn.context)
    question = Message("user", turn.text)
    if turn.told:
        return history.joined([first, *turn.told, question])
    window = await parts.models.window_of(mind.target)
    budget = history.budget_for(window, mind.max_tokens, first.content, turn.text)
    with_calls = any(box.offers for box in mind.boxes)
    past = history.fitting(turn.past, budget, with_calls=with_calls)
    return history.joined([first, *past, question])


@asynccontextmanager
async def _renewed(parts: Parts, turn: Turn) -> AsyncIterator[None]:
    """Hold the conversation for as long as it takes; a job holds it anyway."""
    if turn.holder != turn.message_id:
        yield
        return
    held = (turn.brain.tenant_id, turn.conversation_id, turn.holder, LEASE_SECONDS)

    async def renew() -> None:
        async with parts.db.tx(turn.brain.tenant_id, read_only=True) as tx:
            await queries.renew(tx, *held)

    renewal = Renewal(_RENEW_SECONDS, renew)
    try:
        yield
    finally:
        renewal.stop()


# Keeping


class WebKeeper:
    """Keeps a turn of the web tier: one statement, which frees the conversation as well."""

    def __init__(self, parts: Parts, turn: Turn, *, live: bool) -> None:
        self._parts = parts
        self._turn = turn
        self._live = live

    async def whole(self, talk: Talk) -> ChatReply:
        return await self._store(talk, "complete")

    async def part(self, talk: Talk) -> None:
        """Half a reply stays in the history. A question without any answer does not: whoever
        asked was told of the failure and will ask again.
        """
        if talk.is_empty:
            await self._release()
            if talk.spend.by_model:
                await self._bill(talk)
            return
        try:
            await self._store(talk, "interrupted")
        except ConversationNotFound:
            # Deleted meanwhile; or whole after all, when only the news of it was cut off.
            await self._bill(talk)
        except Exception:
            await self._release()
            raise

    async def _store(self, talk: Talk, status: MessageStatus) -> ChatReply:
        async with self._parts.db.tx(self._turn.brain.tenant_id, read_only=True) as tx:
            return await store(tx, self._turn, talk, status)

    async def _bill(self, talk: Talk) -> None:
        async with self._parts.db.tx(self._turn.brain.tenant_id, read_only=True) as tx:
            await bill(tx, self._turn, talk.spend)

    async def _release(self) -> None:
        """A conversation that nobody was told of goes with its failed beginning."""
        turn = self._turn
        told = self._live and turn.who.embed_key_id is None
        held = (turn.brain.tenant_id, turn.conversation_id, turn.holder)
        async with self._parts.db.tx(turn.brain.tenant_id, read_only=True) as tx:
            if turn.is_opened and not told:
                await queries.forget_empty(tx, *held)
            else:
                await queries.release(tx, *held)


async def bill(tx: Tx, turn: Turn, spend: Spend) -> None:
    """What was used although nothing of it could be kept."""
    who, own = turn.who.user_id, turn.brain.target.model
    usage = await usage_of(spend, turn.message_id, who, turn.source, own)
    ids = (turn.brain.agent_id, turn.conversation_id)
    correlation_id = trace.current().correlation_id
    await queries.add_usage(tx, turn.brain.tenant_id, *ids, as_json(usage), correlation_id)


async def store(
    tx: Tx, turn: Turn, talk: Talk, status: MessageStatus, more: list[Event] | None = None
) -> ChatReply:
    """Messages, calls, usage, cost and events together; `more` are events of the caller's."""
    now, brain = clock.now(), turn.brain
    spent = round((time.perf_counter() - talk.started) * 1000)
    reply = _reply(turn, talk, now)
    usage = await usage_of(
        talk.spend, turn.message_id, turn.who.user_id, turn.source, brain.target.model
    )
    # What belongs to the turn as a whole is on the row of the agent's own model.
    usage[0] |= {"turns": 1, "messages": 2, "response_time_ms": spent}
    usage[0]["conversations"] = int(turn.is_new)
    entries = _entries(turn, talk, reply, status, usage)
    happened: list[Event] = [] if turn.question_kept else [_said(turn, turn.question_id, "user")]
    happened.append(_said(turn, turn.message_id, "assistant", reply.message.content, status))
    kept = await queries.store(
        tx,
        brain.tenant_id,
        turn.conversation_id,
        turn.holder,
        1 if turn.question_kept else 2,
        title_of(turn.text),
        as_json(entries),
        as_json(usage),
        events.packed([*happened, *(more or [])], tenant_id=brain.tenant_id),
        trace.current().correlation_id,
    )
    if not kept:
        raise ConversationNotFound("This conversation was deleted while the agent was answering")
    return reply


def title_of(text: str) -> str:
    return " ".join(text.split())[:_TITLE_CHARS]


def _reply(turn: Turn, talk: Talk, now: datetime) -> ChatReply:
    spend = talk.spend
    total = spend.prompt_tokens + spend.completion_tokens
    return ChatReply(
        turn.conversation_id,
        ReplyMessage(turn.message_id, "assistant", talk.content, now),
        TokenUsage(spend.prompt_tokens, spend.completion_tokens, total),
        [],
        list(talk.calls.values()),
    )


def _said(
    turn: Turn,
    message_id: str,
    role: Any,
    content: str | None = None,
    status: MessageStatus = "complete",
) -> ChatMessage:
    told = turn.text if content is None else content
    return ChatMessage(
        turn.brain.agent_id,
        turn.conversation_id,
        message_id,
        role,
        status,
        told if turn.brain.log_messages else None,
    )


async def usage_of(
    spend: Spend, message_id: str, user_id: str | None, source: str, own: str
) -> list[dict[str, Any]]:
    """A row per model, the agent's own first."""
    by_model = {own: [0, 0], **spend.by_model}
    rows: list[dict[str, Any]] = []
    for model, (prompt_tokens, completion_tokens) in by_model.items():
        cost = await prices.cost_usd(model, prompt_tokens, completion_tokens)
        rows.append(
            {
                "message_id": message_id,
                "user_id": user_id,
                "source": source,
                "model": model,
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "cost_usd": round(cost, 9),
                "turns": 0,
                "conversations": 0,
                "messages": 0,
                "response_time_ms": 0,
            }
        )
    return rows


def _entries(
    turn: Turn,
    talk: Talk,
    reply: ChatReply,
    status: MessageStatus,
    usage: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    brain, done_at = turn.brain, reply.message.created_at
    entries: list[dict[str, Any]] = []

    def add(entry_id: str, kind: str, at: datetime, *, logged: bool, **more: Any) -> None:
        entry = {"n": len(entries), "id": entry_id, "type": kind, "created_at": at}
        entries.append({"status": "complete", "data": {}, **entry, "logged": logged, **more})

    if not turn.question_kept:
        said = {"role": "user", "content": turn.text}
        add(turn.question_id, "message", turn.asked_at, logged=brain.log_messages, **said)
    for call in reply.tool_calls:
        data = msgspec.to_builtins(call) | {"message_id": turn.message_id}
        data["function"] = talk.functions.get(call.id, "")
        add(
            new_id("tcl"), "tool_call", done_at, logged=brain.log_tool_calls, role="tool", data=data
        )
    content = {"role": "assistant", "content": reply.message.content, "status": status}
    add(turn.message_id, "message", done_at, logged=brain.log_messages, **content)
    for row in usage:
        shown = ("model", "prompt_tokens", "completion_tokens", "cost_usd", "response_time_ms")
        data = {name: row[name] for name in shown} | {"message_id": turn.message_id}
        add(new_id("tus"), "token_usage", done_at, logged=brain.log_token_usage, data=data)
    return entries
