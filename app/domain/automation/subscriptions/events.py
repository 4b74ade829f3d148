from typing import Any, ClassVar

from app.domain.area import Event


class _SubscriptionEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "subscription_id": "sub_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "event_type": "agent.created",
        "action_type": "webhook",
    }

    subscription_id: str
    event_type: str
    action_type: str


class SubscriptionCreated(_SubscriptionEvent):
    type: ClassVar[str] = "system.subscription.created"
    description: ClassVar[str] = "A subscription was added"


class SubscriptionUpdated(_SubscriptionEvent):
    type: ClassVar[str] = "system.subscription.updated"
    description: ClassVar[str] = "A subscription was changed"
    example: ClassVar[dict[str, Any]] = {**_SubscriptionEvent.example, "changed": ["active"]}

    changed: list[str]


class SubscriptionDeleted(_SubscriptionEvent):
    type: ClassVar[str] = "system.subscription.deleted"
    description: ClassVar[str] = "A subscription was deleted"
