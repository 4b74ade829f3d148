"""What roles may do: one catalogue in code, grants in rows, changed by super_admin."""

from functools import partial
from typing import get_args

from app.domain.accounts.schemas import Role
from app.domain.events import service as events
from app.domain.roles import queries
from app.domain.roles.events import RolePermissionsChanged
from app.domain.roles.schemas import (
    Permissions,
    PermissionsSet,
    PermissionView,
    RolePermissions,
    SetPermissions,
)
from app.http.errors import Forbidden, Invalid, NotFound
from app.parts import Parts
from app.security.permissions import CATALOGUE, INSTANCE_WIDE, KEYS, ROLES
from app.security.principal import Principal
from app.security.sessions import bump_grants, require_standing
from db.session import Tx


class RoleNotFound(NotFound):
    code = "role_not_found"


def catalogue() -> Permissions:
    return Permissions([PermissionView(p.key, p.description, p.category) for p in CATALOGUE])


def mine(principal: Principal) -> RolePermissions:
    return RolePermissions(_checked(principal.role), sorted(principal.permissions))


async def of(tx: Tx, name: str) -> RolePermissions:
    role = _checked(name)
    return RolePermissions(role, sorted(await queries.of(tx, role)))


async def change(
    tx: Tx, parts: Parts, principal: Principal, name: str, data: SetPermissions
) -> PermissionsSet:
    """Holds from the next request of every live session on."""
    role = _checked(name)
    if not principal.is_super_admin:
        # Grants are of the whole instance: no permission can hand this on.
        raise Forbidden(
            "Only super_admin changes what roles may do",
            details={"required": "role:super_admin", "your_role": principal.role},
        )
    wanted = _allowed(role, data)
    version = await bump_grants(tx)
    await require_standing(tx, principal)
    present = await queries.of(tx, role)
    added, removed = sorted(wanted - present), sorted(present - wanted)
    if added or removed:
        await queries.change(tx, role, added, removed)
        changed = RolePermissionsChanged(role, added, removed)
        await events.emit(tx, changed, tenant_id=principal.tenant_id)
        tx.after_commit.append(partial(parts.copies.change_grants, version))
    message = "The permissions hold from the next request on"
    return PermissionsSet(role, sorted(wanted), message)


def _checked(name: str) -> Role:
    if name not in get_args(Role):
        raise RoleNotFound(f"There is no role {name[:64]}; the roles are {', '.join(ROLES)}")
    return name  # type: ignore[return-value]


def _allowed(role: Role, data: SetPermissions) -> set[str]:
    wanted = set(data.permissions)
    problems = {
        f"permissions.{position}": f"there is no permission {key[:64]}; see GET /permissions"
        for position, key in enumerate(data.permissions)
        if key not in KEYS
    }
    if problems:
        raise Invalid.fields(problems)
    if role == "super_admin" and wanted != KEYS:
        raise Invalid.field("permissions", "super_admin always has every permission")
    if role != "super_admin" and wanted & INSTANCE_WIDE:
        keys = " and ".join(sorted(INSTANCE_WIDE))
        raise Invalid.field("permissions", f"{keys} reach every tenant; only super_admin has them")
    return wanted
