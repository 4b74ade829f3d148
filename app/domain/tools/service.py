"""What other areas use of tools."""

from app.domain.tools import queries
from app.domain.tools.agent_tools import AgentTools
from app.domain.tools.offers import CallOutcome, CallStatus, ToolOffer
from db.session import Tx

__all__ = ["AgentTools", "CallOutcome", "CallStatus", "ToolOffer", "clear_calls"]


async def clear_calls(tx: Tx, tenant_id: str, call_ids: list[str]) -> None:
    """Deletes the content of executions; that a tool ran is still known. `outer.inner` is a call of
    a sub-agent within another one, and its execution is known by the inner id.
    """
    inner = [call_id.rpartition(".")[2] for call_id in call_ids]
    await queries.clear_of_calls(tx, tenant_id, inner)
