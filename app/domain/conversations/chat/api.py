"""What other areas may call."""

from .attachments import ATTACHMENT
from .attachments import add as add_attachment
from .chat_jobs import accept_for_caller, cancel_for_caller
from .customer_queries import find_newest_session, has_other_conversations, list_for_customer
from .feedback import rate_as_visitor
from .queries import list_visitor_messages
from .schemas import Visitor
from .service import AgentReference, answer, stream
from .sse_encoding import encode_stream, error_body
from .start_turn import Question, require_conversation
from .stream_events import QueueMoved, StreamEvent, TextDelta, TurnFinished, TurnStarted
from .turn import OnTokens, Speaker
