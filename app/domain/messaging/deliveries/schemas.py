from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from app.domain.messaging.outbox.api import Status

_URL = "https://example.com/hooks/parley"
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
            "url": _URL,
            "headers": {"Content-Type": "application/json", "X-Team": "sales"},
            "body": '{"id":"evt_01k9x3m7e8c0v2q4r6t8w0y2a4","type":"agent.created"}',
        },
        "attempts": [
            {
                "attempt": 1,
                "url": _URL,
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
