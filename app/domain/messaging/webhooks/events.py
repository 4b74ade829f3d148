from typing import Any, ClassVar

from app.domain.area import Event

# In each event `url` is the endpoint's origin: the path often contains a key.


class WebhookCreated(Event):
    type: ClassVar[str] = "system.webhook.created"
    description: ClassVar[str] = "An outgoing webhook was added"
    example: ClassVar[dict[str, Any]] = {
        "webhook_id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "url": "https://example.com",
        "events": ["agent.created"],
    }

    webhook_id: str
    url: str
    events: list[str]


class WebhookUpdated(Event):
    type: ClassVar[str] = "system.webhook.updated"
    description: ClassVar[str] = "An outgoing webhook was changed, or its secret rotated"
    example: ClassVar[dict[str, Any]] = {
        "webhook_id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "url": "https://example.com",
        "changed": ["url"],
    }

    webhook_id: str
    url: str
    changed: list[str]


class WebhookDeleted(Event):
    type: ClassVar[str] = "system.webhook.deleted"
    description: ClassVar[str] = "An outgoing webhook was deleted"
    example: ClassVar[dict[str, Any]] = {
        "webhook_id": "whk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "url": "https://example.com",
    }

    webhook_id: str
    url: str
