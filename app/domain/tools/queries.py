"""The tools' SQL: what every run executes, and figures that only SQL can count."""

from datetime import datetime
from typing import Any

from sqlalchemy import Row as OrmRow
from sqlalchemy import select

from app.kit import paging
from app.kit.paging import Page
from db import counting, fast
from db.counting import Total
from db.fast import Row
from db.models import Agent, AgentTool, Tool
from db.session import Tx

_SORTABLE = {
    "name": Tool.name,
    "slug": Tool.slug,
    "category": Tool.category,
    "tool_type": Tool.tool_type,
    "usage_count": Tool.usage_count,
    "last_used_at": Tool.last_used_at,
    "created_at": Tool.created_at,
    "updated_at": Tool.updated_at,
}

_PLAN = """
t.id AS tool_id, t.tenant_id, t.name, t.tool_type, t.config::text AS config, t.auth_type,
t.auth_config, t.input_schema::text AS input_schema, t.output_schema::text AS output_schema,
t.is_enabled, a.id AS attachment_id, a.is_enabled AS attachment_enabled,
a.config_override::text AS config_override, a.override_auth
"""
_TO_RUN = f"""
SELECT {_PLAN}, ($3::text IS NULL OR EXISTS (
    SELECT 1 FROM agents g WHERE g.id = $3 AND g.tenant_id = t.tenant_id)) AS agent_known
FROM tools t LEFT JOIN agent_tools a ON a.tool_id = t.id AND a.agent_id = $3
WHERE t.id = $2 AND ($1::text IS NULL OR t.tenant_id = $1)
"""

_ADD = """
INSERT INTO tool_executions (tenant_id, id, tool_id, agent_id, call_id, work_id, input,
                             correlation_id)
VALUES ($1, $2, $3, $4, $5, $6, $7::json, $8)
ON CONFLICT (tenant_id, call_id) DO NOTHING
"""
_BY_CALL = "SELECT id, work_id FROM tool_executions WHERE tenant_id = $1 AND call_id = $2"

# `before` is how a run was found: one that ran already has an outcome that nobody knows.
_BEGIN = f"""
WITH found AS (
    SELECT id, status FROM tool_executions
    WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL FOR UPDATE
), begun AS (
    UPDATE tool_executions e SET status = 'running', executed_at = now()
    FROM found WHERE e.id = found.id
    RETURNING e.tool_id, e.agent_id, e.input::text AS input, found.status AS before
)
SELECT begun.input, begun.agent_id, begun.before, {_PLAN}
FROM begun JOIN tools t ON t.id = begun.tool_id
LEFT JOIN agent_tools a ON a.tool_id = t.id AND a.agent_id = begun.agent_id
"""
_END = """
WITH ended AS (
    UPDATE tool_executions
    SET status = $3, output = $4::json, error_code = $5, error_message = $6,
        execution_time_ms = $7, finished_at = now()
    WHERE tenant_id = $1 AND id = $2 AND finished_at IS NULL
    RETURNING tool_id
)
UPDATE tools t SET usage_count = t.usage_count + 1, last_used_at = now()
FROM ended WHERE t.id = ended.tool_id
"""
_COLUMNS = """
id, tenant_id, tool_id, agent_id, call_id, work_id, status, input::text AS input,
output::text AS output, error_code, error_message, execution_time_ms, executed_at, finished_at
"""
_ONE = f"SELECT {_COLUMNS} FROM tool_executions WHERE tenant_id = $1 AND id = $2"
_MATCHING = """
FROM tool_executions WHERE tool_id = $2 AND tenant_id IS NOT DISTINCT FROM coalesce($1, tenant_id)
AND finished_at IS NOT NULL AND ($3::text IS NULL OR status = $3)
AND ($4::timestamptz IS NULL OR executed_at > $4) AND ($5::timestamptz IS NULL OR executed_at < $5)
"""
_PAGE = f"""
SELECT {_COLUMNS} {_MATCHING}
ORDER BY executed_at DESC, id DESC LIMIT $6 OFFSET $7
"""

