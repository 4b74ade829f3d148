"""Every event type: its name, what it means and its payload. The structs are the source."""

from typing import ClassVar, Final

import msgspec


class Event(msgspec.Struct, kw_only=False):
    """A typed payload. Never a secret: payloads are stored, shown and delivered as they are."""

    type: ClassVar[str]
    description: ClassVar[str]


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


class UserInvited(Event):
    type: ClassVar[str] = "system.user.invited"
    description: ClassVar[str] = "Somebody was invited to the tenant"

    invitation_id: str
    email: str
    role: str


class UserSignedIn(Event):
    type: ClassVar[str] = "system.user.signed_in"
    description: ClassVar[str] = "A user signed in"

    user_id: str
    ip_address: str


class WorkDead(Event):
    type: ClassVar[str] = "system.work.dead"
    description: ClassVar[str] = "Accepted work failed at every attempt and was given up"

    work_id: str
    kind: str
    ref_id: str | None
    attempts: int
    error: str


CATALOGUE: Final[dict[str, type[Event]]] = {
    event.type: event
    for event in (TenantCreated, TenantUpdated, UserInvited, UserSignedIn, WorkDead)
}
