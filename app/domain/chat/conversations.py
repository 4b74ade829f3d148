"""Conversations and the agents' logs: reading, ending, deleting, forgetting."""

from typing import Any

import msgspec
from sqlalchemy import Select, select

from app.domain.agents import brain as brains
from app.domain.agents import service as agents
from app.domain.chat import queries
from app.domain.chat.errors import ConversationBusy, ConversationNotFound
from app.domain.chat.events import ChatCompleted
from app.domain.chat.schemas import (
    AgentStatus,
    ConversationView,
    LogEntry,
    MessageView,
    ToolCallView,
    Training,
)
from app.domain.events import service as events
from app.domain.tools import privacy as tools
from app.http import paging
from app.http.paging import Page, Paged
from app.kit import clock
from app.parts import Parts
from app.security.principal import Principal
from db.fast import tenant_of
from db.models import Conversation, ConversationEntry
from db.session import ALL_TENANTS, Tx

IDLE_SECONDS = 30 * 60
_BATCH = 500
_SORTABLE = {
    "created_at": Conversation.created_at,
    "last_message_at": Conversation.last_message_at,
    "message_count": Conversation.message_count,
}


async def page_of(
    tx: Tx,
    principal: Principal,
    agent_id: str,
    page: Page,
    *,
    status: str | None,
    search: str | None,
    sort: str | None,
) -> Paged[ConversationView]:
    """All of the agent's for those who may read them, otherwise one's own."""
    await agents.find(tx, agent_id)
    wanted = _visible(principal).where(Conversation.agent_id == agent_id)
    if status:
        ended = Conversation.ended_at.is_not(None)
        wanted = wanted.where(ended if status == "ended" else ~ended)
    if search:
        wanted = wanted.where(paging.contains(Conversation.title, search))
    ordering = paging.order(sort, _SORTABLE, "-last_message_at", Conversation.id)
    rows, total = await paging.fetch(tx, wanted, page, ordering)
    return paging.paged([_view(row) for row in rows], total, page)


async def get(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView:
    return _view(await _find(tx, principal, conversation_id, "conversations:read"))


async def messages(
    tx: Tx, principal: Principal, conversation_id: str, page: Page
) -> Paged[MessageView]:
    found = await _find(tx, principal, conversation_id, "conversations:read")
    wanted = select(ConversationEntry).where(
        ConversationEntry.conversation_id == found.id, ConversationEntry.type == "message"
    )
    rows, total = await paging.fetch(tx, wanted, page, [ConversationEntry.seq.asc()])
    calls = await _calls(tx, found.id, [row.id for row in rows if row.role == "assistant"])
    return paging.paged([_message(row, calls.get(row.id, [])) for row in rows], total, page)


async def _calls(
    tx: Tx, conversation_id: str, message_ids: list[str]
) -> dict[str, list[ToolCallView]]:
    found: dict[str, list[ToolCallView]] = {}
    if message_ids:
        for row in await queries.calls_of(tx, tenant_of(tx), conversation_id, message_ids):
            data = msgspec.json.decode(row["data"])
            view = msgspec.convert(data, ToolCallView)
            found.setdefault(data["message_id"], []).append(view)
    return found


async def end(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView:
    """Ending twice is ending once."""
    found = await _find(tx, principal, conversation_id, "conversations:write")
    completed = ChatCompleted(found.agent_id, found.id, "ended")
    packed = events.packed([completed], tenant_id=found.tenant_id)
    await queries.end(tx, found.tenant_id, found.id, packed)
    await (await tx.session()).refresh(found)
    return _view(found)


async def delete(tx: Tx, principal: Principal, conversation_id: str) -> None:
    found = await _find(tx, principal, conversation_id, "conversations:write", for_update=True)
    if found.turn_until is not None and found.turn_until > clock.now():
        raise ConversationBusy("The agent is still answering here; delete it once it is done")
    calls = await queries.call_ids(tx, found.tenant_id, found.id)
    await tools.forget_calls(tx, found.tenant_id, calls)
    session = await tx.session()
    await session.delete(found)
    await session.flush()
    began = (found.agent_id, found.id, found.created_at)
    await events.forget_conversation(tx, found.tenant_id, *began)


def _visible(principal: Principal) -> Select[Conversation]:
    wanted = select(Conversation)
    if not principal.may("conversations:read"):
        wanted = wanted.where(Conversation.user_id == principal.user_id)
    return wanted


async def _find(
    tx: Tx,
    principal: Principal,
    conversation_id: str,
    beyond_own: str,
    *,
    for_update: bool = False,
) -> Conversation:
    wanted = _visible(principal).where(Conversation.id == conversation_id)
    if for_update:
        wanted = wanted.with_for_update()
    found = await (await tx.session()).scalar(wanted)
    if found is None:
        raise ConversationNotFound(f"There is no conversation {conversation_id[:64]}")
    if found.user_id != principal.user_id:
        principal.require(beyond_own)
    return found


def _view(row: Conversation) -> ConversationView:
    return ConversationView(
        row.id,
        row.agent_id,
        row.user_id,
        row.source,  # type: ignore[arg-type]
        row.title,
        "active" if row.ended_at is None else "ended",
        row.message_count,
        row.created_at,
        row.last_message_at,
        row.ended_at,
    )


def _message(row: ConversationEntry, calls: list[ToolCallView]) -> MessageView:
    role: Any = row.role
    status: Any = row.status
    return MessageView(row.id, role, row.content or "", status, calls, [], row.created_at)


# What an agent is doing, and did


async def agent_status(parts: Parts, principal: Principal, agent_id: str) -> AgentStatus:
    async with parts.db.tx(principal.scope, read_only=True) as tx:
        brain = await brains.find(tx, parts.keyring, agent_id)
        talking = await queries.active(tx, tenant_of(tx), agent_id, IDLE_SECONDS)
    online = brain.status != "archived" and await parts.models.is_ready(brain.target)
    status: Any = brain.status
    return AgentStatus(agent_id, status, online, talking, Training())


async def log_of(tx: Tx, agent_id: str, page: Page, filters: tuple[object, ...]) -> Paged[LogEntry]:
    await agents.find(tx, agent_id)
    rows, total = await queries.log_page(
        tx, tenant_of(tx), agent_id, filters, page.per_page, page.offset
    )
    entries = [
        LogEntry(
            row["id"],
            row["conversation_id"],
            row["type"],
            row["role"],
            row["content"],
            msgspec.json.decode(row["data"]),
            row["created_at"],
        )
        for row in rows
    ]
    return paging.paged(entries, total, page)


async def end_idle(parts: Parts, seconds: float = IDLE_SECONDS) -> int:
    """End what nobody has written in for half an hour, for as long as there is something."""
    total = 0
    while True:
        async with parts.db.tx(ALL_TENANTS) as tx:
            rows = await queries.idle(tx, seconds, _BATCH)
            for row in rows:
                completed = ChatCompleted(row["agent_id"], row["id"], "idle")
                packed = events.packed([completed], tenant_id=row["tenant_id"])
                await queries.end(tx, row["tenant_id"], row["id"], packed, seconds)
        total += len(rows)
        if len(rows) < _BATCH:
            return total
