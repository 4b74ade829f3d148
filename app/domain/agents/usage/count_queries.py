"""SQL of counts: a row per execution, rolled up into hours and days in the background, and
requests, which each process adds up itself.
"""

from datetime import datetime
from typing import Literal

from db import fast
from db.session import Tx

from . import caller_queries

# What is counted by a row. Requests are counted as well, but without a row for each.
ExecutionKind = Literal["tool_executions", "workflow_executions"]


def count_sql(kind: ExecutionKind, source: str, execution_id: str, agent_id: str) -> str:
    """Returns an INSERT that counts executions of the tenant `$1`, as a part of a larger
    statement. `source` is the FROM clause, with a row per execution.
    """
    return f"""
    INSERT INTO usage_counts (tenant_id, kind, id, agent_id)
    SELECT $1, '{kind}', {execution_id}, coalesce({agent_id}, '') {source}
    ON CONFLICT (kind, id) DO NOTHING"""


_COUNT = """
INSERT INTO usage_counts (tenant_id, kind, id, agent_id) VALUES ($1, $2, $3, $4)
ON CONFLICT (kind, id) DO NOTHING
"""

# Adds the rows of `owned`. Statements that run at the same time lock rows in the same order.
_ADD = """
hours AS (
    INSERT INTO usage_count_hours AS h (tenant_id, hour, kind, agent_id, amount)
    SELECT tenant_id, hour, kind, agent_id, amount FROM owned ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant_id, hour, kind, agent_id) DO UPDATE SET amount = h.amount + excluded.amount
), days AS (
    INSERT INTO usage_count_days AS d (tenant_id, day, kind, agent_id, amount)
    SELECT tenant_id, (hour AT TIME ZONE 'UTC')::date AS day, kind, agent_id, sum(amount)
    FROM owned GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant_id, day, kind, agent_id) DO UPDATE SET amount = d.amount + excluded.amount
)"""

# An execution that ends while its tenant is deleted leaves a row without a tenant.
_ROLL_UP = f"""
WITH claimed AS (
    DELETE FROM usage_counts
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM usage_counts LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING tenant_id, kind, agent_id, date_trunc('hour', created_at, 'UTC') AS hour
), owned AS (
    SELECT tenant_id, kind, agent_id, hour, count(*) AS amount FROM claimed
    WHERE EXISTS (SELECT 1 FROM tenants WHERE tenants.id = claimed.tenant_id)
    GROUP BY tenant_id, kind, agent_id, hour
), {_ADD}
SELECT count(*) FROM claimed
"""

_ADD_REQUESTS = f"""
WITH counted AS (
    SELECT r.tenant_id, r.caller_id, r.hour, r.amount
    FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[])
      AS r(tenant_id, caller_id, hour, amount)
    WHERE EXISTS (SELECT 1 FROM tenants WHERE tenants.id = r.tenant_id)
), owned AS (
    SELECT tenant_id, 'requests' AS kind, '' AS agent_id, hour, sum(amount) AS amount
    FROM counted GROUP BY tenant_id, hour
), calls AS (
    SELECT tenant_id, hour, '' AS agent_id, caller_id, '' AS source, 0 AS prompt_tokens,
           0 AS completion_tokens, 0 AS cost_usd, 0 AS turns, 0 AS conversations,
           amount AS requests
    FROM counted
), {_ADD}, {caller_queries.ADD}, named AS ({caller_queries.ADD_NAMES})
SELECT count(*) FROM owned
"""


async def count(
    tx: Tx, tenant: str, kind: ExecutionKind, execution_id: str, agent_id: str | None
) -> None:
    await fast.execute(tx, tenant, _COUNT, kind, execution_id, agent_id or "")


async def roll_up(tx: Tx, limit: int) -> int:
    """Adds up to `limit` rows to their hours and days; returns the number of rows."""
    return int(await (await tx.raw()).fetchval(_ROLL_UP, limit))


async def add_requests(tx: Tx, counts: dict[tuple[str, str, datetime], int]) -> None:
    """Adds requests by tenant, caller and hour."""
    columns = [[key[number] for key in counts] for number in range(3)]
    await (await tx.raw()).execute(_ADD_REQUESTS, *columns, list(counts.values()))