_STATS = """
SELECT count(*) AS total, count(*) FILTER (WHERE status = 'completed') AS successful,
       coalesce(avg(execution_time_ms), 0)::float AS average,
       coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY execution_time_ms), 0)::float AS p95,
       coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY execution_time_ms), 0)::float AS p99
FROM tool_executions
WHERE tenant_id = $1 AND tool_id = $2 AND finished_at IS NOT NULL
  AND executed_at > now() - $3 * interval '1 hour'
"""
_TOTALS = """
SELECT count(*) AS total, count(*) FILTER (WHERE status = 'completed') AS successful,
       coalesce(avg(execution_time_ms), 0)::float AS average
FROM tool_executions
WHERE tenant_id = $1 AND tool_id = $2 AND finished_at IS NOT NULL
  AND executed_at > now() - $3 * interval '1 hour'
"""
_DAYS = """
SELECT day::date::text AS date, count(e.id) AS executions,
       count(e.id) FILTER (WHERE e.status <> 'completed') AS failures
FROM generate_series(date_trunc('day', (now() - $3 * interval '1 hour') AT TIME ZONE 'UTC'),
                     date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day') AS day
LEFT JOIN tool_executions e
  ON e.tenant_id = $1 AND e.tool_id = $2 AND e.finished_at IS NOT NULL
  AND e.executed_at > now() - $3 * interval '1 hour'
  AND e.executed_at >= day AT TIME ZONE 'UTC'
  AND e.executed_at < (day + interval '1 day') AT TIME ZONE 'UTC'
GROUP BY day ORDER BY day
"""
_AGENTS = """
SELECT e.agent_id, coalesce(a.name, '') AS agent_name, count(*) AS executions
FROM tool_executions e
LEFT JOIN agents a ON a.id = e.agent_id AND a.tenant_id = e.tenant_id
WHERE e.tenant_id = $1 AND e.tool_id = $2 AND e.finished_at IS NOT NULL AND e.agent_id IS NOT NULL
  AND e.executed_at > now() - $3 * interval '1 hour'
GROUP BY e.agent_id, a.name ORDER BY executions DESC, e.agent_id LIMIT 10
"""
_CATEGORIES = """
SELECT category, count(*) AS tools FROM tools WHERE ($1::text IS NULL OR tenant_id = $1)
GROUP BY category
"""
_SLUGS = "SELECT slug FROM tools WHERE tenant_id = $1 AND (slug = $2 OR slug LIKE $2 || '-%')"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('tools:' || $1, 0))"
_HAS_RULES = """
SELECT EXISTS (SELECT 1 FROM credential_access
               WHERE tenant_id = $1 AND integration_type = 'tool' AND integration_id = $2)
"""
_NEXT_PLACE = """
SELECT coalesce(max(display_order) + 1, 0) FROM agent_tools WHERE tenant_id = $1 AND agent_id = $2
"""


# An execution stays for the statistics, without its content.
_CLEAR = "UPDATE tool_executions SET input = '{}', output = NULL, error_message = NULL"
_CLEAR_OF_AGENTS = f"{_CLEAR} WHERE tenant_id = $1 AND agent_id = ANY($2)"
_CLEAR_OF_CALLS = f"{_CLEAR} WHERE tenant_id = $1 AND call_id = ANY($2)"


async def clear_of_agents(tx: Tx, tenant: str, agent_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _CLEAR_OF_AGENTS, agent_ids)


async def clear_of_calls(tx: Tx, tenant: str, call_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _CLEAR_OF_CALLS, call_ids)


async def to_run(tx: Tx, tenant: str | None, tool_id: str, agent_id: str | None) -> Row | None:
    return await fast.row(tx, tenant, _TO_RUN, tool_id, agent_id)


async def add(tx: Tx, tenant: str, *values: object) -> bool:
    """False when a run for this very call was asked for before."""
    return await fast.execute(tx, tenant, _ADD, *values) == 1


async def by_call(tx: Tx, tenant: str, call_id: str) -> Row | None:
    return await fast.row(tx, tenant, _BY_CALL, call_id)


async def begin(tx: Tx, tenant: str, execution_id: str) -> Row | None:
    """What to run; None when it is over already, or deleted with its tool."""
    return await fast.row(tx, tenant, _BEGIN, execution_id)


async def end(
    tx: Tx,
    tenant: str,
    execution_id: str,
    status: str,
    output: str | None,
    error: tuple[str | None, str | None],
    milliseconds: int,
) -> None:
    await fast.execute(tx, tenant, _END, execution_id, status, output, *error, milliseconds)


async def find(tx: Tx, tenant: str, execution_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ONE, execution_id)


async def list_page(
    tx: Tx,
    tenant: str | None,
    tool_id: str,
    status: str | None,
    after: datetime | None,
    before: datetime | None,
    page: Page,
) -> tuple[list[Row], Total]:
    filters = (tool_id, status, after, before)
    total = await counting.count_rows(tx, tenant, _MATCHING, *filters)
    rows = await fast.rows(tx, tenant, _PAGE, *filters, page.per_page, page.offset)
    return rows, total


