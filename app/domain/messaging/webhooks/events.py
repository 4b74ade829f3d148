from typing import Any, ClassVar

from app.domain.area import Event

# In each event `url` is the endpoint's origin: the path often contains a key.


class _WebhookEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "webhook_id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "url": "https://example.com",
    }

    webhook_id: str
    url: str


class WebhookCreated(_WebhookEvent):
    type: ClassVar[str] = "system.webhook.created"
    description: ClassVar[str] = "An outgoing webhook was added"
    example: ClassVar[dict[str, Any]] = {**_WebhookEvent.example, "events": ["agent.created"]}

    events: list[str]


class WebhookUpdated(_WebhookEvent):
    type: ClassVar[str] = "system.webhook.updated"
    description: ClassVar[str] = "An outgoing webhook was changed, or its secret rotated"
    example: ClassVar[dict[str, Any]] = {**_WebhookEvent.example, "changed": ["url"]}

    changed: list[str]


class WebhookDeleted(_WebhookEvent):
    type: ClassVar[str] = "system.webhook.deleted"
    description: ClassVar[str] = "An outgoing webhook was deleted"
