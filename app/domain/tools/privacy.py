"""What agents and visitors said to tools goes when they go; that a tool ran is still known."""

from db import fast
from db.session import Tx

_FORGET = "UPDATE tool_executions SET input = '{}', output = NULL, error_message = NULL"
_AGENTS = f"{_FORGET} WHERE tenant_id = $1 AND agent_id = ANY($2)"
_CALLS = f"{_FORGET} WHERE tenant_id = $1 AND call_id = ANY($2)"


async def forget_agents(tx: Tx, tenant: str, agent_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _AGENTS, agent_ids)


async def forget_calls(tx: Tx, tenant: str, call_ids: list[str]) -> None:
    """`outer.inner` is a call of a sub-agent within another one; a run knows the inner."""
    inner = [call_id.rpartition(".")[2] for call_id in call_ids]
    await fast.execute(tx, tenant, _CALLS, inner)
