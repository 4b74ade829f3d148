from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from .actions import ActionType

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_SUBSCRIPTION: dict[str, Any] = {
    "id": f"sub_{_TAIL}",
    "event_type": "agent.chat.message",
    "action_type": "webhook",
    "action_config": {"url": "https://example.com/hooks/ended"},
    "filters": {"reason": "ended"},
    "active": True,
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
    "last_triggered_at": None,
    "trigger_count": 0,
}

Name = Annotated[str, Meta(min_length=1, max_length=100)]
Config = Annotated[
    dict[str, Any],
    Meta(
        description="webhook: { url, headers? } or { webhook_id }; workflow: { workflow_id, "
        "input? }; notification: { channel_id | user_ids | role, title, message }"
    ),
]
Filters = Annotated[
    dict[str, Any],
    Meta(
        description="Dotted paths in the event's data, each with a value that it must equal, or "
        "with { in | gt | lt | exists }; all must hold"
    ),
]


class CreateSubscription(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "event_type": "agent.chat.message",
        "action_type": "webhook",
        "action_config": {"url": "https://example.com/hooks/ended"},
        "filters": {"reason": "ended"},
    }

    event_type: Name
    action_type: ActionType
    action_config: Config
    filters: Filters | None = None
    active: bool = True


class UpdateSubscription(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"active": False}

    event_type: Name | UnsetType = UNSET
    action_type: ActionType | UnsetType = UNSET
    action_config: Config | UnsetType = UNSET
    filters: Filters | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET


class SubscriptionView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _SUBSCRIPTION

    id: str
    event_type: str
    action_type: ActionType
    action_config: dict[str, Any]
    filters: dict[str, Any] | None
    active: bool
    created_at: datetime
    updated_at: datetime
    last_triggered_at: datetime | None
    trigger_count: int


class ChangedSubscription(SubscriptionView, omit_defaults=True):
    """`secret` is there when the action delivers to an address of its own and a new secret signs
    from now on; it is shown this once.
    """

    example: ClassVar[dict[str, Any]] = {
        **_SUBSCRIPTION,
        "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
    }

    secret: str | None = None


class Switched(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"workflow_id": f"wfl_{_TAIL}", "updated": 2}

    workflow_id: str
    updated: int


class TestEvent(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "event_type": "system.test",
        "data": {"note": "Does this arrive?"},
    }

    event_type: Name
    data: Annotated[dict[str, Any], Meta(description="By default, the type's example")] | None = (
        None
    )


class TestEmitted(msgspec.Struct):
    """`matched` counts the subscriptions that the event triggers."""

    example: ClassVar[dict[str, Any]] = {
        "event_id": f"evt_{_TAIL}",
        "correlation_id": f"cor_{_TAIL}",
        "matched": 1,
    }

    event_id: str
    correlation_id: str
    matched: int
