"""Stores a turn when it is over: all of it at once, or as much as there is."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import asyncpg
import msgspec

from app.domain.agents.llm.errors import ModelBusy, ModelFailed
from app.domain.area import Event
from app.domain.platform.events import api as events
from app.jobs import background
from app.kit import clock, logs, trace
from app.kit.errors import ApiError
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db import fast
from db.session import Tx

from . import attachment_queries, replays, seen_turns, turn_queries, turn_usage
from .client_input import without_images
from .errors import ConversationNotFound
from .events import ChatFailed, ChatMessage
from .schemas import PREVIEW, ChatReply, MessageStatus, ReplyMessage, TokenUsage, ToolCallView
from .stream_events import TurnFigures
from .turn import OnTokens, Transcript, Turn
from .turn_queries import FinishedConversation
from .turn_usage import usage_of_turn

log = logs.get("chat")

_TITLE_CHARS = 80


class TurnWriter:
    """Stores a turn of the web tier in one statement, which frees the conversation as well. Turns
    of one agent that end at the same time share it.
    """

    def __init__(self, services: Services, turn: Turn) -> None:
        self._services = services
        self._turn = turn
        self._on_tokens = turn.on_tokens

    async def save_complete(self, transcript: Transcript) -> ChatReply:
        await self._report_tokens(transcript)
        if not self._turn.client.is_stored:
            await self._discard(transcript)
            return _reply(self._turn, transcript, clock.now())
        return await self._store(transcript, "complete")

    async def save_partial(self, transcript: Transcript, failure: ApiError | None) -> None:
        """A turn that failed stays in the conversation, and so does half a reply. A question does
        not whose sender left before any answer, or was told by a busy model to come again.
        """
        await self._report_tokens(transcript)
        if not self._turn.client.is_stored:
            await self._discard(transcript, failure)
            return
        if transcript.is_empty and (failure is None or isinstance(failure, ModelBusy)):
            await self._release()
            if transcript.budget.by_model:
                await self._add_usage(transcript)
            return
        try:
            await self._store(transcript, "interrupted" if failure is None else "failed", failure)
        except ConversationNotFound:
            # Deleted meanwhile; or stored after all, when only the reply to that was cut off.
            await self._add_usage(transcript)
        except Exception:
            await self._release()
            raise

    async def _store(
        self, transcript: Transcript, status: MessageStatus, failure: ApiError | None = None
    ) -> ChatReply:
        services, runtime = self._services, self._turn.runtime
        finished = await _finish(self._turn, transcript, status, failure=failure)
        if self._turn.replaced_from is not None or self._turn.attachments or self._turn.replay:
            async with services.db.tx(runtime.tenant_id) as tx:
                await replays.copy_history(tx, self._turn)
                keeps_answer = failure is not None and not transcript.texts
                if not keeps_answer or self._turn.replaced_answer is None:
                    await mark_replaced(tx, self._turn)
                await _store_alone(tx, runtime.tenant_id, finished)
                if keeps_answer:
                    await _keep_replaced_answer(tx, self._turn)
                await keep_attachments(tx, self._turn)
            return finished.reply
        group = ("store_turn", runtime.tenant_id, runtime.agent_id)
        if not await services.batches.join(
            group, finished, partial(_store_all, services, runtime.tenant_id)
        ):
            async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
                await _store_alone(tx, runtime.tenant_id, finished)
        return finished.reply

    async def _discard(self, transcript: Transcript, failure: ApiError | None = None) -> None:
        """Keeps only the usage."""
        await self._release()
        counts = {"turns": 1, "messages": 2, "failures": int(failure is not None)}
        await self._add_usage(transcript, **counts)

    async def _report_tokens(self, transcript: Transcript) -> None:
        """Reports them once. In a task of its own: a caller who leaves now has used them."""
        budget, on_tokens = transcript.budget, self._on_tokens
        tokens = budget.prompt_tokens + budget.completion_tokens
        if on_tokens is not None and tokens:
            self._on_tokens = None
            await asyncio.shield(background.spawn(_report(on_tokens, tokens)))

    async def _add_usage(self, transcript: Transcript, **counts: int) -> None:
        async with self._services.db.tx(self._turn.runtime.tenant_id, autocommit=True) as tx:
            await turn_usage.add(tx, self._turn, transcript.budget, **counts)

    async def _release(self) -> None:
        """Frees the conversation, or deletes it where the failed turn had created it."""
        turn = self._turn
        is_known = turn.is_announced and turn.source in ("console", PREVIEW)
        lease = (turn.runtime.tenant_id, turn.conversation_id, turn.holder)
        async with self._services.db.tx(turn.runtime.tenant_id, autocommit=True) as tx:
            if turn.created_conversation and not is_known:
                await turn_queries.delete_empty(tx, *lease)
            else:
                await turn_queries.release(tx, *lease)


async def _report(on_tokens: OnTokens, tokens: int) -> None:
    try:
        await on_tokens(tokens)
    except Exception as error:  # noqa: BLE001  # the visitor gets the reply all the same
        log.warning("tokens were not counted", tokens=tokens, reason=str(error)[:200])


class _FinishedTurn(msgspec.Struct, frozen=True):
    """A turn that is over, as rows in JSON; without the brackets, for several in one list."""

    reply: ChatReply
    conversation: FinishedConversation
    entries: str
    usage: str
    events: str


async def store(
    tx: Tx,
    turn: Turn,
    transcript: Transcript,
    status: MessageStatus,
    more: Iterable[Event] = (),
) -> ChatReply:
    """Messages, calls, usage, cost and events together; `more` are events of the caller."""
    finished = await _finish(turn, transcript, status, more)
    await _store_alone(tx, turn.runtime.tenant_id, finished)
    return finished.reply


async def mark_replaced(tx: Tx, turn: Turn) -> None:
    ids = (turn.runtime.tenant_id, turn.conversation_id)
    if turn.replaced_from is not None:
        await turn_queries.mark_replaced(tx, *ids, turn.replaced_from, turn.message_id)


async def _keep_replaced_answer(tx: Tx, turn: Turn) -> None:
    """Leaves the earlier answer in the place of one that failed, which only the log has."""
    if turn.replaced_answer is not None:
        answer_id, seq = turn.replaced_answer
        ids = (turn.runtime.tenant_id, turn.conversation_id)
        await turn_queries.mark_replaced(tx, *ids, seq + 1, answer_id)


async def keep_attachments(tx: Tx, turn: Turn) -> None:
    """From now on they belong to the conversation, which is stored."""
    replayed = turn.replay.attachments if turn.replay is not None else []
    attached = [item.id for item in turn.attachments if item not in replayed]
    if attached:
        ids = (turn.runtime.tenant_id, turn.conversation_id)
        await attachment_queries.mark_used(tx, *ids, attached)


def question_data(turn: Turn) -> dict[str, Any]:
    data: dict[str, Any] = {"attachments": turn.attachments} if turn.attachments else {}
    return data | _said_before(turn)


def _said_before(turn: Turn) -> dict[str, Any]:
    before = turn.client.before
    return {"before": [without_images(message) for message in before]} if before else {}


async def _store_alone(tx: Tx, tenant_id: str, finished: _FinishedTurn) -> None:
    if not await _write(tx, tenant_id, [finished]):
        raise ConversationNotFound("This conversation was deleted while the agent was answering")


async def _store_all(
    services: Services, tenant_id: str, turns: list[_FinishedTurn]
) -> list[bool | Exception]:
    """True for those that were written. The others try again alone: an error or a lock of one
    does not stop its neighbours.
    """
    # A turn whose lease ran out may meet the next one of its conversation here.
    of_each = {turn.conversation.id: turn for turn in turns}
    try:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            written = await _write(tx, tenant_id, list(of_each.values()), together=True)
    except asyncpg.PostgresError as error:
        if not fast.was_refused(error):
            raise
        written = set()
    return [turn.conversation.holder in written for turn in turns]


async def _write(
    tx: Tx, tenant_id: str, turns: list[_FinishedTurn], *, together: bool = False
) -> set[str]:
    return await turn_queries.store(
        tx,
        tenant_id,
        [turn.conversation for turn in turns],
        f"[{','.join(turn.entries for turn in turns)}]",
        f"[{','.join(turn.usage for turn in turns)}]",
        f"[{','.join(turn.events for turn in turns)}]",
        together=together,
    )


async def _finish(
    turn: Turn,
    transcript: Transcript,
    status: MessageStatus,
    more: Iterable[Event] = (),
    failure: ApiError | None = None,
) -> _FinishedTurn:
    response_time_ms = transcript.elapsed_ms
    reply = _reply(turn, transcript, clock.now())
    usage = await usage_of_turn(turn, transcript.budget)
    # The row of the agent's own model has what belongs to the turn as a whole.
    usage[0] |= {"turns": 1, "messages": 2, "response_time_ms": response_time_ms}
    cost = round(sum(row["cost_usd"] for row in usage), 9)
    transcript.figures = TurnFigures(response_time_ms, transcript.first_token_ms, cost)
    usage[0] |= {"conversations": int(turn.is_new), "failures": int(failure is not None)}
    emitted = [*_list_events(turn, reply.message.content, status, failure), *more]
    if turn.source == PREVIEW:
        emitted = []
    conversation = FinishedConversation(
        turn.conversation_id,
        turn.holder,
        1 if turn.question_stored else 2,
        title_of(turn.text),
        trace.current().correlation_id,
    )
    return _FinishedTurn(
        reply,
        conversation,
        as_json(_entries(turn, transcript, reply, status, usage, failure))[1:-1],
        as_json(usage)[1:-1],
        events.encode_events(emitted, tenant_id=turn.runtime.tenant_id)[1:-1],
    )


def title_of(text: str) -> str:
    return " ".join(text.split())[:_TITLE_CHARS]


def _reply(turn: Turn, transcript: Transcript, now: datetime) -> ChatReply:
    budget = transcript.budget
    total = budget.prompt_tokens + budget.completion_tokens
    return ChatReply(
        turn.conversation_id,
        ReplyMessage(turn.message_id, "assistant", transcript.content, now),
        TokenUsage(budget.prompt_tokens, budget.completion_tokens, total),
        transcript.sources,
        list(transcript.calls.values()),
        transcript.finish_reason,
        transcript.is_refusal,
    )


def _list_events(
    turn: Turn, content: str, status: MessageStatus, failure: ApiError | None
) -> Iterator[Event]:
    if not turn.question_stored:
        yield _message_event(turn, turn.question_id, "user")
    if content or failure is None:
        yield _message_event(turn, turn.message_id, "assistant", content, status)
    if failure is not None:
        ids = (turn.runtime.agent_id, turn.conversation_id, turn.message_id)
        yield failed_event(*ids, turn.source, failure)


def failed_event(
    agent_id: str, conversation_id: str, message_id: str, source: str, failure: ApiError
) -> ChatFailed:
    reason = failure.reason if isinstance(failure, ModelFailed) else None
    return ChatFailed(agent_id, conversation_id, message_id, source, failure.code, reason)


def _message_event(
    turn: Turn,
    message_id: str,
    role: Any,
    content: str | None = None,
    status: MessageStatus = "complete",
) -> ChatMessage:
    text = turn.text if content is None else content
    return ChatMessage(
        turn.runtime.agent_id,
        turn.conversation_id,
        message_id,
        role,
        status,
        text if turn.runtime.log_messages else None,
    )


def _entries(
    turn: Turn,
    transcript: Transcript,
    reply: ChatReply,
    status: MessageStatus,
    usage: list[dict[str, Any]],
    failure: ApiError | None,
) -> list[dict[str, Any]]:
    runtime, done_at = turn.runtime, reply.message.created_at
    entries: list[dict[str, Any]] = []

    def add(entry_id: str, kind: str, at: datetime, *, logged: bool, **more: Any) -> None:
        entry = {"n": len(entries), "conversation_id": turn.conversation_id, "id": entry_id}
        entry |= {"type": kind, "created_at": at, "status": "complete", "data": {}}
        entries.append({**entry, "logged": logged and turn.source != PREVIEW, **more})

    if not turn.question_stored:
        question = {"role": "user", "content": turn.text, "data": question_data(turn)}
        add(turn.question_id, "message", turn.asked_at, logged=runtime.log_messages, **question)
    for call in reply.tool_calls:
        called = {"role": "tool", "data": _call_data(turn, transcript, call)}
        add(new_id("tcl"), "tool_call", done_at, logged=runtime.log_tool_calls, **called)
    text = reply.message.content
    answer: dict[str, Any] = {"role": "assistant", "content": text, "status": status}
    answer["data"] = _answer_data(turn, reply, failure)
    # A failure without a text is logged even where messages are not.
    add(turn.message_id, "message", done_at, logged=runtime.log_messages or not text, **answer)
    if transcript.seen is not None:
        seen = seen_turns.to_data(transcript.seen, runtime, turn.context, transcript.quoted)
        # Every passage, also those that the answer does not cite.
        seen["passages"] = transcript.passages if runtime.log_messages else []
        seen |= msgspec.structs.asdict(transcript.figures)
        add(seen_turns.id_of(turn.message_id), "context", done_at, logged=False, data=seen)
    for row in usage:
        shown = ("model", "prompt_tokens", "completion_tokens", "cost_usd", "response_time_ms")
        data = {name: row[name] for name in shown} | {"message_id": turn.message_id}
        add(new_id("tus"), "token_usage", done_at, logged=runtime.log_token_usage, data=data)
    return entries


def _call_data(turn: Turn, transcript: Transcript, call: ToolCallView) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(call) | {"message_id": turn.message_id}
    data["function"] = transcript.functions.get(call.id, "")
    return data | {"is_client": True} if call.status == "requested" else data


def _answer_data(turn: Turn, reply: ChatReply, failure: ApiError | None) -> dict[str, Any]:
    data: dict[str, Any] = {} if turn.client.has_question else _said_before(turn)
    if reply.finish_reason != "stop":
        data["finish_reason"] = reply.finish_reason
    if reply.is_refusal:
        data["is_refusal"] = True
    if turn.client.kept:
        data["client"] = {**turn.client.kept, "usage": reply.usage}
    if reply.sources:
        data["sources"] = msgspec.to_builtins(reply.sources)
    if failure is not None:
        data["error"] = {"code": failure.code, "message": failure.message}
    return data
