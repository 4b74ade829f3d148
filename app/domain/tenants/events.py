from typing import ClassVar

from app.domain.events.event import Event


class TenantCreated(Event):
    type: ClassVar[str] = "system.tenant.created"
    description: ClassVar[str] = "A tenant was created"

    tenant_id: str
    name: str
    plan: str


class TenantUpdated(Event):
    type: ClassVar[str] = "system.tenant.updated"
    description: ClassVar[str] = "A tenant's name, plan or limits changed"

    tenant_id: str
    changed: list[str]


class TenantDeleted(Event):
    """In the log of whoever deleted it: its own log went with it."""

    type: ClassVar[str] = "system.tenant.deleted"
    description: ClassVar[str] = "A tenant was deleted"

    tenant_id: str
    name: str
