"""The interface of this area for other areas."""

from app.domain.tools import queries
from app.domain.tools.agent_tools import AgentTools
from app.domain.tools.offers import WEB_SEARCH, CallOutcome, CallStatus, ToolOffer
from db.session import Tx

__all__ = [
    "WEB_SEARCH",
    "AgentTools",
    "CallOutcome",
    "CallStatus",
    "ToolOffer",
    "clear_calls",
]


async def clear_calls(tx: Tx, tenant_id: str, call_ids: list[str]) -> None:
    """Deletes the content of the calls' executions, and keeps the executions for statistics.
    `outer.inner` is a call by a sub-agent, and its execution has the inner id.
    """
    inner_ids = [call_id.rpartition(".")[2] for call_id in call_ids]
    await queries.clear_executions_of_calls(tx, tenant_id, inner_ids)
