"""Lists of conversations over all agents, and what each user has read of them."""

from datetime import datetime

from app.kit import cursors
from app.kit.cursors import Cursor
from app.kit.paging import Keyset
from app.security.principal import Principal
from db.session import Tx

from . import summary_queries
from .errors import ConversationNotFound
from .summary_queries import SummaryFilter
from .summary_schemas import ConversationSummary, ReadConversation, ReadUntil


async def list_page(
    tx: Tx, principal: Principal, filters: SummaryFilter, cursor: str | None, limit: int
) -> Keyset[ConversationSummary]:
    """Raises Forbidden for the agent of a service key that is for others."""
    if filters.agent_id is not None:
        principal.require_agent(filters.agent_id)
    after = None if cursor is None else cursors.decode(cursor)
    # One more than the page shows whether there is another page.
    views = await summary_queries.list_after(tx, principal, filters, after, limit + 1)
    page = views[:limit]
    if len(views) == len(page):
        return Keyset(page, None)
    return Keyset(page, Cursor(page[-1].last_message_at, page[-1].id).encode())


async def mark(
    tx: Tx, principal: Principal, conversation_id: str, *, is_unread: bool
) -> ReadConversation:
    if not await summary_queries.mark(tx, principal, conversation_id, is_unread=is_unread):
        raise ConversationNotFound(f"There is no conversation {conversation_id[:64]}")
    return ReadConversation(conversation_id, is_unread)


async def mark_all(tx: Tx, principal: Principal, until: datetime) -> ReadUntil:
    return ReadUntil(await summary_queries.mark_all(tx, principal, until))
