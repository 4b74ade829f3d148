"""Permissions of roles: defined in code, granted by rows, changed by super_admin."""

from collections.abc import Mapping
from functools import partial
from typing import get_args

from app.domain.area import Areas
from app.domain.identity.accounts.schemas import Role
from app.domain.platform.events import api as events
from app.domain.platform.history import api as history
from app.kit.errors import Forbidden, Invalid
from app.security.permissions import ROLES
from app.security.principal import Principal
from app.security.sessions import bump_grants, require_active_session
from app.services import Services
from db.session import Tx

from . import queries
from .errors import RoleNotFound
from .events import RolePermissionsChanged
from .schemas import Permissions, PermissionsSet, PermissionView, RolePermissions, SetPermissions


def list_permissions(areas: Areas) -> Permissions:
    """By category; within one, in the order in which its area declares them."""
    ordered = sorted(areas.permissions, key=lambda permission: permission.category)
    return Permissions(
        [
            PermissionView(item.key, item.description, item.category, item.instance_wide)
            for item in ordered
        ]
    )


def get_own_permissions(principal: Principal) -> RolePermissions:
    return RolePermissions(_validate_role(principal.role), sorted(principal.permissions))


async def get(tx: Tx, name: str) -> RolePermissions:
    role = _validate_role(name)
    return RolePermissions(role, sorted(await queries.list_granted(tx, role)))


async def lock_grants(tx: Tx, _parameters: Mapping[str, str]) -> None:
    """Waits for other changes of permissions; the version that it takes counts up once more."""
    await bump_grants(tx)


async def set_permissions(
    tx: Tx, services: Services, principal: Principal, name: str, data: SetPermissions
) -> PermissionsSet:
    """Replaces the permissions of a role, effective on the next request of live sessions."""
    role = _validate_role(name)
    if not principal.is_super_admin:
        # Grants apply to the whole instance, so no permission is enough to change them.
        raise Forbidden(
            "Only super_admin can change the permissions of roles",
            details={"required": "role:super_admin", "your_role": principal.role},
        )
    areas = services.get(Areas)
    permissions = _validate_permissions(areas, role, data)
    version = await bump_grants(tx)
    await require_active_session(tx, principal)
    granted = await queries.list_granted(tx, role)
    added, removed = sorted(permissions - granted), sorted(granted - permissions)
    if added or removed:
        await queries.change_grants(tx, role, added, removed)
        history.note(
            tx,
            "role",
            role,
            role,
            tenant_id=principal.tenant_id,
            changes={"permissions": (sorted(granted), sorted(permissions))},
        )
        changed = RolePermissionsChanged(role, added, removed)
        await events.emit(tx, changed, tenant_id=principal.tenant_id)
        tx.after_commit.append(partial(services.session_cache.change_grants, version))
    message = "The permissions apply from the next request on"
    return PermissionsSet(role, sorted(permissions), message)


def _validate_role(name: str) -> Role:
    if name not in get_args(Role):
        raise RoleNotFound(f"There is no role {name[:64]}; the roles are {', '.join(ROLES)}")
    return name  # type: ignore[return-value]


def _validate_permissions(areas: Areas, role: Role, data: SetPermissions) -> set[str]:
    permissions = set(data.permissions)
    Invalid.check(
        (f"permissions.{position}", f"there is no permission {key[:64]}; see GET /permissions")
        for position, key in enumerate(data.permissions)
        if key not in areas.permission_keys
    )
    if role == "super_admin" and permissions != areas.permission_keys:
        raise Invalid.field("permissions", "super_admin always has every permission")
    instance_wide = {item.key for item in areas.permissions if item.instance_wide}
    if role != "super_admin" and permissions & instance_wide:
        keys = " and ".join(sorted(instance_wide))
        raise Invalid.field("permissions", f"{keys} reach every tenant; only super_admin has them")
    return permissions
