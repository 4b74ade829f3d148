from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit import validation
from app.kit.validation import ONE_LINE

from .verification import SchemeName

SLUG = r"^(?![\s\S]*\n)[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?$"
validation.describe_pattern(SLUG, "must be lower-case letters, digits, dashes and underscores")
HEADER = r"^(?![\s\S]*\n)[A-Za-z0-9-]+$"
validation.describe_pattern(HEADER, "must be the name of a header")

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_WEBHOOK: dict[str, Any] = {
    "id": f"inh_{_TAIL}",
    "name": "Orders of the shop",
    "slug": "orders-8k2m4q6t",
    "url": "https://parley.example.com/webhooks/in/orders-8k2m4q6t",
    "workflow_id": None,
    "active": True,
    "verification": {"scheme": "github", "secret": "********", "header": None},
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Slug = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=80,
        pattern=SLUG,
        description="The last part of the public address; by default the name and a random suffix",
    ),
]
WorkflowId = Annotated[str, Meta(min_length=1, max_length=100)]


class Verification(msgspec.Struct, kw_only=True):
    """`secret` is returned as ********; this value in a request keeps the stored secret."""

    example: ClassVar[dict[str, Any]] = {"scheme": "github", "secret": "a-long-random-secret"}

    scheme: SchemeName
    secret: Annotated[str, Meta(min_length=1, max_length=1000, pattern=ONE_LINE)]
    header: (
        Annotated[
            str,
            Meta(
                max_length=100,
                pattern=HEADER,
                description="The header with `sha256=<hex>` for hmac_sha256; default X-Signature",
            ),
        ]
        | None
    ) = None


class CreateIncoming(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Orders of the shop",
        "verification": {"scheme": "github", "secret": "a-long-random-secret"},
    }

    name: Name
    slug: Slug | None = None
    workflow_id: WorkflowId | None = None
    active: bool = True
    verification: Verification | None = None


class UpdateIncoming(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"active": False}

    name: Name | UnsetType = UNSET
    slug: Slug | UnsetType = UNSET
    workflow_id: WorkflowId | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET
    verification: Verification | UnsetType | None = UNSET


class IncomingView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _WEBHOOK

    id: str
    name: str
    slug: str
    url: str
    workflow_id: str | None
    active: bool
    verification: Verification | None
    created_at: datetime
    updated_at: datetime


class PayloadView(msgspec.Struct):
    """`id` is also the id of its event. In a list, a payload of more than 32 KiB is null; a request
    for the single payload returns it.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": f"evt_{_TAIL}",
        "payload": {"order": 4711},
        "size_bytes": 14,
        "headers": {"content-type": "application/json"},
        "source_ip": "192.0.2.7",
        "workflow_execution_id": None,
        "replay_of": None,
        "created_at": "2026-01-01T12:00:00Z",
    }

    id: str
    payload: Any
    size_bytes: int
    headers: dict[str, str]
    source_ip: str
    workflow_execution_id: str | None
    replay_of: str | None
    created_at: datetime


class Received(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"received": True, "event_id": f"evt_{_TAIL}"}

    received: bool = True
    event_id: str
