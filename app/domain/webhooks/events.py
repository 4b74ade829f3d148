from typing import ClassVar, Literal

from app.domain.events.event import Event

# In each of them `url` is where the endpoint is, without the path, which is often a key to it.


class WebhookCreated(Event):
    type: ClassVar[str] = "system.webhook.created"
    description: ClassVar[str] = "An outgoing webhook was added"

    webhook_id: str
    url: str
    events: list[str]


class WebhookUpdated(Event):
    type: ClassVar[str] = "system.webhook.updated"
    description: ClassVar[str] = "An outgoing webhook was changed, or its secret rotated"

    webhook_id: str
    url: str
    changed: list[str]


class WebhookDeleted(Event):
    type: ClassVar[str] = "system.webhook.deleted"
    description: ClassVar[str] = "An outgoing webhook was deleted"

    webhook_id: str
    url: str


class WebhookDisabled(Event):
    """`subscription_id` names the subscription whose address it was."""

    type: ClassVar[str] = "system.webhook.disabled"
    description: ClassVar[str] = (
        "An endpoint gets no more deliveries: it answered 410, or failed for five days"
    )

    webhook_id: str
    url: str
    reason: Literal["gone", "failing"]
    subscription_id: str | None = None
