"""Roles and permissions. Each area declares its permissions in its `area.py`."""

from typing import Final

import msgspec

ROLES: Final = ("super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer")
# Default roles of a permission; super_admin can change them. tenant_admin has every permission of
# a tenant.
DEVELOPERS: Final = ("agent_developer",)
USERS: Final = ("agent_developer", "agent_user")
VIEWERS: Final = ("agent_developer", "viewer")
EVERYBODY: Final = ("agent_developer", "agent_user", "viewer")
_RANK = {role: len(ROLES) - position for position, role in enumerate(ROLES)}


class Permission(msgspec.Struct, frozen=True):
    """`roles` are the roles below tenant_admin that have it by default."""

    key: str
    description: str
    roles: tuple[str, ...] = ()
    # Acts on the whole instance, so that only super_admin has it.
    instance_wide: bool = False

    @property
    def category(self) -> str:
        return self.key.partition(":")[0]

    def is_granted_to(self, role: str) -> bool:
        if role == "super_admin":
            return True
        if self.instance_wide:
            return False
        return role == "tenant_admin" or role in self.roles


def is_outranked_by(role: str, other: str) -> bool:
    """True when `other` is above `role`."""
    return _RANK[other] > _RANK[role]
