from typing import Any, ClassVar

from app.domain.area import Event


class _ChannelEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "channel_id": "nch_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Operations",
        "channel_type": "email",
        "provider": "smtp",
    }

    channel_id: str
    name: str
    channel_type: str
    provider: str


class ChannelCreated(_ChannelEvent):
    type: ClassVar[str] = "system.notification_channel.created"
    description: ClassVar[str] = "A notification channel was added"


class ChannelUpdated(_ChannelEvent):
    type: ClassVar[str] = "system.notification_channel.updated"
    description: ClassVar[str] = "A notification channel was changed"
    example: ClassVar[dict[str, Any]] = {**_ChannelEvent.example, "changed": ["config"]}

    changed: list[str]


class ChannelDeleted(_ChannelEvent):
    type: ClassVar[str] = "system.notification_channel.deleted"
    description: ClassVar[str] = "A notification channel was deleted"


class ChannelRevealed(_ChannelEvent):
    type: ClassVar[str] = "system.notification_channel.revealed"
    description: ClassVar[str] = "Somebody read the secrets of a notification channel"
    example: ClassVar[dict[str, Any]] = {
        **_ChannelEvent.example,
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    user_id: str


class NotificationSent(Event):
    """One for each message that is sent by hand, not for each of its recipients."""

    type: ClassVar[str] = "system.notification.sent"
    description: ClassVar[str] = "Somebody sent a notification by hand"
    example: ClassVar[dict[str, Any]] = {
        "notification_id": "ntm_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "notification_type": "message",
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "recipients": 3,
    }

    notification_id: str
    notification_type: str
    user_id: str
    recipients: int
