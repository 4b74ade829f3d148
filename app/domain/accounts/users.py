"""Administering users: never above one's own role, never the last administrator."""

import msgspec

from app.domain.accounts import one_time, queries, sessions, user_queries
from app.domain.accounts.errors import LastAdmin, UserNotFound
from app.domain.accounts.events import (
    RoleChanged,
    UserDeactivated,
    UserDeleted,
    UserReactivated,
)
from app.domain.accounts.pictures import delete_picture
from app.domain.accounts.schemas import Role, Users, UserView
from app.domain.accounts.user_queries import UserFilter
from app.domain.area import Event
from app.domain.events import service as events
from app.kit import clock
from app.kit.errors import Forbidden, Unauthorized
from app.kit.paging import Page
from app.security.permissions import outranks
from app.security.principal import Principal
from app.security.sessions import require_active_session
from app.services import Services
from db.fast import Row
from db.models import User
from db.session import Tx


async def list_page(tx: Tx, page: Page, filters: UserFilter, sort: str | None) -> Users:
    rows, total = await user_queries.list_users(tx, page, filters, sort)
    views = [_view(row) for row in rows]
    return Users(views, total.count, page.page, page.per_page)


async def get(tx: Tx, user_id: str) -> UserView:
    user = await user_queries.find_user(tx, user_id)
    if user is None:
        raise UserNotFound(f"There is no user {user_id[:64]}")
    return _view(user)


async def change_role(
    tx: Tx, services: Services, principal: Principal, user_id: str, role: Role
) -> bool:
    """Ends the user's sessions, because their tokens name the old role. False when it is theirs."""
    user = await lock_user_to_change(tx, principal, user_id)
    refuse_above(principal, role)
    if user.role == role:
        return False
    before, user.role = user.role, role
    if outranks(role, before):
        await _require_another_admin(tx, principal, user, before)
        await queries.void_invitations(tx, user.id, clock.now())
    await _end_access(tx, services, user)
    await _emit(tx, user, RoleChanged(user.id, before, role))
    return True


async def deactivate(tx: Tx, services: Services, principal: Principal, user_id: str) -> None:
    user = await lock_user_to_change(tx, principal, user_id)
    if user.status == "inactive":
        return
    user.status = "inactive"
    await _require_another_admin(tx, principal, user, user.role)
    await queries.void_invitations(tx, user.id, clock.now())
    await _end_access(tx, services, user)
    await _emit(tx, user, UserDeactivated(user.id))


async def reactivate(tx: Tx, principal: Principal, user_id: str) -> None:
    user = await lock_user_to_change(tx, principal, user_id)
    if user.status == "active":
        return
    user.status = "active"
    await _emit(tx, user, UserReactivated(user.id))


async def delete(tx: Tx, services: Services, principal: Principal, user_id: str) -> None:
    """For good. What is about the person goes with them; what they made stays with the tenant."""
    user = await lock_user_to_change(tx, principal, user_id)
    await _require_another_admin(tx, principal, user, user.role)
    await _end_access(tx, services, user)
    await queries.void_invitations(tx, user.id, clock.now())
    await queries.void_invitations_to(tx, user.email, clock.now())
    delete_picture(tx, services, user.avatar_key)
    await (await tx.session()).delete(user)
    await _emit(tx, user, UserDeleted(user.id, user.email, user.role))


async def lock_user_to_change(tx: Tx, principal: Principal, user_id: str) -> User:
    """The user to change, locked. A user of another tenant is not found; one whose role is above
    the caller's is refused.
    """
    await queries.lock_admins(tx)
    await require_active_session(tx, principal)
    user = await user_queries.find_user(tx, user_id, for_update=True)
    if user is None:
        raise UserNotFound(f"There is no user {user_id[:64]}")
    refuse_above(principal, user.role)
    return user


async def lock_own(tx: Tx, principal: Principal) -> Row:
    """The caller's own row, locked until the end of this transaction."""
    user = await queries.lock_user(tx, principal.tenant_id, principal.user_id)
    if user is None:
        raise Unauthorized("This user no longer exists")
    await require_active_session(tx, principal)
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


async def _require_another_admin(tx: Tx, principal: Principal, user: User, role: str) -> None:
    """Somebody must be left who can put things right: for the instance, and for a tenant unless
    super_admin acts.
    """
    if role == "super_admin" and not await queries.other_super_admin(tx, user.id):
        raise LastAdmin("This is the last active super_admin; make another one first")
    if role not in {"super_admin", "tenant_admin"} or principal.is_super_admin:
        return
    if not await queries.other_admin(tx, user.tenant_id, user.id):
        raise LastAdmin("This is the tenant's last active administrator; make another one first")


async def _end_access(tx: Tx, services: Services, user: User) -> None:
    """Nothing that the user holds works any more: sessions, half sign-ins, mailed links."""
    tenant_id, user_id = user.tenant_id, user.id
    await sessions.end_all(tx, services.session_cache, tenant_id, user_id)
    await one_time.void(tx, tenant_id, user_id, one_time.RESET_PASSWORD, one_time.MFA)


async def _emit(tx: Tx, user: User, event: Event) -> None:
    await events.emit(tx, event, tenant_id=user.tenant_id)


def _view(row: User) -> UserView:
    return msgspec.convert(row, UserView, from_attributes=True)
