"""What other areas may call."""

from app.domain.conversations.chat.chat_jobs import accept_for_caller, cancel_for_caller
from app.domain.conversations.chat.queries import list_visitor_messages
from app.domain.conversations.chat.schemas import Visitor
from app.domain.conversations.chat.service import AgentReference, answer, stream
from app.domain.conversations.chat.sse_encoding import encode_stream, error_body
from app.domain.conversations.chat.start_turn import Question, require_conversation
from app.domain.conversations.chat.stream_events import (
    QueueMoved,
    StreamEvent,
    TextDelta,
    TurnFinished,
    TurnStarted,
)
from app.domain.conversations.chat.turn import OnTokens, Speaker
