"""Notifications: what other areas call. They accept messages in their own transactions, for an
event, or for themselves; workers dispatch and send them.
"""

from app.domain.notifications.channel_queries import (
    find_existing_ids as find_existing_channel_ids,
)
from app.domain.notifications.channels import find as find_channel
from app.domain.notifications.messages import (
    MAX_MESSAGE_CHARS,
    MAX_TITLE_CHARS,
    NewMessage,
    accept,
    accept_for_event,
    delete,
    delete_about,
)
from app.domain.notifications.recipients import Recipients
from app.domain.notifications.rules import type_of
from app.domain.notifications.work_kinds import SEND

__all__ = [
    "MAX_MESSAGE_CHARS",
    "MAX_TITLE_CHARS",
    "SEND",
    "NewMessage",
    "Recipients",
    "accept",
    "accept_for_event",
    "delete",
    "delete_about",
    "find_channel",
    "find_existing_channel_ids",
    "type_of",
]