async def stats(tx: Tx, tenant: str, tool_id: str, hours: int) -> Row:
    found = await fast.row(tx, tenant, _STATS, tool_id, hours)
    if found is None:
        raise RuntimeError("an aggregate gave no row")
    return found


async def totals(tx: Tx, tenant: str, tool_id: str, hours: int) -> Row:
    """The figures that need no sorting."""
    found = await fast.row(tx, tenant, _TOTALS, tool_id, hours)
    if found is None:
        raise RuntimeError("an aggregate gave no row")
    return found


async def days(tx: Tx, tenant: str, tool_id: str, hours: int) -> list[Row]:
    return await fast.rows(tx, tenant, _DAYS, tool_id, hours)


async def top_agents(tx: Tx, tenant: str, tool_id: str, hours: int) -> list[Row]:
    return await fast.rows(tx, tenant, _AGENTS, tool_id, hours)


async def categories(tx: Tx, tenant: str | None) -> dict[str, int]:
    rows = await fast.rows(tx, tenant, _CATEGORIES)
    return {row["category"]: row["tools"] for row in rows}


async def slugs_like(tx: Tx, tenant: str, slug: str) -> set[str]:
    """Under a lock, so that two new tools of one name do not choose the same."""
    await (await tx.raw()).execute(_LOCK, tenant)
    return {row["slug"] for row in await fast.rows(tx, tenant, _SLUGS, slug)}


async def has_rules(tx: Tx, tenant: str, tool_id: str) -> bool:
    """Some credential may be used by this tool."""
    return bool(await fast.value(tx, tenant, _HAS_RULES, tool_id))


async def next_place(tx: Tx, tenant: str, agent_id: str) -> int:
    found: Any = await fast.value(tx, tenant, _NEXT_PLACE, agent_id)
    return int(found)


_OF_CORRELATION = """
SELECT e.id, e.work_id, t.name, e.status, e.executed_at, e.execution_time_ms
FROM tool_executions e JOIN tools t ON t.id = e.tool_id
WHERE e.tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND e.correlation_id = $2
ORDER BY e.executed_at, e.id LIMIT $3
"""


async def of_correlation(tx: Tx, tenant: str | None, correlation_id: str, limit: int) -> list[Row]:
    return await fast.rows(tx, tenant, _OF_CORRELATION, correlation_id, limit)


async def list_tools(
    tx: Tx,
    page: Page,
    *,
    category: str | None,
    tool_type: str | None,
    search: str | None,
    sort: str | None,
) -> tuple[list[Tool], Total]:
    statement = select(Tool)
    if category:
        statement = statement.where(Tool.category == category)
    if tool_type:
        statement = statement.where(Tool.tool_type == tool_type)
    if search:
        statement = statement.where(
            paging.contains(Tool.name, search) | paging.contains(Tool.description, search)
        )
    ordering = paging.order(sort, _SORTABLE, "-created_at", Tool.id)
    return await paging.fetch(tx, statement, page, ordering)


async def list_auth_overrides(tx: Tx, tool_id: str) -> list[AgentTool]:
    """Attachments of a tool with auth of their own."""
    statement = select(AgentTool).where(
        AgentTool.tool_id == tool_id, AgentTool.override_auth.is_not(None)
    )
    return list(await (await tx.session()).scalars(statement))


async def list_agents_with(tx: Tx, tool_id: str) -> list[Agent]:
    statement = (
        select(Agent)
        .join(AgentTool, AgentTool.agent_id == Agent.id)
        .where(AgentTool.tool_id == tool_id)
    )
    return list(await (await tx.session()).scalars(statement))


async def list_attachments(tx: Tx, agent_id: str) -> list[OrmRow[AgentTool, Tool]]:
    statement = (
        select(AgentTool, Tool)
        .join(Tool, Tool.id == AgentTool.tool_id)
        .where(AgentTool.agent_id == agent_id)
        .order_by(AgentTool.display_order, AgentTool.attached_at, AgentTool.id)
    )
    return list(await (await tx.session()).execute(statement))


async def lock_attachment(tx: Tx, agent_id: str, tool_id: str) -> OrmRow[AgentTool, Tool] | None:
    statement = (
        select(AgentTool, Tool)
        .join(Tool, Tool.id == AgentTool.tool_id)
        .where(AgentTool.agent_id == agent_id, AgentTool.tool_id == tool_id)
        .with_for_update(of=AgentTool)
    )
    return (await (await tx.session()).execute(statement)).first()
