"""Roles, and what a permission is. Each area declares its own permissions in its `area.py`."""

from typing import Final

import msgspec

ROLES: Final = ("super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer")
# Who has a permission unless super_admin changes that; administrators have all of their tenant's.
DEVELOPERS: Final = ("agent_developer",)
USERS: Final = ("agent_developer", "agent_user")
EVERYBODY: Final = ("agent_developer", "agent_user", "viewer")
_RANK = {role: len(ROLES) - position for position, role in enumerate(ROLES)}


class Permission(msgspec.Struct, frozen=True):
    """`roles` are those below tenant_admin that have it unless super_admin changes that."""

    key: str
    description: str
    roles: tuple[str, ...] = ()
    # It reaches beyond any tenant, so that no role that lives in one can have it.
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


def outranks(role: str, other: str) -> bool:
    """True when `other` stands above `role`: nobody grants, takes or changes what is above."""
    return _RANK[other] > _RANK[role]
