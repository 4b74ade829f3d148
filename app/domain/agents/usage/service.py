"""Stores and counts usage, rolls it up, and computes statistics of agents and tenants."""

from datetime import timedelta
from typing import Any, Final, Literal

import msgspec

from app.domain.agents.definition import api as agents
from app.kit import clock, logs, trace
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db.fast import tenant_of
from db.session import ALL_TENANTS, DATABASE_ERRORS, Database, Tx

from . import count_queries, queries
from .count_queries import ExecutionKind
from .schemas import AgentStats, Period

log = logs.get("usage")


_PERIODS: Final = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
_BATCH_SIZE = 5000


class ModelCall(msgspec.Struct, frozen=True):
    """A successful call to a model outside of a turn."""

    source: Literal["embedding", "transcription", "speech", "form", "rerank", "question"]
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


async def add_call(db: Database, tenant_id: str, agent_id: str | None, call: ModelCall) -> None:
    """Stores the usage of a call at once, in a transaction of its own: the provider charges for it
    whatever becomes of the work that it was made for. An error of the database is logged: the work
    has its result, and must not make the call again. A call without an agent counts for the tenant
    alone.
    """
    # Hours have a row for each agent, so that one without an agent needs an id of the tenant's own.
    agent_id, current = agent_id or tenant_id, trace.current()
    row = msgspec.structs.asdict(call) | {
        "conversation_id": "",
        "message_id": new_id("usg"),
        "caller_id": current.actor_id,
        "cost_usd": round(call.cost_usd, 9),
        **dict.fromkeys(("turns", "conversations", "messages", "failures", "response_time_ms"), 0),
    }
    try:
        async with db.tx(tenant_id, autocommit=True) as tx:
            await queries.add(tx, tenant_id, agent_id, as_json([row]), current.correlation_id)
    except DATABASE_ERRORS:
        log.exception("the usage of a call is not stored", tenant_id=tenant_id, **row)


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
        row["failures"],
        row["ratings_up"],
        row["ratings_down"],
        row["conversations_by_source"],
        period,
    )


async def count(
    tx: Tx, tenant_id: str, kind: ExecutionKind, execution_id: str, *, agent_id: str | None = None
) -> None:
    """Counts an execution. To be called once, in the transaction that starts or ends it; statements
    can contain `count_sql` instead.
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
