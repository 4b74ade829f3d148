from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.identity.accounts.schemas import Role
from app.kit.validation import ONE_LINE

_KEY = {
    "id": "svk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "name": "Order import",
    "role": "agent_developer",
    "agent_ids": None,
    "key_prefix": "svc_Zk3vQ0aB",
    "expires_at": "2027-01-01T00:00:00Z",
    "created_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "created_at": "2026-01-01T12:00:00Z",
}


class CreateServiceKey(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"name": "Order import", "role": "agent_developer"}

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
    role: Annotated[Role, Meta(description="What the key may do; not above your own role")]
    agent_ids: Annotated[
        Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(min_length=1, max_length=100)]
        | None,
        Meta(
            description="The key then works for routes of these agents only, and for "
            "OpenAI-compatible ones"
        ),
    ] = None
    expires_at: Annotated[
        Annotated[datetime, Meta(tz=True)] | None,
        Meta(description="Without it, the key works until it is revoked"),
    ] = None


class _ServiceKey(msgspec.Struct):
    id: str
    name: str
    role: Role
    agent_ids: list[str] | None
    key_prefix: str
    expires_at: datetime | None
    created_by: str | None
    created_at: datetime


class CreatedServiceKey(_ServiceKey):
    example: ClassVar[dict[str, Any]] = {
        **_KEY,
        "key": "svc_Zk3vQ0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2y",
    }

    key: Annotated[str, Meta(description="Send it as `Authorization: Bearer …`; shown only here")]


class ServiceKeyView(_ServiceKey):
    example: ClassVar[dict[str, Any]] = {**_KEY, "last_used_at": "2026-01-02T08:30:00Z"}

    last_used_at: Annotated[
        datetime | None, Meta(description="At most some minutes older than the last request")
    ]
