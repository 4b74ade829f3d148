from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

_WEBHOOK: dict[str, Any] = {
    "id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "url": "https://example.com/hooks/parley",
    "events": ["agent.created", "agent.chat.message"],
    "active": True,
    "description": "Our CRM",
    "headers": {"X-Team": "sales", "Authorization": "********"},
    "failing_since": None,
    "disabled_reason": None,
    "previous_secret_expires_at": None,
    "secrets_updated_at": None,
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}

Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="The endpoint: https://, or http:// for a host that the operator allows",
    ),
]
Names = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=100)]],
    Meta(min_length=1, max_length=200, description="Event types; `GET /api/v1/event-types`"),
]
Description = Annotated[str, Meta(max_length=1000)]
Headers = Annotated[
    dict[str, str],
    Meta(
        description="Sent with every delivery. Values of headers that grant access, like "
        "Authorization, are shown as ********; sent back like this, they stay unchanged"
    ),
]


class CreateWebhook(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "url": "https://example.com/hooks/parley",
        "events": ["agent.created", "agent.chat.message"],
        "description": "Our CRM",
        "headers": {"X-Team": "sales"},
    }

    url: Url
    events: Names
    active: bool = True
    description: Description | None = None
    headers: Headers | None = None


class UpdateWebhook(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"active": False}

    url: Url | UnsetType = UNSET
    events: Names | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    headers: Headers | UnsetType | None = UNSET


class WebhookView(msgspec.Struct):
    """`disabled_reason` says why it was switched off by itself: gone, or failing."""

    example: ClassVar[dict[str, Any]] = _WEBHOOK

    id: str
    url: str
    events: list[str]
    active: bool
    description: str
    headers: dict[str, str]
    failing_since: datetime | None
    disabled_reason: str | None
    previous_secret_expires_at: datetime | None
    secrets_updated_at: Annotated[
        datetime | None,
        Meta(
            description="When the secret or a header was replaced; null for those of the creation"
        ),
    ]
    created_at: datetime
    updated_at: datetime


class WebhookWithSecret(WebhookView):
    """The secret is shown this once."""

    example: ClassVar[dict[str, Any]] = {
        **_WEBHOOK,
        "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
    }

    secret: str


class TestWebhook(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"event_type": "agent.created"}

    event_type: Annotated[
        str, Meta(min_length=1, max_length=100, description="Whose example is sent")
    ] = "system.test"
