from typing import Any, ClassVar

from app.domain.area import Event

_SUBSCRIPTION: dict[str, Any] = {
    "subscription_id": "sub_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "event_type": "agent.created",
    "action_type": "webhook",
}


class SubscriptionCreated(Event):
    type: ClassVar[str] = "system.subscription.created"
    description: ClassVar[str] = "A subscription was added"
    example: ClassVar[dict[str, Any]] = _SUBSCRIPTION

    subscription_id: str
    event_type: str
    action_type: str


class SubscriptionUpdated(Event):
    type: ClassVar[str] = "system.subscription.updated"
    description: ClassVar[str] = "A subscription was changed"
    example: ClassVar[dict[str, Any]] = {**_SUBSCRIPTION, "changed": ["active"]}

    subscription_id: str
    event_type: str
    action_type: str
    changed: list[str]


class SubscriptionDeleted(Event):
    type: ClassVar[str] = "system.subscription.deleted"
    description: ClassVar[str] = "A subscription was deleted"
    example: ClassVar[dict[str, Any]] = _SUBSCRIPTION

    subscription_id: str
    event_type: str
    action_type: str
