from typing import ClassVar

from app.domain.events.event import Event


class SubscriptionCreated(Event):
    type: ClassVar[str] = "system.subscription.created"
    description: ClassVar[str] = "A subscription was added"

    subscription_id: str
    event_type: str
    action_type: str


class SubscriptionUpdated(Event):
    type: ClassVar[str] = "system.subscription.updated"
    description: ClassVar[str] = "A subscription was changed"

    subscription_id: str
    event_type: str
    action_type: str
    changed: list[str]


class SubscriptionDeleted(Event):
    type: ClassVar[str] = "system.subscription.deleted"
    description: ClassVar[str] = "A subscription was deleted"

    subscription_id: str
    event_type: str
    action_type: str
