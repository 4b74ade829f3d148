"""What other areas may call."""

from app.domain.messaging.notifications.channel_queries import (
    find_existing_ids as find_existing_channel_ids,
)
from app.domain.messaging.notifications.channels import find as find_channel
from app.domain.messaging.notifications.messages import (
    MAX_MESSAGE_CHARS,
    MAX_TITLE_CHARS,
    NewMessage,
    accept,
    accept_for_event,
    delete,
    delete_about,
)
from app.domain.messaging.notifications.rules import type_of
from app.domain.messaging.notifications.types import Recipients
