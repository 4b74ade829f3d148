"""SQL of the usage of a period: one statement, so that all sums come from one snapshot.

Whole days are read from the sums of days, hours from those of hours, and what is not rolled up yet
from its own rows: the cost does not grow with the number of rows.
"""

from datetime import datetime
from typing import Final, Literal

from db import fast
from db.fast import Row
from db.session import Tx

from .queries import turn_count_sql

MAX_ROWS: Final = 50
# Values of `grouping(date, agent_id, model)`, whose bits are set for columns that are summed over.
TOTAL: Final = 7
BY_DATE: Final = 3
BY_AGENT: Final = 5
BY_MODEL: Final = 6

MODEL_SUMS: Final = ("prompt_tokens", "completion_tokens", "cost_usd", "conversations")
_ROW_SUMS = (*MODEL_SUMS[:-1], turn_count_sql(MODEL_SUMS[-1]))
KINDS: Final = ("requests", "tool_executions", "workflow_executions")


def _usage_sql(
    table: str, date: str, since: str, owned: str, sums: tuple[str, ...] = MODEL_SUMS
) -> str:
    counts = ", ".join(f"0 AS {kind}" for kind in KINDS)
    return f"""
    SELECT {date} AS date, nullif(agent_id, u.tenant_id) AS agent_id, model,
           {", ".join(sums)}, {counts}
    FROM {table} u WHERE {owned} AND {since}
      AND ($3::text IS NULL OR agent_id = $3) AND ($4::text IS NULL OR model = $4)"""


def _counts_sql(table: str, date: str, amount: str, since: str, owned: str) -> str:
    sums = ", ".join(f"CASE WHEN kind = '{kind}' THEN {amount} ELSE 0 END" for kind in KINDS)
    return f"""
    SELECT {date}, nullif(agent_id, ''), NULL, {", ".join("0" * len(MODEL_SUMS))}, {sums}
    FROM {table} u WHERE {owned} AND {since}
      AND ($3::text IS NULL OR agent_id = $3) AND $4::text IS NULL"""


def _summary_sql(unit: Literal["hour", "day"], owned: str) -> str:
    """`owned` is the tenant condition of a table `u`."""
    date_of = "({} AT TIME ZONE 'UTC')::date"
    if unit == "day":
        date, since = "day", f"day >= {date_of.format('$2::timestamptz')}"
    else:
        date, since = date_of.format("hour"), "hour >= $2"
    row_date, row_since = date_of.format("created_at"), "created_at >= $2"
    sums = ", ".join(f"sum({name}) AS {name}" for name in (*MODEL_SUMS, *KINDS))
    return f"""
WITH rows AS (
    {_usage_sql(f"usage_{unit}s", date, since, owned)}
    UNION ALL {_usage_sql("usage", row_date, f"NOT rolled AND {row_since}", owned, _ROW_SUMS)}
    UNION ALL {_counts_sql(f"usage_count_{unit}s", date, "amount", since, owned)}
    UNION ALL {_counts_sql("usage_counts", row_date, "1", row_since, owned)}
), sums AS (
    SELECT grouping(date, agent_id, model) AS level, date, agent_id, model, {sums}
    FROM rows GROUP BY GROUPING SETS ((), (date), (agent_id), (model))
), ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY level
        ORDER BY cost_usd DESC, prompt_tokens + completion_tokens DESC, agent_id, model) AS rank
    FROM sums
    WHERE NOT (level = {BY_AGENT} AND agent_id IS NULL OR level = {BY_MODEL} AND model IS NULL)
)
SELECT r.*, a.name AS agent_name, t.plan, t.limits::text AS limits
FROM ranked r
LEFT JOIN agents a
  ON r.level = {BY_AGENT} AND a.id = r.agent_id AND ($1::text IS NULL OR a.tenant_id = $1)
LEFT JOIN tenants t ON r.level = {TOTAL} AND t.id = $5
WHERE r.level IN ({TOTAL}, {BY_DATE}) OR r.rank <= {MAX_ROWS}
ORDER BY r.level, r.date, r.rank
"""


_OF_TENANT = "u.tenant_id = $1"
# Rows of deleted tenants may be there for a moment.
_OF_ALL_TENANTS = "$1::text IS NULL AND EXISTS (SELECT 1 FROM tenants t WHERE t.id = u.tenant_id)"
_SUMMARY = {
    (unit, is_one): _summary_sql(unit, _OF_TENANT if is_one else _OF_ALL_TENANTS)
    for unit in ("hour", "day")
    for is_one in (True, False)
}


async def read_summary(
    tx: Tx,
    tenant: str | None,
    unit: Literal["hour", "day"],
    since: datetime,
    agent_id: str | None,
    model: str | None,
    payer_id: str,
) -> list[Row]:
    """Returns rows by `level`. The row of the total has the plan and the limits of `payer_id`."""
    statement = _SUMMARY[unit, tenant is not None]
    return await fast.rows(tx, tenant, statement, since, agent_id, model, payer_id)
