"""Statistics of agents, from stored usage."""

from datetime import timedelta
from typing import Any, ClassVar, Final, Literal

import msgspec

from app.domain.agents import service as agents
from app.domain.usage import queries
from app.domain.usage.queries import insert_sql
from app.kit import clock
from app.services import Services
from db.fast import tenant_of
from db.session import ALL_TENANTS, Tx

__all__ = ["AgentStats", "Period", "add_usage", "get_agent_stats", "insert_sql", "roll_up"]

add_usage = queries.add

Period = Literal["24h", "7d", "30d", "all_time"]
_PERIODS: Final = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_BATCH = 5000


class AgentStats(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "total_conversations": 12,
        "total_messages": 48,
        "total_tokens_used": 9120,
        "avg_response_time_ms": 812.5,
        "period": "all_time",
    }

    agent_id: str
    total_conversations: int
    total_messages: int
    total_tokens_used: int
    avg_response_time_ms: float
    period: Period


async def get_agent_stats(tx: Tx, agent_id: str, period: Period) -> AgentStats:
    await agents.find(tx, agent_id)
    since = clock.now() - _PERIODS[period] if period in _PERIODS else None
    row: Any = await queries.of_agent(tx, tenant_of(tx), agent_id, since)
    average = row["response_time_ms"] / row["turns"] if row["turns"] else 0.0
    return AgentStats(
        agent_id,
        row["conversations"],
        row["messages"],
        row["tokens"],
        round(average, 1),
        period,
    )


async def roll_up(services: Services) -> int:
    """Adds new usage to its hours, until none is left."""
    total = 0
    while True:
        async with services.db.tx(ALL_TENANTS) as tx:
            done = await queries.roll_up(tx, _BATCH)
        total += done
        if done < _BATCH:
            return total
