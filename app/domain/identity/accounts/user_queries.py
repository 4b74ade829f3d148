"""SQL of the lists of users, invitations and sessions."""

from datetime import datetime

import msgspec
from sqlalchemy import select

from app.kit import paging
from app.kit.paging import Page, SortOrders
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Invitation, User
from db.session import Tx
from db.views import View

from .schemas import InvitationEntry, Role, SessionView, Status, UserView

_USER_SORT_ORDERS = SortOrders(
    "-created_at",
    User.id,
    email=User.email,
    first_name=User.first_name,
    last_name=User.last_name,
    role=User.role,
    status=User.status,
    last_login_at=User.last_login_at,
    created_at=User.created_at,
)
_INVITATION_SORT_ORDERS = SortOrders(
    "-created_at",
    Invitation.id,
    email=Invitation.email,
    expires_at=Invitation.expires_at,
    created_at=Invitation.created_at,
)
_USER = View(UserView)
_INVITATION = View(InvitationEntry, computed=("status",))
_SESSION = View(SessionView, computed=("device", "is_current"))
build_invitation, build_session = _INVITATION.build, _SESSION.build
_NOT_REVOKED = "withdrawn_as IS DISTINCT FROM 'revoked'"
_FIND_USER = f"""
SELECT {_USER.columns} FROM users WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""


class UserFilter(msgspec.Struct, frozen=True):
    search: str | None = None
    role: Role | None = None
    status: Status | None = None


async def list_users(
    tx: Tx, page: Page, filters: UserFilter, sort: str | None
) -> tuple[list[UserView], Total]:
    where = Where(tenant_of(tx))
    where.contain(filters.search, "email", "first_name", "last_name")
    where.equal("role", filters.role)
    where.equal("status", filters.status)
    return await paging.fetch(tx, _USER, "users", where, _USER_SORT_ORDERS.sql(sort), page)


async def find_view(tx: Tx, user_id: str) -> UserView | None:
    return await _USER.find(tx, tenant_of(tx), _FIND_USER, user_id)


async def lock_user(tx: Tx, user_id: str) -> User | None:
    statement = select(User).where(User.id == user_id).with_for_update()
    user: User | None = await (await tx.session()).scalar(statement)
    return user


async def list_invitations(tx: Tx, page: Page, sort: str | None) -> tuple[list[Row], Total]:
    """Returns rows for `build_invitation`, with `used_at` besides."""
    return await paging.fetch_rows(
        tx,
        f"{_INVITATION.columns}, used_at",
        "invitations",
        Where(tenant_of(tx), _NOT_REVOKED),
        _INVITATION_SORT_ORDERS.sql(sort),
        page,
    )


async def lock_invitation(tx: Tx, invitation_id: str) -> Invitation | None:
    """Returns None for one that is revoked."""
    is_kept = Invitation.withdrawn_as.is_distinct_from("revoked")
    statement = select(Invitation).where(Invitation.id == invitation_id, is_kept).with_for_update()
    invitation: Invitation | None = await (await tx.session()).scalar(statement)
    return invitation


async def list_live_sessions(
    tx: Tx, user_id: str, at: datetime, page: Page
) -> tuple[list[Row], Total]:
    """Returns rows for `build_session`, the last used first."""
    where = Where(tenant_of(tx), "ended_at IS NULL")
    where.add("user_id = $n", user_id)
    where.add("expires_at > $n", at)
    order = "last_seen_at DESC, id DESC"
    return await paging.fetch_rows(
        tx, _SESSION.columns, "sessions", where, order, page, tenant_is_implied=True
    )
