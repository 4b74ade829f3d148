"""What other areas may call."""

from . import framing, keys
from .service import admit, agent_of, create_visitor_question, has_key, preflight_headers, start_use
