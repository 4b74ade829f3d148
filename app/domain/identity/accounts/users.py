"""Administration of users. Callers cannot change users or grant roles above their own role, nor
remove the last administrator.
"""

from collections.abc import Mapping

from app.domain.area import Event
from app.domain.platform.events import api as events
from app.domain.platform.files import api as files
from app.kit import clock
from app.kit.errors import Forbidden, Unauthorized
from app.kit.paging import Page
from app.security.permissions import is_outranked_by
from app.security.principal import Principal
from app.security.sessions import require_active_session
from app.services import Services
from db.fast import Row
from db.models import User
from db.session import Tx

from . import invitation_queries, one_time_tokens, queries, sessions, user_queries
from .errors import LastAdmin, UserNotFound
from .events import RoleChanged, UserDeactivated, UserDeleted, UserReactivated
from .schemas import Role, Users, UserView
from .user_queries import UserFilter


def picture_path(tenant_id: str, key: str) -> str:
    """Returns where a picture is in the store."""
    return f"{files.FOLDER}{tenant_id}/avatar_{key}"


async def delete_picture(tx: Tx, services: Services, tenant_id: str, key: str | None) -> None:
    """Deletes the file after the commit, when no row refers to it."""
    if key is not None:
        await files.release(tx, services, tenant_id, [picture_path(tenant_id, key)])


async def list_page(tx: Tx, page: Page, filters: UserFilter, sort: str | None) -> Users:
    views, total = await user_queries.list_users(tx, page, filters, sort)
    return Users(views, total.count, page.page, page.per_page, not total.is_exact)


async def get(tx: Tx, user_id: str) -> UserView:
    view = await user_queries.find_view(tx, user_id)
    if view is None:
        raise UserNotFound(f"There is no user {user_id[:64]}")
    return view


async def change_role(
    tx: Tx, services: Services, principal: Principal, user_id: str, role: Role
) -> bool:
    """Changes the role and ends the user's sessions, whose tokens contain the old role.

    False when the user has this role already.
    """
    user = await lock_user_to_change(tx, principal, user_id)
    refuse_higher_role(principal, role)
    if user.role == role:
        return False
    before, user.role = user.role, role
    if is_outranked_by(role, before):
        await _require_another_admin(tx, principal, user, before)
        await invitation_queries.void_by(tx, user.id, clock.now())
    await _end_access(tx, services, user)
    await _emit(tx, user, RoleChanged(user.id, before, role))
    return True


async def deactivate(tx: Tx, services: Services, principal: Principal, user_id: str) -> None:
    user = await lock_user_to_change(tx, principal, user_id)
    if user.status == "inactive":
        return
    user.status = "inactive"
    await _require_another_admin(tx, principal, user, user.role)
    await invitation_queries.void_by(tx, user.id, clock.now())
    await _end_access(tx, services, user)
    await _emit(tx, user, UserDeactivated(user.id))


async def reactivate(tx: Tx, principal: Principal, user_id: str) -> None:
    user = await lock_user_to_change(tx, principal, user_id)
    if user.status == "active":
        return
    user.status = "active"
    await _emit(tx, user, UserReactivated(user.id))


async def delete(tx: Tx, services: Services, principal: Principal, user_id: str) -> None:
    """Deletes the user and their personal data; resources they created stay with the tenant."""
    user = await lock_user_to_change(tx, principal, user_id)
    await _require_another_admin(tx, principal, user, user.role)
    await _end_access(tx, services, user)
    await invitation_queries.void_by(tx, user.id, clock.now())
    await invitation_queries.void_to(tx, user.email, clock.now(), "voided")
    await delete_picture(tx, services, user.tenant_id, user.avatar_key)
    await (await tx.session()).delete(user)
    await _emit(tx, user, UserDeleted(user.id, user.email, user.role))


async def lock_administration(tx: Tx, _parameters: Mapping[str, str]) -> None:
    """Comes before the lock of a user, as in every change of one."""
    await queries.lock_admins(tx)


async def lock_user_to_change(tx: Tx, principal: Principal, user_id: str) -> User:
    """Locks and returns the user. Raises UserNotFound for a user of another tenant, and Forbidden
    for one whose role is above the caller's.
    """
    await queries.lock_admins(tx)
    await require_active_session(tx, principal)
    user = await user_queries.lock_user(tx, user_id)
    if user is None:
        raise UserNotFound(f"There is no user {user_id[:64]}")
    refuse_higher_role(principal, user.role)
    return user


async def lock_own_user(tx: Tx, principal: Principal) -> Row:
    """Returns the caller's row, locked until the end of the transaction."""
    user = await queries.lock_user(tx, principal.tenant_id, principal.user_id)
    if user is None:
        raise Unauthorized("This user no longer exists")
    await require_active_session(tx, principal)
    return user


async def set_mfa(tx: Tx, tenant_id: str, user_id: str, *, enabled: bool) -> None:
    await queries.set_mfa(tx, tenant_id, user_id, clock.now(), enabled=enabled)


def refuse_higher_role(principal: Principal, role: str) -> None:
    """Raises Forbidden when `role` is above the caller's role."""
    if is_outranked_by(principal.role, role):
        raise Forbidden(
            f"The role {role} is above {principal.role}",
            details={"required": f"role:{role}", "your_role": principal.role},
        )


async def _require_another_admin(tx: Tx, principal: Principal, user: User, role: str) -> None:
    """Raises LastAdmin unless another administrator stays active: in the instance, and in the
    tenant unless the caller is super_admin.
    """
    if role == "super_admin" and not await queries.has_other_super_admin(tx, user.id):
        raise LastAdmin("This is the last active super_admin; make another one first")
    if role not in {"super_admin", "tenant_admin"} or principal.is_super_admin:
        return
    if not await queries.has_other_admin(tx, user.tenant_id, user.id):
        raise LastAdmin("This is the tenant's last active administrator; make another one first")


async def _end_access(tx: Tx, services: Services, user: User) -> None:
    """Ends the user's sessions and voids their pending MFA sign-ins and password resets."""
    tenant_id, user_id = user.tenant_id, user.id
    await sessions.end_all(tx, services.session_cache, tenant_id, user_id)
    await one_time_tokens.void_tokens(
        tx, tenant_id, user_id, one_time_tokens.RESET_PASSWORD, one_time_tokens.MFA
    )


async def _emit(tx: Tx, user: User, event: Event) -> None:
    await events.emit(tx, event, tenant_id=user.tenant_id)
