from typing import Any, ClassVar

from app.domain.area import Event


class TenantCreated(Event):
    type: ClassVar[str] = "system.tenant.created"
    description: ClassVar[str] = "A tenant was created"
    example: ClassVar[dict[str, Any]] = {
        "tenant_id": "ten_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "plan": "team",
    }

    tenant_id: str
    name: str
    plan: str


class TenantUpdated(Event):
    type: ClassVar[str] = "system.tenant.updated"
    description: ClassVar[str] = "A tenant's name, plan or limits changed"
    example: ClassVar[dict[str, Any]] = {
        "tenant_id": "ten_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "changed": ["name"],
    }

    tenant_id: str
    changed: list[str]


class TenantDeleted(Event):
    """Stored in the event log of the tenant that deleted it, since its own log is deleted."""

    type: ClassVar[str] = "system.tenant.deleted"
    description: ClassVar[str] = "A tenant was deleted"
    example: ClassVar[dict[str, Any]] = {
        "tenant_id": "ten_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    tenant_id: str
    name: str
