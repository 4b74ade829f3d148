"""What other areas may call."""

from app.domain.conversations.embed import framing, keys
from app.domain.conversations.embed.service import (
    admit,
    agent_of,
    create_visitor_question,
    has_key,
    preflight_headers,
    start_use,
)

__all__ = [
    "admit",
    "agent_of",
    "create_visitor_question",
    "framing",
    "has_key",
    "keys",
    "preflight_headers",
    "start_use",
]
