"""What other areas may call."""

from .agent_tools import AgentTools
from .executions import accept_run, cancel_run, clear_calls
from .offers import WEB_SEARCH, CallOutcome, CallStatus, ToolOffer
from .queries import delay_deletion, find_existing_ids
