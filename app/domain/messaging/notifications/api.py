"""What other areas may call."""

from .channel_queries import find_existing_ids as find_existing_channel_ids
from .channels import find as find_channel
from .messages import (
    MAX_MESSAGE_CHARS,
    MAX_TITLE_CHARS,
    NewMessage,
    accept,
    accept_for_event,
    delete,
    delete_about,
)
from .rules import type_of
from .types import Recipients
