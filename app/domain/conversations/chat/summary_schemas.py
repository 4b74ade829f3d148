"""Bodies and answers of lists of conversations over all agents."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from .schemas import ConversationView, MessageStatus

_EXAMPLE_TIME = "2026-01-01T12:00:00Z"


class LastMessage(msgspec.Struct, frozen=True):
    """`text` has the first 200 characters; it is empty for an answer that failed without one."""

    role: Literal["user", "assistant"]
    text: str
    status: MessageStatus


class ConversationSummary(ConversationView):
    """A conversation in a list over all agents. `user_name` is that of a user or of a service key,
    and null for visitors and for those who were deleted. `last_message` is null while there is
    none. The ratings are those of all people, and `failed_answers` counts the answers that failed
    and were not replaced. `unread` is the caller's own.
    """

    example: ClassVar[dict[str, Any]] = {
        **ConversationView.example,
        "agent_name": "Support",
        "user_name": "Ada Lovelace",
        "last_message": {
            "role": "assistant",
            "text": "The shop opens at 9 in the morning [1].",
            "status": "complete",
        },
        "ratings_up": 1,
        "ratings_down": 0,
        "failed_answers": 0,
        "unread": True,
    }

    agent_name: str
    user_name: str | None
    last_message: LastMessage | None
    ratings_up: int
    ratings_down: int
    failed_answers: int
    unread: bool


class ReadConversation(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "conversation_id": ConversationView.example["id"],
        "unread": False,
    }

    conversation_id: str
    unread: bool


class ReadAllConversations(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"until": _EXAMPLE_TIME}

    until: Annotated[
        Annotated[datetime, Meta(tz=True)],
        Meta(
            description="Conversations whose last message is not later are read from now on; "
            "`last_message_at` of the newest one that was shown"
        ),
    ]


class ReadUntil(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"read_until": _EXAMPLE_TIME}

    read_until: Annotated[
        datetime,
        Meta(description="Not before the time of an earlier request, and not in the future"),
    ]
