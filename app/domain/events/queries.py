"""The event log's SQL."""

from datetime import datetime

import msgspec

from app.http.paging import Page
from db import fast
from db.fast import Row
from db.session import Tx

_INSERT = """
INSERT INTO event_log (tenant_id, id, type, correlation_id, parent_id, request_id, actor_id, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb)
"""

_RECORDS = """
SELECT e.tenant_id, e.id, e.type, e.correlation_id, e.parent_id, e.request_id, e.actor_id, e.data
FROM jsonb_to_recordset({parameter}::jsonb)
  AS e(tenant_id text, id text, type text, correlation_id text, parent_id text, request_id text,
       actor_id text, data jsonb)
"""

_COLUMNS = "id, type, correlation_id, parent_id, data::text AS data, created_at"

_WHERE = """
FROM event_log
WHERE ($1::text IS NULL OR tenant_id = $1)
  AND ($2::text IS NULL OR type = $2)
  AND ($3::text IS NULL OR correlation_id = $3)
  AND ($4::timestamptz IS NULL OR created_at >= $4)
  AND ($5::timestamptz IS NULL OR created_at <= $5)
"""
_COUNT = "SELECT count(*) " + _WHERE
_PAGE = f"SELECT {_COLUMNS} {_WHERE} ORDER BY id DESC LIMIT $6 OFFSET $7"
_ONE = f"SELECT {_COLUMNS} FROM event_log WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"  # noqa: S608

_TRACE = f"""
SELECT {_COLUMNS}, request_id FROM event_log
WHERE ($1::text IS NULL OR tenant_id = $1) AND correlation_id = $2
ORDER BY id LIMIT 5000
"""  # noqa: S608

_JOBS = """
SELECT id, kind, state, cause_event_id, created_at, started_at, finished_at FROM work
WHERE ($1::text IS NULL OR tenant_id = $1) AND correlation_id = $2
ORDER BY id LIMIT 5000
"""


_TOOLS = """
SELECT e.id, e.work_id, t.name, e.status, e.executed_at, e.execution_time_ms
FROM tool_executions e JOIN tools t ON t.id = e.tool_id
WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.correlation_id = $2
ORDER BY e.executed_at, e.id LIMIT 5000
"""


def insert_sql(parameter: str) -> str:
    """An INSERT of all events in one JSON parameter; a condition may be written after it."""
    columns = "tenant_id, id, type, correlation_id, parent_id, request_id, actor_id, data"
    return f"INSERT INTO event_log ({columns}) {_RECORDS.format(parameter=parameter)}"


class Filter(msgspec.Struct, frozen=True):
    event_type: str | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def insert(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _INSERT, *values)


_FORGET_SAID = """
DELETE FROM event_log
WHERE type IN ('agent.chat.message', 'agent.chat.completed')
  AND data->>'agent_id' = ANY($2) AND tenant_id = $1
  AND coalesce(data->>'job_id', '') <> ALL($3)
"""


_FORGET_CONVERSATION = """
DELETE FROM event_log
WHERE type IN ('agent.chat.message', 'agent.chat.completed')
  AND data->>'agent_id' = $2 AND created_at >= $4 AND data->>'conversation_id' = $3
  AND tenant_id = $1
"""


async def forget_conversation(
    tx: Tx, tenant: str, agent_id: str, conversation_id: str, since: datetime
) -> None:
    await fast.execute(tx, tenant, _FORGET_CONVERSATION, agent_id, conversation_id, since)


async def forget_said(tx: Tx, tenant: str, agent_ids: list[str], except_jobs: list[str]) -> None:
    await fast.execute(tx, tenant, _FORGET_SAID, agent_ids, except_jobs)


async def page_of(tx: Tx, tenant: str | None, wanted: Filter, page: Page) -> tuple[list[Row], int]:
    given = (wanted.event_type, wanted.correlation_id, wanted.since, wanted.until)
    total: int = await fast.value(tx, tenant, _COUNT, *given)
    found = await fast.rows(tx, tenant, _PAGE, *given, page.per_page, page.offset)
    return found, total


async def one(tx: Tx, tenant: str | None, event_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ONE, event_id)


async def trace(
    tx: Tx, tenant: str | None, correlation_id: str
) -> tuple[list[Row], list[Row], list[Row]]:
    """Events, jobs and runs of tools."""
    events = await fast.rows(tx, tenant, _TRACE, correlation_id)
    jobs = await fast.rows(tx, tenant, _JOBS, correlation_id)
    return events, jobs, await fast.rows(tx, tenant, _TOOLS, correlation_id)
