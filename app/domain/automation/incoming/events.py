from typing import Any, ClassVar

from app.domain.area import Event


class IncomingWebhookCreated(Event):
    type: ClassVar[str] = "system.incoming_webhook.created"
    description: ClassVar[str] = "An incoming webhook was added"
    example: ClassVar[dict[str, Any]] = {
        "incoming_webhook_id": "inh_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    incoming_webhook_id: str
    name: str


class IncomingWebhookUpdated(Event):
    type: ClassVar[str] = "system.incoming_webhook.updated"
    description: ClassVar[str] = "An incoming webhook was changed"
    example: ClassVar[dict[str, Any]] = {
        "incoming_webhook_id": "inh_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "changed": ["name"],
    }

    incoming_webhook_id: str
    name: str
    changed: list[str]


class IncomingWebhookDeleted(Event):
    type: ClassVar[str] = "system.incoming_webhook.deleted"
    description: ClassVar[str] = "An incoming webhook was deleted"
    example: ClassVar[dict[str, Any]] = {
        "incoming_webhook_id": "inh_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
    }

    incoming_webhook_id: str
    name: str


class IncomingWebhookReceived(Event):
    """`payload` is null for a payload of more than 32 KiB, which is only in the webhook's log,
    under this event's id.
    """

    type: ClassVar[str] = "system.incoming_webhook.received"
    description: ClassVar[str] = "A payload came in and was stored"
    example: ClassVar[dict[str, Any]] = {
        "incoming_webhook_id": "inh_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "size_bytes": 14,
        "payload": {"order": 4711},
        "replay_of": "evt_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    incoming_webhook_id: str
    name: str
    size_bytes: int
    payload: Any
    replay_of: str | None = None
