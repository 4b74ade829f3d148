from typing import Annotated

from app.domain.area import Event, example


class _ChannelEvent(Event):
    channel_id: Annotated[str, example("nch_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Operations")]
    channel_type: Annotated[str, example("email")]
    provider: Annotated[str, example("smtp")]


class ChannelCreated(_ChannelEvent):
    """A notification channel was added."""

    type = "system.notification_channel.created"


class ChannelUpdated(_ChannelEvent):
    """A notification channel was changed."""

    type = "system.notification_channel.updated"

    changed: Annotated[list[str], example(["config"])]


class ChannelDeleted(_ChannelEvent):
    """A notification channel was deleted."""

    type = "system.notification_channel.deleted"


class ChannelRevealed(_ChannelEvent):
    """Somebody read the secrets of a notification channel."""

    type = "system.notification_channel.revealed"

    user_id: Annotated[str, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]


class NotificationSent(Event):
    """Somebody sent a notification by hand.

    One for each message that is sent by hand, not for each of its recipients.
    """

    type = "system.notification.sent"

    notification_id: Annotated[str, example("ntm_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    notification_type: Annotated[str, example("message")]
    user_id: Annotated[str, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    recipients: Annotated[int, example(3)]
