"""Stores and counts usage, rolls it up, and computes statistics of agents and tenants."""

from datetime import timedelta
from typing import Any, Final

from app.domain.agents import service as agents
from app.domain.usage import count_queries, queries
from app.domain.usage.count_queries import ExecutionKind, count_sql
from app.domain.usage.queries import insert_sql
from app.domain.usage.reports import build_report
from app.domain.usage.schemas import AgentStats, Period
from app.kit import clock
from app.services import Services
from db.fast import tenant_of
from db.session import ALL_TENANTS, Tx

__all__ = [
    "add_usage",
    "build_report",
    "count",
    "count_sql",
    "get_agent_stats",
    "insert_sql",
    "roll_up",
]

add_usage = queries.add

_PERIODS: Final = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_BATCH_SIZE = 5000


async def get_agent_stats(tx: Tx, agent_id: str, period: Period) -> AgentStats:
    await agents.require(tx, agent_id)
    since = clock.now() - _PERIODS[period] if period in _PERIODS else None
    row: Any = await queries.sum_by_agent(tx, tenant_of(tx), agent_id, since)
    average = row["response_time_ms"] / row["turns"] if row["turns"] else 0.0
    return AgentStats(
        agent_id,
        row["conversations"],
        row["messages"],
        row["tokens"],
        round(average, 1),
        period,
    )


async def count(
    tx: Tx, tenant_id: str, kind: ExecutionKind, execution_id: str, *, agent_id: str | None = None
) -> None:
    """Counts an execution. To be called once, in the transaction that finishes it; statements can
    contain `count_sql` instead.
    """
    await count_queries.count(tx, tenant_id, kind, execution_id, agent_id)


async def roll_up(services: Services) -> int:
    """Rolls up all new usage; returns the number of rows."""
    total = 0
    for add_batch in (queries.roll_up, count_queries.roll_up):
        rows = _BATCH_SIZE
        while rows == _BATCH_SIZE:
            async with services.db.tx(ALL_TENANTS) as tx:
                rows = await add_batch(tx, _BATCH_SIZE)
            total += rows
    return total
