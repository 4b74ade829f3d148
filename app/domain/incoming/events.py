from typing import Any, ClassVar

from app.domain.events.event import Event


class IncomingWebhookCreated(Event):
    type: ClassVar[str] = "system.incoming_webhook.created"
    description: ClassVar[str] = "An incoming webhook was added"

    incoming_webhook_id: str
    name: str


class IncomingWebhookUpdated(Event):
    type: ClassVar[str] = "system.incoming_webhook.updated"
    description: ClassVar[str] = "An incoming webhook was changed"

    incoming_webhook_id: str
    name: str
    changed: list[str]


class IncomingWebhookDeleted(Event):
    type: ClassVar[str] = "system.incoming_webhook.deleted"
    description: ClassVar[str] = "An incoming webhook was deleted"

    incoming_webhook_id: str
    name: str


class IncomingWebhookReceived(Event):
    """`payload` is what was sent, up to 32 KiB of it; a longer one stays in the webhook's log
    alone, under this event's id.
    """

    type: ClassVar[str] = "system.incoming_webhook.received"
    description: ClassVar[str] = "A payload came in and was stored"

    incoming_webhook_id: str
    name: str
    size_bytes: int
    payload: Any
    replay_of: str | None = None
