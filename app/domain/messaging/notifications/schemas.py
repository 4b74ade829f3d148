from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.kit.validation import NOT_BLANK, ONE_LINE

from .preferences import Preference, PreferenceChange
from .types import TypeName

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_NOTIFICATION: dict[str, Any] = {
    "id": f"ntf_{_TAIL}",
    "type": "workflow_failed",
    "title": "Workflow failed: Invoices",
    "message": "The workflow Invoices failed: the mail server answered 451",
    "read": False,
    "data": {"workflow_id": f"wfl_{_TAIL}"},
    "created_at": "2026-01-01T12:00:00Z",
}

Id = Annotated[str, Meta(min_length=1, max_length=100)]
Title = Annotated[str, Meta(max_length=200, pattern=ONE_LINE)]
Text = Annotated[str, Meta(max_length=10_000, pattern=NOT_BLANK)]
MAX_USERS = 1000


class NotificationView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _NOTIFICATION

    id: str
    type: str
    title: str
    message: str
    read: bool
    data: dict[str, Any]
    created_at: datetime


class NotificationPage(msgspec.Struct, omit_defaults=True):
    """`unread` counts all unread notifications, whatever the filters. Beyond 5,000, `total` and
    `unread` are estimates; `estimated` says so for `total`.
    """

    example: ClassVar[dict[str, Any]] = {
        "data": [_NOTIFICATION],
        "total": 1,
        "unread": 1,
        "page": 1,
        "per_page": 20,
    }

    data: list[NotificationView]
    total: int
    unread: int
    page: int
    per_page: int
    estimated: bool = False


class UnreadCount(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"count": 3}

    count: int


class MarkedRead(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"updated": 3}

    updated: int


class Preferences(msgspec.Struct):
    """By notification type. `quiet_hours` (a daily window in the time zone of the profile) and
    `digest` (hourly, or daily at 8 o'clock) hold mails and posts in team chats back; they are there
    when they are set. Urgent types are never held back.
    """

    example: ClassVar[dict[str, Any]] = {
        "preferences": {
            "workflow_failed": {
                "in_app": True,
                "email": True,
                "team_chat": False,
                "quiet_hours": {"start": "22:00", "end": "07:00"},
                "digest": "hourly",
            }
        }
    }

    preferences: dict[str, Preference]


class UpdatePreferences(msgspec.Struct, kw_only=True):
    """Types and keys that are absent stay as they are."""

    example: ClassVar[dict[str, Any]] = {
        "preferences": {
            "workflow_failed": {"in_app": True, "email": True, "team_chat": False},
            "form_submission": {"digest": "daily"},
        }
    }

    preferences: Annotated[dict[str, PreferenceChange], Meta(max_length=100)]


class SendNotification(msgspec.Struct, kw_only=True):
    """To users by their ids, or to all users with a role."""

    example: ClassVar[dict[str, Any]] = {
        "role": "agent_developer",
        "title": "Maintenance tonight",
        "message": "Agents are unavailable from 22:00 to 22:15 UTC.",
        "data": {"ticket": "OPS-7"},
    }

    title: Title
    message: Text
    user_ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_USERS)] | None = None
    role: str | None = None
    type: TypeName = "message"
    data: dict[str, Any] | None = None


class SentNotification(msgspec.Struct):
    """`recipients` counts the active users that it goes to."""

    example: ClassVar[dict[str, Any]] = {"id": f"ntm_{_TAIL}", "recipients": 12}

    id: str
    recipients: int


class TestNotification(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"channel_type": "in_app", "message": "Does this arrive?"}

    channel_type: Literal["in_app", "email", "team_chat", "sms", "webhook"]
    message: Annotated[str, Meta(max_length=500, pattern=NOT_BLANK)] = (
        "This is a test notification."
    )
