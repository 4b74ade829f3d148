"""SQL of the administration of users and invitations."""

import msgspec
from sqlalchemy import or_, select

from app.domain.accounts.schemas import Role, Status
from app.kit import paging
from app.kit.paging import Page
from db.counting import Total
from db.models import Invitation, User
from db.session import Tx

_USERS_SORTABLE = {
    "email": User.email,
    "first_name": User.first_name,
    "last_name": User.last_name,
    "role": User.role,
    "status": User.status,
    "last_login_at": User.last_login_at,
    "created_at": User.created_at,
}
_INVITATIONS_SORTABLE = {
    "email": Invitation.email,
    "expires_at": Invitation.expires_at,
    "created_at": Invitation.created_at,
}


class UserFilter(msgspec.Struct, frozen=True):
    search: str | None = None
    role: Role | None = None
    status: Status | None = None


async def list_users(
    tx: Tx, page: Page, filters: UserFilter, sort: str | None
) -> tuple[list[User], Total]:
    statement = select(User)
    if filters.search:
        columns = (User.email, User.first_name, User.last_name)
        statement = statement.where(
            or_(*(paging.contains(column, filters.search) for column in columns))
        )
    if filters.role:
        statement = statement.where(User.role == filters.role)
    if filters.status:
        statement = statement.where(User.status == filters.status)
    ordering = paging.order(sort, _USERS_SORTABLE, "-created_at", User.id)
    return await paging.fetch(tx, statement, page, ordering)


async def find_user(tx: Tx, user_id: str, *, for_update: bool = False) -> User | None:
    statement = select(User).where(User.id == user_id)
    if for_update:
        statement = statement.with_for_update()
    user: User | None = await (await tx.session()).scalar(statement)
    return user


async def list_invitations(tx: Tx, page: Page, sort: str | None) -> tuple[list[Invitation], Total]:
    ordering = paging.order(sort, _INVITATIONS_SORTABLE, "-created_at", Invitation.id)
    return await paging.fetch(tx, select(Invitation), page, ordering)


async def lock_invitation(tx: Tx, invitation_id: str) -> Invitation | None:
    statement = select(Invitation).where(Invitation.id == invitation_id).with_for_update()
    invitation: Invitation | None = await (await tx.session()).scalar(statement)
    return invitation
