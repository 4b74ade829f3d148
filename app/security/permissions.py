"""The permission catalogue and the roles' default grants. Grants themselves are rows."""

from typing import Final

import msgspec

ROLES: Final = ("super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer")
_RANK = {role: len(ROLES) - position for position, role in enumerate(ROLES)}


class Permission(msgspec.Struct, frozen=True):
    key: str
    description: str

    @property
    def category(self) -> str:
        return self.key.partition(":")[0]


CATALOGUE: Final = tuple(
    Permission(key, description)
    for key, description in (
        ("agents:read", "See agents"),
        ("agents:write", "Create and change agents"),
        ("agents:delete", "Delete agents"),
        ("agents:chat", "Chat with agents"),
        ("workflows:read", "See workflows and their executions"),
        ("workflows:write", "Create and change workflows"),
        ("workflows:delete", "Delete workflows"),
        ("workflows:execute", "Run workflows"),
        ("forms:read", "See forms and submissions"),
        ("forms:write", "Create and change forms"),
        ("forms:delete", "Delete forms"),
        ("forms:submit", "Submit forms"),
        ("tools:read", "See tools and their executions"),
        ("tools:write", "Create and change tools"),
        ("tools:delete", "Delete tools"),
        ("tools:execute", "Run tools"),
        ("conversations:read", "Read other people's conversations"),
        ("conversations:write", "End and delete other people's conversations"),
        ("data_tables:read", "Read data tables"),
        ("data_tables:write", "Create, change and delete data tables and rows"),
        ("credentials:read", "See credentials, without their secrets"),
        ("credentials:write", "Create, change and delete credentials"),
        ("credentials:reveal", "Read the secrets of credentials"),
        ("webhooks:read", "See webhooks and deliveries"),
        ("webhooks:write", "Create, change and delete webhooks"),
        ("events:read", "Read the event log, event types and subscriptions"),
        ("events:write", "Manage subscriptions and emit test events"),
        ("notifications:read", "See notification channels"),
        ("notifications:write", "Manage notification channels and send notifications"),
        ("notifications:reveal", "Read the secrets of notification channels"),
        ("approvals:read", "See all approvals"),
        ("approvals:decide", "Decide approvals that one is asked for"),
        ("files:read", "Read stored files"),
        ("files:write", "Store and delete files"),
        ("usage:read", "See usage and cost"),
        ("models:read", "See usable models"),
        ("models:write", "Manage the keys of model providers"),
        ("admin:users", "Manage users"),
        ("admin:tenants", "Manage tenants"),
        ("admin:roles", "Change what roles may do"),
    )
)
KEYS: Final = frozenset(permission.key for permission in CATALOGUE)
# These reach beyond any tenant, so they cannot be granted to a role that lives in one.
INSTANCE_WIDE: Final = frozenset({"admin:tenants", "admin:roles"})

_DEVELOPER_AREAS = {
    "agents",
    "workflows",
    "forms",
    "tools",
    "conversations",
    "data_tables",
    "webhooks",
    "events",
    "files",
    "approvals",
}
_DEVELOPER_KEYS = {
    "credentials:read",
    "credentials:write",
    "notifications:read",
    "notifications:write",
    "models:read",
    "usage:read",
}

DEFAULT_GRANTS: Final[dict[str, frozenset[str]]] = {
    "super_admin": KEYS,
    "tenant_admin": KEYS - INSTANCE_WIDE,
    "agent_developer": frozenset(
        {p.key for p in CATALOGUE if p.category in _DEVELOPER_AREAS} | _DEVELOPER_KEYS
    ),
    "agent_user": frozenset(
        {
            "agents:read",
            "agents:chat",
            "forms:read",
            "forms:submit",
            "workflows:read",
            "tools:read",
            "data_tables:read",
            "approvals:decide",
        }
    ),
    "viewer": frozenset(
        {"agents:read", "workflows:read", "forms:read", "tools:read", "data_tables:read"}
    ),
}


def outranks(role: str, other: str) -> bool:
    """True when `other` stands above `role`: nobody grants, takes or touches what is above."""
    return _RANK[other] > _RANK[role]
