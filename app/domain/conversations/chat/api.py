"""What other areas may call."""

from .attachments import ATTACHMENT
from .attachments import add as add_attachment
from .chat_jobs import accept_for_caller, cancel_for_caller
from .client_answers import ClientAnswer
from .client_answers import accept as accept_answer
from .client_answers import cancel as cancel_answer
from .client_answers import delete as delete_answer
from .client_answers import find as find_answer
from .client_input import ClientInput, FunctionResult
from .client_results import AnswerItem, after_last_answer, find_items
from .customer_queries import find_newest_session, has_other_conversations, list_for_customer
from .feedback import rate_as_visitor
from .queries import list_visitor_messages
from .schemas import Visitor
from .service import AgentReference, answer, stream
from .sse_encoding import EVENTS, encode_stream, error_body
from .start_turn import Question, require_conversation
from .stream_events import (
    ClientCall,
    QueueMoved,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    TurnFinished,
    TurnStarted,
)
from .turn import OnTokens, Speaker, max_tokens_of
