"""What agents and visitors said to tools goes when they go; that a tool ran is still known."""

from app.domain.tools import queries
from db.session import Tx


async def forget_agents(tx: Tx, tenant: str, agent_ids: list[str]) -> None:
    await queries.forget_agents(tx, tenant, agent_ids)


async def forget_calls(tx: Tx, tenant: str, call_ids: list[str]) -> None:
    """`outer.inner` is a call of a sub-agent within another one; a run knows the inner."""
    inner = [call_id.rpartition(".")[2] for call_id in call_ids]
    await queries.forget_calls(tx, tenant, inner)
