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
