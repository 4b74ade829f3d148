"""Conversations and the agents' logs: reading, ending, deleting."""

from typing import Any

from app.domain.agents.definition import api as agents
from app.domain.agents.llm.api import Models
from app.domain.agents.tools import api as tools
from app.domain.area import TrainingOutcome
from app.domain.platform.events import api as events
from app.kit import clock, paging, trace
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json
from app.security.principal import Principal
from app.services import Services
from db.fast import Row, tenant_of
from db.models import Conversation
from db.session import ALL_TENANTS, Tx

from . import queries, training_queries
from .errors import ConversationBusy, ConversationNotFound
from .events import ChatCompleted
from .queries import ConversationFilter, LogFilter
from .schemas import AgentStatus, ConversationView, LogEntry, MessagePage, Training

IDLE_SECONDS = 30 * 60
_BATCH = 500


async def list_page(
    tx: Tx, principal: Principal, agent_id: str, page: Page, filters: ConversationFilter
) -> Paged[ConversationView]:
    """All of the agent's for those who may read them, otherwise one's own."""
    views, total = await queries.list_page(tx, principal, agent_id, page, filters)
    if not views:
        await agents.require(tx, agent_id)
    return paging.paged(views, total, page)


async def get(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView:
    view = await queries.find_view(tx, principal, conversation_id)
    if view is None:
        raise _not_found(conversation_id)
    return view


async def require(tx: Tx, principal: Principal, conversation_id: str) -> None:
    """Raises ConversationNotFound for a conversation that the principal may not read."""
    if await queries.find(tx, principal, conversation_id) is None:
        raise _not_found(conversation_id)


async def list_messages(
    tx: Tx, principal: Principal, conversation_id: str, page: Page
) -> MessagePage:
    views, total = await queries.list_messages(tx, principal, conversation_id, page)
    if not views:
        await get(tx, principal, conversation_id)
    return MessagePage(views, paging.paged(views, total, page).pagination)


async def end(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView:
    """Does nothing when the conversation is ended already. 409 while the agent is answering in it:
    the reply must not arrive in an ended conversation.
    """
    conversation = await _find(tx, principal, conversation_id, "conversations:write")
    completed = ChatCompleted(conversation.agent_id, conversation.id, "ended")
    encoded = events.encode_events([completed], tenant_id=conversation.tenant_id)
    await queries.end(tx, conversation.tenant_id, [conversation.id], encoded)
    view = await get(tx, principal, conversation_id)
    if view.status == "active":
        raise ConversationBusy(
            "The agent is still answering in this conversation; end it once it is done"
        )
    return view


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
        raise _not_found(conversation_id)
    if conversation.user_id != principal.user_id:
        principal.require(permission)
    return conversation


def _not_found(conversation_id: str) -> ConversationNotFound:
    return ConversationNotFound(f"There is no conversation {conversation_id[:64]}")


# The agent's status and log


async def get_agent_status(services: Services, principal: Principal, agent_id: str) -> AgentStatus:
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.find_runtime(tx, services.keyring, agent_id)
        activity = await queries.load_activity(tx, tenant_of(tx), agent_id, IDLE_SECONDS)
    is_online = runtime.status != "archived" and await services.get(Models).is_ready(runtime.target)
    status: Any = runtime.status
    active, training = activity["conversations"], _build_training(activity)
    return AgentStatus(agent_id, status, is_online, active, training)


def _build_training(activity: Row) -> Training:
    """One document that failed does not make the training fail."""
    total, done = activity["documents"], activity["documents_done"]
    if not total:
        return Training()
    if done < total:
        return Training("training", total, done)
    return Training("failed" if activity["documents_failed"] == total else "ready", total, done)


async def log_training(tx: Tx, outcome: TrainingOutcome) -> None:
    """Adds an entry to the agent's log that belongs to no conversation."""
    columns = (outcome.agent_id, outcome.summary, as_json(outcome.data))
    correlation_id = trace.current().correlation_id
    await training_queries.add(tx, outcome.tenant_id, new_id("trn"), *columns, correlation_id)


async def list_log(tx: Tx, agent_id: str, page: Page, filters: LogFilter) -> Paged[LogEntry]:
    entries, total = await queries.list_log(tx, agent_id, filters, page)
    if not entries:
        await agents.require(tx, agent_id)
    return paging.paged(entries, total, page)


async def end_idle(services: Services, seconds: float = IDLE_SECONDS) -> int:
    """Ends conversations without a message for half an hour, until none is left."""
    total = 0
    while True:
        async with services.db.tx(ALL_TENANTS) as tx:
            rows = await queries.lock_idle(tx, seconds, _BATCH)
            if rows:
                encoded = ",".join(map(_encode_idle_event, rows))
                await queries.end(tx, tenant_of(tx), [row["id"] for row in rows], f"[{encoded}]")
        total += len(rows)
        if len(rows) < _BATCH:
            return total


def _encode_idle_event(row: Row) -> str:
    completed = ChatCompleted(row["agent_id"], row["id"], "idle")
    return events.encode_events([completed], tenant_id=row["tenant_id"])[1:-1]
