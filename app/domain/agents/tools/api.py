"""What other areas may call."""

from app.domain.agents.tools.agent_tools import AgentTools
from app.domain.agents.tools.executions import accept_run, cancel_run, clear_calls
from app.domain.agents.tools.offers import WEB_SEARCH, CallOutcome, CallStatus, ToolOffer
from app.domain.agents.tools.queries import delay_deletion, find_existing_ids
