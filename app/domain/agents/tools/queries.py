"""The SQL of tools, attachments and executions."""

from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Row as OrmRow
from sqlalchemy import select

from app.domain.agents.usage import api as usage
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Agent, AgentTool, Tool
from db.session import Tx
from db.views import View

from .schemas import Attachment, FullTool, ToolSummary

_SORT_ORDERS = SortOrders(
    "-created_at",
    Tool.id,
    name=Tool.name,
    slug=Tool.slug,
    category=Tool.category,
    tool_type=Tool.tool_type,
    usage_count=Tool.usage_count,
    last_used_at=Tool.last_used_at,
    created_at=Tool.created_at,
    updated_at=Tool.updated_at,
)
_SUMMARY = View(ToolSummary)
_ATTACHMENT = View(
    Attachment,
    "a",
    tool_name="t.name",
    tool_type="t.tool_type",
    category="t.category",
)

_TOOL_COLUMNS = """
t.id AS tool_id, t.tenant_id, t.name, t.tool_type, t.config::text AS config, t.auth_type,
t.auth_config, t.input_schema::text AS input_schema, t.output_schema::text AS output_schema,
t.is_enabled, a.id AS attachment_id, a.is_enabled AS attachment_enabled,
a.config_override::text AS config_override, a.override_auth
"""
_LOAD_TOOL = f"""
SELECT {_TOOL_COLUMNS}, ($3::text IS NULL OR EXISTS (
    SELECT 1 FROM agents g WHERE g.id = $3 AND g.tenant_id = t.tenant_id)) AS agent_exists
FROM tools t
LEFT JOIN agent_tools a ON a.tenant_id = t.tenant_id AND a.tool_id = t.id AND a.agent_id = $3
WHERE t.id = $2 AND ($1::text IS NULL OR t.tenant_id = $1)
"""

_INSERT_EXECUTION = """
INSERT INTO tool_executions (tenant_id, id, tool_id, agent_id, call_id, work_id, input,
                             correlation_id)
VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8)
ON CONFLICT (tenant_id, call_id) DO NOTHING
"""
_FIND_EXECUTION_BY_CALL = (
    "SELECT id, work_id FROM tool_executions WHERE tenant_id = $1 AND call_id = $2"
)

_LIST_OPEN_CALLS = """
SELECT call_id FROM tool_executions
WHERE tenant_id = $1 AND tool_id = $2 AND finished_at IS NULL AND call_id IS NOT NULL
"""

# A `previous_status` of running means that a worker died: the outcome of that run is unknown.
_START_EXECUTION = f"""
WITH unfinished AS (
    SELECT id, status FROM tool_executions
    WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL FOR UPDATE
), started AS (
    UPDATE tool_executions e SET status = 'running', executed_at = now()
    FROM unfinished WHERE e.id = unfinished.id
    RETURNING e.tool_id, e.agent_id, e.call_id, e.input::text AS input,
              unfinished.status AS previous_status
)
SELECT started.input, started.agent_id, started.call_id, started.previous_status, {_TOOL_COLUMNS}
FROM started JOIN tools t ON t.tenant_id = $1 AND t.id = started.tool_id
LEFT JOIN agent_tools a
  ON a.tenant_id = $1 AND a.tool_id = t.id AND a.agent_id = started.agent_id
"""
# Locks the tool before its execution, as deleting the tool does. By a statement of its own, so that
# the next one sees the row that is locked: else two runs that end at once can wait for each other.
_LOCK_TOOL = """
SELECT t.id FROM tools t JOIN tool_executions e ON e.tool_id = t.id
WHERE e.tenant_id = $1 AND e.id = $2 AND e.finished_at IS NULL FOR NO KEY UPDATE OF t
"""
# An execution ends and counts once.
_FINISH_EXECUTION = f"""
WITH finished AS (
    UPDATE tool_executions e
    SET status = $3, output = $4::json, error_code = $5, error_message = $6,
        execution_time_ms = $7, finished_at = now()
    WHERE e.tenant_id = $1 AND e.id = $2 AND e.finished_at IS NULL
    RETURNING e.id, e.tool_id, e.agent_id
), counted AS (
    {usage.count_sql("tool_executions", "FROM finished e", "e.id", "e.agent_id")}
)
UPDATE tools t SET usage_count = t.usage_count + 1, last_used_at = now()
FROM finished WHERE t.id = finished.tool_id
"""
# The largest input or output in a list: a page of the largest ones would have 300 MB.
LISTED_BYTES: Final = 32 * 1024
_EXECUTION_COLUMNS = """
id, tenant_id, tool_id, agent_id, call_id, work_id, status, input::text AS input,
output::text AS output, error_code, error_message, execution_time_ms, executed_at, finished_at
"""
_LISTED_COLUMNS = f"""
id, tool_id, agent_id, call_id, status,
CASE WHEN octet_length(input::text) <= {LISTED_BYTES} THEN input::text END AS input,
CASE WHEN octet_length(output::text) <= {LISTED_BYTES} THEN output::text END AS output,
error_code, error_message, execution_time_ms, executed_at
"""
_FIND_EXECUTION = f"""
SELECT {_EXECUTION_COLUMNS} FROM tool_executions
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""

_LOAD_STATS = """
SELECT count(*) AS total, count(*) FILTER (WHERE status = 'completed') AS successful,
       coalesce(avg(execution_time_ms), 0)::float AS average,
       coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY execution_time_ms), 0)::float AS p95,
       coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY execution_time_ms), 0)::float AS p99
