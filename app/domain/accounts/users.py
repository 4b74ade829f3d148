"""Administering users: never above one's own role, never the last administrator."""

import msgspec
from sqlalchemy import or_, select

from app.domain.accounts import one_time, queries, sessions
from app.domain.accounts.errors import LastAdmin, UserNotFound
from app.domain.accounts.events import (
    RoleChanged,
    UserDeactivated,
    UserDeleted,
    UserReactivated,
)
from app.domain.accounts.schemas import Role, Status, Users, UserView
from app.domain.events import service as events
from app.domain.events.event import Event
from app.domain.profile import service as profile
from app.http import paging
from app.http.errors import Forbidden, Unauthorized
from app.http.paging import Page
from app.kit import clock
from app.parts import Parts
from app.security.permissions import outranks
from app.security.principal import Principal
from app.security.sessions import require_standing
from db.fast import Row
from db.models import User
from db.session import Tx

_SORTABLE = {
    "email": User.email,
    "first_name": User.first_name,
    "last_name": User.last_name,
    "role": User.role,
    "status": User.status,
    "last_login_at": User.last_login_at,
    "created_at": User.created_at,
}


class Filter(msgspec.Struct, frozen=True):
    search: str | None = None
    role: Role | None = None
    status: Status | None = None


async def page_of(tx: Tx, page: Page, wanted: Filter, sort: str | None) -> Users:
    statement = select(User)
    if wanted.search:
        columns = (User.email, User.first_name, User.last_name)
        statement = statement.where(
            or_(*(paging.contains(column, wanted.search) for column in columns))
        )
    if wanted.role:
        statement = statement.where(User.role == wanted.role)
    if wanted.status:
        statement = statement.where(User.status == wanted.status)
    ordering = paging.order(sort, _SORTABLE, "-created_at", User.id)
    rows, total = await paging.fetch(tx, statement, page, ordering)
    return Users([_view(row) for row in rows], total, page.page, page.per_page)


async def get(tx: Tx, user_id: str) -> UserView:
    found = await (await tx.session()).scalar(select(User).where(User.id == user_id))
    if found is None:
        raise UserNotFound(f"There is no user {user_id[:64]}")
    return _view(found)


async def change_role(tx: Tx, parts: Parts, principal: Principal, user_id: str, role: Role) -> bool:
    """Ends the user's sessions, because their tokens name the old role. False when it is theirs."""
    user = await touchable(tx, principal, user_id)
    refuse_above(principal, role)
    if user.role == role:
        return False
    before, user.role = user.role, role
    if outranks(role, before):
        await _keep_an_admin(tx, principal, user, before)
        await queries.void_invitations(tx, user.id, clock.now())
    await _shut_out(tx, parts, user)
    await _tell(tx, user, RoleChanged(user.id, before, role))
    return True


async def deactivate(tx: Tx, parts: Parts, principal: Principal, user_id: str) -> None:
    user = await touchable(tx, principal, user_id)
    if user.status == "inactive":
        return
    user.status = "inactive"
    await _keep_an_admin(tx, principal, user, user.role)
    await queries.void_invitations(tx, user.id, clock.now())
    await _shut_out(tx, parts, user)
    await _tell(tx, user, UserDeactivated(user.id))


async def reactivate(tx: Tx, principal: Principal, user_id: str) -> None:
    user = await touchable(tx, principal, user_id)
    if user.status == "active":
        return
    user.status = "active"
    await _tell(tx, user, UserReactivated(user.id))


async def delete(tx: Tx, parts: Parts, principal: Principal, user_id: str) -> None:
    """For good. What is about the person goes with them; what they made stays with the tenant."""
    user = await touchable(tx, principal, user_id)
    await _keep_an_admin(tx, principal, user, user.role)
    await _shut_out(tx, parts, user)
    await queries.void_invitations(tx, user.id, clock.now())
    await queries.void_invitations_to(tx, user.email, clock.now())
    profile.forget_picture(tx, parts, user.avatar_key)
    await (await tx.session()).delete(user)
    await _tell(tx, user, UserDeleted(user.id, user.email, user.role))


async def touchable(tx: Tx, principal: Principal, user_id: str) -> User:
    """The user to act upon, locked. Somebody of another tenant is not there; who stands above the
    caller is there but cannot be touched.
    """
    await queries.lock_admins(tx)
    await require_standing(tx, principal)
    wanted = select(User).where(User.id == user_id).with_for_update()
    user = await (await tx.session()).scalar(wanted)
    if user is None:
        raise UserNotFound(f"There is no user {user_id[:64]}")
    refuse_above(principal, user.role)
    return user


async def lock_own(tx: Tx, principal: Principal) -> Row:
    """The caller's own row, locked until the end of this transaction."""
    user = await queries.lock_user(tx, principal.tenant_id, principal.user_id)
    if user is None:
        raise Unauthorized("This user no longer exists")
    await require_standing(tx, principal)
    return user


async def set_mfa(tx: Tx, tenant_id: str, user_id: str, *, enabled: bool) -> None:
    await queries.set_mfa(tx, tenant_id, user_id, clock.now(), enabled=enabled)


def refuse_above(principal: Principal, role: str) -> None:
    """Nobody grants, takes or touches a role above their own."""
    if outranks(principal.role, role):
        raise Forbidden(
            f"The role {role} stands above {principal.role}",
            details={"required": f"role:{role}", "your_role": principal.role},
        )


async def _keep_an_admin(tx: Tx, principal: Principal, user: User, role: str) -> None:
    """Somebody must be left who can put things right: for the instance, and for a tenant unless
    super_admin acts.
    """
    if role == "super_admin" and not await queries.other_super_admin(tx, user.id):
        raise LastAdmin("This is the last active super_admin; make another one first")
    if role not in {"super_admin", "tenant_admin"} or principal.is_super_admin:
        return
    if not await queries.other_admin(tx, user.tenant_id, user.id):
        raise LastAdmin("This is the tenant's last active administrator; make another one first")


async def _shut_out(tx: Tx, parts: Parts, user: User) -> None:
    """Nothing that the user holds works any more: sessions, half sign-ins, mailed links."""
    tenant_id, user_id = user.tenant_id, user.id
    await sessions.end_all(tx, parts.copies, tenant_id, user_id)
    await one_time.void(tx, tenant_id, user_id, one_time.RESET_PASSWORD, one_time.MFA)


async def _tell(tx: Tx, user: User, event: Event) -> None:
    await events.emit(tx, event, tenant_id=user.tenant_id)


def _view(row: User) -> UserView:
    return msgspec.convert(row, UserView, from_attributes=True)
