from typing import Annotated

from app.domain.area import Event, example


class TenantCreated(Event):
    """A tenant was created."""

    type = "system.tenant.created"

    tenant_id: Annotated[str, example("ten_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]
    plan: Annotated[str, example("team")]


class TenantUpdated(Event):
    """A tenant's name, plan or limits changed."""

    type = "system.tenant.updated"

    tenant_id: Annotated[str, example("ten_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    changed: Annotated[list[str], example(["name"])]


class TenantDeleted(Event):
    """A tenant was deleted.

    Stored in the event log of the tenant that deleted it, since its own log is deleted.
    """

    type = "system.tenant.deleted"

    tenant_id: Annotated[str, example("ten_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]