FROM tool_executions
WHERE ($1::text IS NULL OR tenant_id = $1) AND tool_id = $2 AND finished_at IS NOT NULL
  AND executed_at > now() - $3 * interval '1 hour'
"""
_FULL = View(FullTool, "t", computed=("usage_stats", "auth_source", "credential_id"))
# The totals need no sorting, which makes them cheaper than `_LOAD_STATS`.
_FIND_FULL = f"""
SELECT {_FULL.columns}, t.tenant_id, t.auth_config, e.* FROM tools t CROSS JOIN LATERAL (
    SELECT count(*) AS total, count(*) FILTER (WHERE status = 'completed') AS successful,
           coalesce(avg(execution_time_ms), 0)::float AS average
    FROM tool_executions
    WHERE tenant_id = t.tenant_id AND tool_id = t.id AND finished_at IS NOT NULL
      AND executed_at > now() - $3 * interval '1 hour'
) e
WHERE ($1::text IS NULL OR t.tenant_id = $1) AND t.id = $2
"""
_EXISTS = "SELECT 1 FROM tools WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"
_FIND_EXISTING_IDS = "SELECT id FROM tools WHERE tenant_id = $1 AND id = ANY($2)"
_SELECT_ATTACHMENTS = f"""
SELECT {_ATTACHMENT.columns}
FROM agent_tools a JOIN tools t ON t.id = a.tool_id AND t.tenant_id = a.tenant_id
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.agent_id = $2
"""
_LIST_ATTACHMENTS = f"{_SELECT_ATTACHMENTS} ORDER BY a.display_order, a.attached_at, a.id"
_FIND_ATTACHMENT = f"{_SELECT_ATTACHMENTS} AND a.tool_id = $3"
_COUNT_BY_DAY = """
SELECT day::date::text AS date, count(e.id) AS executions,
       count(e.id) FILTER (WHERE e.status <> 'completed') AS failures
