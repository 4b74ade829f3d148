"""Conversations and the agents' logs: reading, ending, deleting."""

from typing import Any

import msgspec

from app.domain.agents import service as agents
from app.domain.chat import queries
from app.domain.chat.errors import ConversationBusy, ConversationNotFound
from app.domain.chat.events import ChatCompleted
from app.domain.chat.queries import ConversationFilter
from app.domain.chat.schemas import (
    AgentStatus,
    ConversationView,
    LogEntry,
    MessageView,
    ToolCallView,
    Training,
)
from app.domain.events import service as events
from app.domain.models.service import Models
from app.domain.tools import service as tools
from app.kit import clock, paging
from app.kit.paging import Page, Paged
from app.security.principal import Principal
from app.services import Services
from db.fast import tenant_of
from db.models import Conversation, ConversationEntry
from db.session import ALL_TENANTS, Tx

IDLE_SECONDS = 30 * 60
_BATCH = 500


async def list_page(
    tx: Tx, principal: Principal, agent_id: str, page: Page, filters: ConversationFilter
) -> Paged[ConversationView]:
    """All of the agent's for those who may read them, otherwise one's own."""
    await agents.find(tx, agent_id)
    rows, total = await queries.list_page(tx, principal, agent_id, page, filters)
    return paging.paged([_view(row) for row in rows], total, page)


async def get(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView:
    return _view(await _find(tx, principal, conversation_id, "conversations:read"))


async def list_messages(
    tx: Tx, principal: Principal, conversation_id: str, page: Page
) -> Paged[MessageView]:
    conversation = await _find(tx, principal, conversation_id, "conversations:read")
    rows, total = await queries.list_messages(tx, conversation.id, page)
    calls = await _calls(tx, conversation.id, [row.id for row in rows if row.role == "assistant"])
    return paging.paged([_message(row, calls.get(row.id, [])) for row in rows], total, page)


async def _calls(
    tx: Tx, conversation_id: str, message_ids: list[str]
) -> dict[str, list[ToolCallView]]:
    calls: dict[str, list[ToolCallView]] = {}
    if message_ids:
        for row in await queries.list_calls(tx, tenant_of(tx), conversation_id, message_ids):
            data = msgspec.json.decode(row["data"])
            view = msgspec.convert(data, ToolCallView)
            calls.setdefault(data["message_id"], []).append(view)
    return calls


async def end(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView:
    """Does nothing when the conversation is ended already."""
    conversation = await _find(tx, principal, conversation_id, "conversations:write")
    completed = ChatCompleted(conversation.agent_id, conversation.id, "ended")
    encoded = events.encode_events([completed], tenant_id=conversation.tenant_id)
    await queries.end(tx, conversation.tenant_id, conversation.id, encoded)
    await (await tx.session()).refresh(conversation)
    return _view(conversation)


async def delete(tx: Tx, principal: Principal, conversation_id: str) -> None:
    conversation = await _find(
        tx, principal, conversation_id, "conversations:write", for_update=True
    )
    if conversation.turn_until is not None and conversation.turn_until > clock.now():
        raise ConversationBusy("The agent is still answering here; delete it once it is done")
    tenant_id = conversation.tenant_id
    call_ids = await queries.list_call_ids(tx, tenant_id, conversation.id)
    await tools.clear_calls(tx, tenant_id, call_ids)
    session = await tx.session()
    await session.delete(conversation)
    await session.flush()
    await events.delete_conversation_events(
        tx, tenant_id, conversation.agent_id, conversation.id, conversation.created_at
    )


async def _find(
    tx: Tx,
    principal: Principal,
    conversation_id: str,
    permission: str,
    *,
    for_update: bool = False,
) -> Conversation:
    """The conversation of another user needs the permission."""
    conversation = await queries.find(tx, principal, conversation_id, for_update=for_update)
    if conversation is None:
        raise ConversationNotFound(f"There is no conversation {conversation_id[:64]}")
    if conversation.user_id != principal.user_id:
        principal.require(permission)
    return conversation


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


# The agent's status and log


async def get_agent_status(services: Services, principal: Principal, agent_id: str) -> AgentStatus:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.find_runtime(tx, services.keyring, agent_id)
        active = await queries.count_active(tx, tenant_of(tx), agent_id, IDLE_SECONDS)
    is_online = runtime.status != "archived" and await services.get(Models).is_ready(runtime.target)
    status: Any = runtime.status
    return AgentStatus(agent_id, status, is_online, active, Training())


async def list_log(
    tx: Tx, agent_id: str, page: Page, filters: tuple[object, ...]
) -> Paged[LogEntry]:
    await agents.find(tx, agent_id)
    rows, total = await queries.list_log(tx, tenant_of(tx), agent_id, filters, page)
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


async def end_idle(services: Services, seconds: float = IDLE_SECONDS) -> int:
    """Ends conversations without a message for half an hour, until none is left."""
    total = 0
    while True:
        async with services.db.tx(ALL_TENANTS) as tx:
            rows = await queries.list_idle(tx, seconds, _BATCH)
            for row in rows:
                completed = ChatCompleted(row["agent_id"], row["id"], "idle")
                encoded = events.encode_events([completed], tenant_id=row["tenant_id"])
                await queries.end(tx, row["tenant_id"], row["id"], encoded, seconds)
        total += len(rows)
        if len(rows) < _BATCH:
            return total
