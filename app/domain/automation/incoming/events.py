from typing import Any, ClassVar

from app.domain.area import Event


class _IncomingWebhookEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "incoming_webhook_id": "inh_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    incoming_webhook_id: str
    name: str


class IncomingWebhookCreated(_IncomingWebhookEvent):
    type: ClassVar[str] = "system.incoming_webhook.created"
    description: ClassVar[str] = "An incoming webhook was added"


class IncomingWebhookUpdated(_IncomingWebhookEvent):
    type: ClassVar[str] = "system.incoming_webhook.updated"
    description: ClassVar[str] = "An incoming webhook was changed"
    example: ClassVar[dict[str, Any]] = {**_IncomingWebhookEvent.example, "changed": ["name"]}

    changed: list[str]


class IncomingWebhookDeleted(_IncomingWebhookEvent):
    type: ClassVar[str] = "system.incoming_webhook.deleted"
    description: ClassVar[str] = "An incoming webhook was deleted"


class IncomingWebhookReceived(_IncomingWebhookEvent):
    """`payload` is null for a payload of more than 32 KiB, which is only in the webhook's log,
    under this event's id.
    """

    type: ClassVar[str] = "system.incoming_webhook.received"
    description: ClassVar[str] = "A payload came in and was stored"
    example: ClassVar[dict[str, Any]] = {
        **_IncomingWebhookEvent.example,
        "size_bytes": 14,
        "payload": {"order": 4711},
        "replay_of": "evt_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    size_bytes: int
    payload: Any
    replay_of: str | None = None
