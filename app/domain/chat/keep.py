"""How a turn ends: all of it is kept at once, or as much as there is."""

import time
from datetime import datetime
from functools import partial
from typing import Any

import asyncpg
import msgspec

from app.domain.chat import queries
from app.domain.chat.errors import ConversationNotFound
from app.domain.chat.events import ChatMessage
from app.domain.chat.queries import Freed
from app.domain.chat.schemas import ChatReply, MessageStatus, ReplyMessage, TokenUsage
from app.domain.chat.think import Spend
from app.domain.chat.turn import Talk, Turn
from app.domain.events import service as events
from app.domain.events.event import Event
from app.domain.models import prices
from app.kit import clock, trace
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.parts import Parts
from db import fast
from db.session import Tx

_TITLE_CHARS = 80


class WebKeeper:
    """Keeps a turn of the web tier: one statement, which frees the conversation as well. Turns of
    one agent that end at the same time share it.
    """

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
        parts, brain = self._parts, self._turn.brain
        ended = await _ended(self._turn, talk, status)
        lane = ("keep", brain.tenant_id, brain.agent_id)
        if not await parts.batches.join(lane, ended, partial(_store_all, parts, brain.tenant_id)):
            async with parts.db.tx(brain.tenant_id, read_only=True) as tx:
                await _store_alone(tx, brain.tenant_id, ended)
        return ended.reply

    async def _bill(self, talk: Talk) -> None:
        async with self._parts.db.tx(self._turn.brain.tenant_id, read_only=True) as tx:
            await bill(tx, self._turn, talk.spend)

    async def _release(self) -> None:
        """A conversation that nobody was told of goes with its failed beginning."""
        turn = self._turn
        told = self._live and turn.source == "console"
        held = (turn.brain.tenant_id, turn.conversation_id, turn.holder)
        async with self._parts.db.tx(turn.brain.tenant_id, read_only=True) as tx:
            if turn.is_opened and not told:
                await queries.forget_empty(tx, *held)
            else:
                await queries.release(tx, *held)


class _Ended(msgspec.Struct, frozen=True):
    """A turn that is over, as rows in JSON; without the brackets, for several in one list."""

    reply: ChatReply
    conversation: Freed
    entries: str
    usage: str
    events: str


async def store(
    tx: Tx, turn: Turn, talk: Talk, status: MessageStatus, more: list[Event] | None = None
) -> ChatReply:
    """Messages, calls, usage, cost and events together; `more` are events of the caller's."""
    ended = await _ended(turn, talk, status, more)
    await _store_alone(tx, turn.brain.tenant_id, ended)
    return ended.reply


async def _store_alone(tx: Tx, tenant_id: str, ended: _Ended) -> None:
    if not await _write(tx, tenant_id, [ended]):
        raise ConversationNotFound("This conversation was deleted while the agent was answering")


async def _store_all(parts: Parts, tenant_id: str, turns: list[_Ended]) -> list[bool | Exception]:
    """Those that it could write. The others are to try alone: what is wrong with one, or in its
    way, is nobody else's affair.
    """
    # A turn whose lease ran out may meet the next one of its conversation here.
    of_each = {turn.conversation.id: turn for turn in turns}
    try:
        async with parts.db.tx(tenant_id, read_only=True) as tx:
            kept = await _write(tx, tenant_id, list(of_each.values()), together=True)
    except asyncpg.PostgresError as error:
        if not fast.was_refused(error):
            raise
        kept = set()
    return [turn.conversation.holder in kept for turn in turns]


async def _write(
    tx: Tx, tenant_id: str, turns: list[_Ended], *, together: bool = False
) -> set[str]:
    return await queries.store(
        tx,
        tenant_id,
        [turn.conversation for turn in turns],
        f"[{','.join(turn.entries for turn in turns)}]",
        f"[{','.join(turn.usage for turn in turns)}]",
        f"[{','.join(turn.events for turn in turns)}]",
        together=together,
    )


async def bill(tx: Tx, turn: Turn, spend: Spend) -> None:
    """What was used although nothing of it could be kept."""
    usage = await _usage(turn, spend)
    agent_id, correlation_id = turn.brain.agent_id, trace.current().correlation_id
    await queries.add_usage(tx, turn.brain.tenant_id, agent_id, as_json(usage), correlation_id)


async def _ended(
    turn: Turn, talk: Talk, status: MessageStatus, more: list[Event] | None = None
) -> _Ended:
    spent = round((time.perf_counter() - talk.started) * 1000)
    reply = _reply(turn, talk, clock.now())
    usage = await _usage(turn, talk.spend)
    # What belongs to the turn as a whole is on the row of the agent's own model.
    usage[0] |= {"turns": 1, "messages": 2, "response_time_ms": spent}
    usage[0]["conversations"] = int(turn.is_new)
    happened: list[Event] = [] if turn.question_kept else [_said(turn, turn.question_id, "user")]
    happened.append(_said(turn, turn.message_id, "assistant", reply.message.content, status))
    conversation = Freed(
        turn.conversation_id,
        turn.holder,
        1 if turn.question_kept else 2,
        title_of(turn.text),
        trace.current().correlation_id,
    )
    return _Ended(
        reply,
        conversation,
        as_json(_entries(turn, talk, reply, status, usage))[1:-1],
        as_json(usage)[1:-1],
        events.packed([*happened, *(more or [])], tenant_id=turn.brain.tenant_id)[1:-1],
    )


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


async def _usage(turn: Turn, spend: Spend) -> list[dict[str, Any]]:
    own, ids = turn.brain.target.model, (turn.conversation_id, turn.message_id)
    return await usage_of(spend, own, *ids, turn.who.user_id, turn.source)


async def usage_of(
    spend: Spend,
    own: str,
    conversation_id: str,
    message_id: str,
    user_id: str | None,
    source: str,
) -> list[dict[str, Any]]:
    """A row per model, the agent's own first."""
    by_model = {own: [0, 0], **spend.by_model}
    rows: list[dict[str, Any]] = []
    for model, (prompt_tokens, completion_tokens) in by_model.items():
        cost = await prices.cost_usd(model, prompt_tokens, completion_tokens)
        rows.append(
            {
                "conversation_id": conversation_id,
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
        entry = {"n": len(entries), "conversation_id": turn.conversation_id, "id": entry_id}
        entry |= {"type": kind, "created_at": at, "status": "complete", "data": {}}
        entries.append({**entry, "logged": logged, **more})

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
