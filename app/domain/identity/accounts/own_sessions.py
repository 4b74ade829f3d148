"""A user's own sessions: listing them, ending one of them."""

from functools import partial

from app.domain.platform.events import api as events
from app.kit import clock, paging
from app.kit.paging import Page, Paged
from app.security.principal import Principal
from app.security.sessions import SessionCache
from db.fast import Row
from db.session import Tx

from . import queries, user_queries
from .errors import SessionNotFound
from .events import SessionEndedByUser, UserSignedOut
from .schemas import SessionView
from .user_agents import describe_user_agent
from .users import lock_own_user


async def list_page(tx: Tx, principal: Principal, page: Page) -> Paged[SessionView]:
    rows, total = await user_queries.list_live_sessions(tx, principal.user_id, clock.now(), page)
    return paging.paged([_view(row, principal) for row in rows], total, page)


async def end(tx: Tx, cache: SessionCache, principal: Principal, session_id: str) -> None:
    """Ends one of the caller's live sessions; its tokens stop working at once."""
    # A request of a session that has just ended must not end others.
    await lock_own_user(tx, principal)
    ids = (principal.tenant_id, principal.user_id, session_id)
    if not await queries.end_own_session(tx, *ids, clock.now()):
        raise SessionNotFound(f"You have no session {session_id[:64]}")
    tx.after_commit.append(partial(cache.end_sessions, [session_id]))
    event: UserSignedOut | SessionEndedByUser = UserSignedOut(principal.user_id)
    if session_id != principal.session_id:
        event = SessionEndedByUser(principal.user_id, session_id)
    await events.emit(tx, event, tenant_id=principal.tenant_id)


def _view(row: Row, principal: Principal) -> SessionView:
    return user_queries.build_session(
        row,
        device=describe_user_agent(row["user_agent"]),
        is_current=row["id"] == principal.session_id,
    )