FROM generate_series(date_trunc('day', (now() - $3 * interval '1 hour') AT TIME ZONE 'UTC'),
                     date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day') AS day
LEFT JOIN tool_executions e
  ON ($1::text IS NULL OR e.tenant_id = $1) AND e.tool_id = $2 AND e.finished_at IS NOT NULL
  AND e.executed_at > now() - $3 * interval '1 hour'
  AND e.executed_at >= day AT TIME ZONE 'UTC'
  AND e.executed_at < (day + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY day ORDER BY day
"""
_LIST_TOP_AGENTS = """
SELECT e.agent_id, coalesce(a.name, '') AS agent_name, count(*) AS executions
FROM tool_executions e
LEFT JOIN agents a ON a.id = e.agent_id AND a.tenant_id = e.tenant_id
WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.tool_id = $2
  AND e.finished_at IS NOT NULL AND e.agent_id IS NOT NULL
  AND e.executed_at > now() - $3 * interval '1 hour'
GROUP BY e.agent_id, a.name ORDER BY executions DESC, e.agent_id LIMIT 10
"""
_COUNT_BY_CATEGORY = """
SELECT category, count(*) AS tools FROM tools WHERE ($1::text IS NULL OR tenant_id = $1)
GROUP BY category
"""
_LIST_SLUGS = "SELECT slug FROM tools WHERE tenant_id = $1 AND (slug = $2 OR slug LIKE $2 || '-%')"
_LOCK_SLUGS = "SELECT pg_advisory_xact_lock(hashtextextended('tools:' || $1, 0))"
_NEXT_DISPLAY_ORDER = """
SELECT coalesce(max(display_order) + 1, 0) FROM agent_tools WHERE tenant_id = $1 AND agent_id = $2
"""

# An execution stays for the statistics, without its content. An index has this condition.
HAS_CONTENT: Final = "input::text <> '{}' OR output IS NOT NULL OR error_message IS NOT NULL"
_CLEAR_EXECUTIONS = "UPDATE tool_executions SET input = '{}', output = NULL, error_message = NULL"
_CLEAR_EXECUTIONS_OF_AGENTS = f"""
{_CLEAR_EXECUTIONS} WHERE tenant_id = $1 AND agent_id = ANY($2) AND ({HAS_CONTENT})
"""
_CLEAR_EXECUTIONS_OF_CALLS = f"{_CLEAR_EXECUTIONS} WHERE tenant_id = $1 AND call_id = ANY($2)"
_DELAY_DELETION = "SELECT 1 FROM tools WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE"


async def clear_executions_of_agents(tx: Tx, tenant: str, agent_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _CLEAR_EXECUTIONS_OF_AGENTS, agent_ids)


async def clear_executions_of_calls(tx: Tx, tenant: str, call_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _CLEAR_EXECUTIONS_OF_CALLS, call_ids)


async def load_tool(tx: Tx, tenant: str | None, tool_id: str, agent_id: str | None) -> Row | None:
    """Returns the tool with the agent's attachment, as `run_plan.build_plan` reads it."""
    return await fast.row(tx, tenant, _LOAD_TOOL, tool_id, agent_id)


async def insert_execution(tx: Tx, tenant: str, *values: object) -> bool:
    """Returns False when there is an execution with this call_id already."""
    return await fast.execute(tx, tenant, _INSERT_EXECUTION, *values) == 1


async def list_open_calls(tx: Tx, tenant: str, tool_id: str) -> list[str]:
    """Returns the calls whose runs have not ended."""
    rows = await fast.rows(tx, tenant, _LIST_OPEN_CALLS, tool_id)
    return [row["call_id"] for row in rows]


async def find_execution_by_call(tx: Tx, tenant: str, call_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_EXECUTION_BY_CALL, call_id)


async def start_execution(tx: Tx, tenant: str, execution_id: str) -> Row | None:
    """Returns what to run. None when the execution is finished, or deleted with its tool."""
    return await fast.row(tx, tenant, _START_EXECUTION, execution_id)


async def finish_execution(
    tx: Tx,
    tenant: str,
    execution_id: str,
    status: str,
    output: str | None,
    error: tuple[str | None, str | None],
    milliseconds: int,
) -> None:
    await fast.execute(tx, tenant, _LOCK_TOOL, execution_id)
    await fast.execute(
        tx, tenant, _FINISH_EXECUTION, execution_id, status, output, *error, milliseconds
    )


async def find_execution(tx: Tx, tenant: str | None, execution_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_EXECUTION, execution_id)


class ExecutionFilter(msgspec.Struct, frozen=True):
    status: str | None = None
    after: datetime | None = None
    before: datetime | None = None


async def list_executions(
    tx: Tx, tool_id: str, filters: ExecutionFilter, page: Page
) -> tuple[list[Row], Total]:
    where = Where(tenant_of(tx), "finished_at IS NOT NULL")
    where.add("tool_id = $n", tool_id)
    where.equal("status", filters.status)
    if filters.after is not None:
        where.add("executed_at > $n", filters.after)
    if filters.before is not None:
        where.add("executed_at < $n", filters.before)
    order = "executed_at DESC, id DESC"
    return await paging.fetch_rows(
        tx, _LISTED_COLUMNS, "tool_executions", where, order, page, tenant_is_implied=True
    )


async def exists(tx: Tx, tool_id: str) -> bool:
    return await fast.value(tx, tenant_of(tx), _EXISTS, tool_id) is not None


async def find_existing_ids(tx: Tx, tenant: str, tool_ids: list[str]) -> set[str]:
    return {row["id"] for row in await fast.rows(tx, tenant, _FIND_EXISTING_IDS, tool_ids)}


async def find_full(tx: Tx, tool_id: str, hours: int) -> Row | None:
    """Returns a tool with `total`, `successful` and `average` of its executions."""
    return await fast.row(tx, tenant_of(tx), _FIND_FULL, tool_id, hours)


build_full = _FULL.build


async def load_stats(tx: Tx, tenant: str | None, tool_id: str, hours: int) -> Row:
    return await _load_aggregate(tx, tenant, _LOAD_STATS, tool_id, hours)


async def _load_aggregate(tx: Tx, tenant: str | None, query: str, *values: object) -> Row:
    row = await fast.row(tx, tenant, query, *values)
    if row is None:
        raise RuntimeError("an aggregate returned no row")
    return row


async def count_by_day(tx: Tx, tenant: str | None, tool_id: str, hours: int) -> list[Row]:
    return await fast.rows(tx, tenant, _COUNT_BY_DAY, tool_id, hours)


async def list_top_agents(tx: Tx, tenant: str | None, tool_id: str, hours: int) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_TOP_AGENTS, tool_id, hours)


async def count_by_category(tx: Tx, tenant: str | None) -> dict[str, int]:
    rows = await fast.rows(tx, tenant, _COUNT_BY_CATEGORY)
    return {row["category"]: row["tools"] for row in rows}


async def list_slugs_like(tx: Tx, tenant: str, slug: str) -> set[str]:
    """Takes a lock until the transaction ends, so that two new tools get different slugs."""
    await (await tx.raw()).execute(_LOCK_SLUGS, tenant)
    return {row["slug"] for row in await fast.rows(tx, tenant, _LIST_SLUGS, slug)}


async def next_display_order(tx: Tx, tenant: str, agent_id: str) -> int:
    value: Any = await fast.value(tx, tenant, _NEXT_DISPLAY_ORDER, agent_id)
    return int(value)


async def list_tools(
    tx: Tx,
    page: Page,
    filters: dict[str, Any],
    *,
    search: str | None,
    sort: str | None,
) -> tuple[list[ToolSummary], Total]:
    """`filters` are columns with the value that each must have, unless it is None."""
    where = Where(tenant_of(tx))
    for column, value in filters.items():
        where.equal(column, value)
    where.contain(search, "name", "description")
    return await paging.fetch(tx, _SUMMARY, "tools", where, _SORT_ORDERS.sql(sort), page)


async def list_auth_overrides(tx: Tx, tool_id: str) -> list[AgentTool]:
    """Returns the attachments of a tool that have an auth_config of their own."""
    statement = select(AgentTool).where(
        AgentTool.tool_id == tool_id, AgentTool.override_auth.is_not(None)
    )
    return list(await (await tx.session()).scalars(statement))


async def list_overrides_of_agent(tx: Tx, agent_id: str) -> list[tuple[AgentTool, Tool]]:
    """Returns the attachments of an agent with an auth_config of their own, and their tools."""
    statement = (
        select(AgentTool, Tool)
        .join(Tool, AgentTool.tool_id == Tool.id)
        .where(AgentTool.agent_id == agent_id, AgentTool.override_auth.is_not(None))
    )
    return [(row[0], row[1]) for row in await (await tx.session()).execute(statement)]


async def list_agents_with_tool(tx: Tx, tool_id: str) -> list[Agent]:
    statement = (
        select(Agent)
        .join(AgentTool, AgentTool.agent_id == Agent.id)
        .where(AgentTool.tool_id == tool_id)
    )
    return list(await (await tx.session()).scalars(statement))


async def list_attached_ids(tx: Tx, agent_id: str) -> set[str]:
    statement = select(AgentTool.tool_id).where(AgentTool.agent_id == agent_id)
    return set(await (await tx.session()).scalars(statement))


async def list_attachments(tx: Tx, agent_id: str) -> list[Attachment]:
    return await _ATTACHMENT.list(tx, tenant_of(tx), _LIST_ATTACHMENTS, agent_id)


async def find_attachment(tx: Tx, agent_id: str, tool_id: str) -> Attachment | None:
    return await _ATTACHMENT.find(tx, tenant_of(tx), _FIND_ATTACHMENT, agent_id, tool_id)


async def lock_attachment(tx: Tx, agent_id: str, tool_id: str) -> OrmRow[AgentTool, Tool] | None:
    statement = (
        select(AgentTool, Tool)
        .join(Tool, Tool.id == AgentTool.tool_id)
        .where(AgentTool.agent_id == agent_id, AgentTool.tool_id == tool_id)
        .with_for_update(of=AgentTool)
    )
    return (await (await tx.session()).execute(statement)).first()


async def delay_deletion(tx: Tx, tenant: str, tool_id: str) -> None:
    """Lets a deletion wait for this transaction."""
    await fast.execute(tx, tenant, _DELAY_DELETION, tool_id)
