from typing import Annotated

from app.domain.area import Event, example


class _SubscriptionEvent(Event):
    subscription_id: Annotated[str, example("sub_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    event_type: Annotated[str, example("agent.created")]
    action_type: Annotated[str, example("webhook")]


class SubscriptionCreated(_SubscriptionEvent):
    """A subscription was added."""

    type = "system.subscription.created"


class SubscriptionUpdated(_SubscriptionEvent):
    """A subscription was changed."""

    type = "system.subscription.updated"

    changed: Annotated[list[str], example(["active"])]


class SubscriptionDeleted(_SubscriptionEvent):
    """A subscription was deleted."""

    type = "system.subscription.deleted"
