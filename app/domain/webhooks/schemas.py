from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

Status = Literal["delivered", "failed", "pending"]

_WEBHOOK: dict[str, Any] = {
    "id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "url": "https://example.com/hooks/parley",
    "events": ["agent.created", "agent.chat.completed"],
    "active": True,
    "description": "Our CRM",
    "headers": {"X-Team": "sales", "Authorization": "********"},
    "failing_since": None,
    "disabled_reason": None,
    "previous_secret_expires_at": None,
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}
_DELIVERY: dict[str, Any] = {
    "id": "dlv_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "event_id": "evt_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "event_type": "agent.created",
    "status": "delivered",
    "response_code": 200,
    "response_time_ms": 41,
    "attempt": 1,
    "error": None,
    "correlation_id": "cor_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "created_at": "2026-01-01T12:00:00Z",
    "next_attempt_at": None,
    "finished_at": "2026-01-01T12:00:00.052000Z",
}

Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="Where to post to: https://, or http:// to a host that the operator admits",
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
        description="Sent with every delivery. Values of headers that open something, like "
        "Authorization, are shown as ********; sent back so, they stay as they are"
    ),
]


class CreateWebhook(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "url": "https://example.com/hooks/parley",
        "events": ["agent.created", "agent.chat.completed"],
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


class DeliveryView(msgspec.Struct):
    """`attempt` counts the requests made so far; without a `response_code` nobody answered."""

    example: ClassVar[dict[str, Any]] = _DELIVERY

    id: str
    event_id: str
    event_type: str
    status: Status
    response_code: int | None
    response_time_ms: int | None
    attempt: int
    error: str | None
    correlation_id: str
    created_at: datetime
    next_attempt_at: datetime | None
    finished_at: datetime | None


class AttemptView(msgspec.Struct):
    attempt: int
    url: str
    status: Literal["delivered", "failed"]
    response_code: int | None
    response_time_ms: int
    response_body: str | None
    error: str | None
    created_at: datetime


class RequestView(msgspec.Struct):
    """Each attempt adds its timestamp, signatures and count of retries."""

    url: str
    headers: dict[str, str]
    body: str


class FullDelivery(DeliveryView):
    """With what is sent, and every attempt, the latest first. Bodies are cut at 16 KiB."""

    example: ClassVar[dict[str, Any]] = {
        **_DELIVERY,
        "request": {
            "url": _WEBHOOK["url"],
            "headers": {"Content-Type": "application/json", "X-Team": "sales"},
            "body": '{"id":"evt_01k9x3m7e8c0v2q4r6t8w0y2a4","type":"agent.created"}',
        },
        "attempts": [
            {
                "attempt": 1,
                "url": _WEBHOOK["url"],
                "status": "delivered",
                "response_code": 200,
                "response_time_ms": 41,
                "response_body": "ok",
                "error": None,
                "created_at": "2026-01-01T12:00:00.010000Z",
            }
        ],
    }

    request: RequestView
    attempts: list[AttemptView]
