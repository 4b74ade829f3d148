"""The event log's SQL."""

from datetime import datetime

import msgspec

from app.http.paging import Page
from app.kit.work import KINDS
from db import counting, fast
from db.counting import BOUND, Counted
from db.fast import Row
from db.session import Tx

DEEPEST = 8

_COLUMNS_IN = "tenant_id, id, type, correlation_id, parent_id, request_id, actor_id, data"

# How many led to it, one more than to the event `p` that caused it; and the first of them.
_ORIGIN = (
    "CASE WHEN p.id IS NULL THEN 0 ELSE least(p.depth + 1, 1000) END",
    "coalesce(p.root_id, p.id)",
)
_PARENT = "LEFT JOIN event_log p ON p.id = {parent} AND p.tenant_id = {tenant}"

# An event that somebody waits for, by a webhook or a subscription, is handed out by a worker. Its
# work is accepted in the statement that records it: neither is there without the other. Of a chain
# that is too long, one event more is looked at, to tell that it was stopped.
_ROUTE = f"""
INSERT INTO work (tenant_id, id, kind, ref_id, dedupe_key, max_attempts, correlation_id,
                  cause_event_id, dispatched_at)
SELECT e.tenant_id, 'wrk_' || substr(e.id, 5), 'events.fan_out', e.id, e.id,
       {KINDS["events.fan_out"].max_attempts}, e.correlation_id, e.id, now()
FROM {{emitted}} e
WHERE e.depth <= {DEEPEST + 1} AND (
    EXISTS (SELECT 1 FROM webhooks w
            WHERE w.tenant_id = e.tenant_id AND w.active AND w.subscription_id IS NULL
              AND e.type = ANY(w.events))
    OR EXISTS (SELECT 1 FROM event_subscriptions s
               WHERE s.tenant_id = e.tenant_id AND s.event_type = e.type AND s.active))
RETURNING id
"""  # noqa: S608  # our own text

_RETURNING = "RETURNING tenant_id, id, type, correlation_id, depth"

_INSERT = f"""
INSERT INTO event_log ({_COLUMNS_IN}, test, depth, root_id)
SELECT $1::text, $2, $3, $4, $5::text, $6, $7, $8::jsonb, $9,
       greatest({_ORIGIN[0]}, $10::int), {_ORIGIN[1]}
FROM (SELECT 1) one {_PARENT.format(parent="$5::text", tenant="$1::text")}
"""  # noqa: S608
_EMIT = f"WITH emitted AS ({_INSERT} {_RETURNING}) {_ROUTE.format(emitted='emitted')}"

_RECORDS = f"""
SELECT e.tenant_id, e.id, e.type, e.correlation_id, e.parent_id, e.request_id, e.actor_id, e.data,
       {", ".join(_ORIGIN)}
FROM jsonb_to_recordset({{parameter}}::jsonb)
  AS e(tenant_id text, id text, type text, correlation_id text, parent_id text, request_id text,
       actor_id text, data jsonb)
{_PARENT.format(parent="e.parent_id", tenant="e.tenant_id")}
"""  # noqa: S608

_COLUMNS = "id, type, correlation_id, parent_id, test, data::text AS data, created_at"
# Also where rows are only counted: without it, a plan may read the whole table for a few.
_ORDER = "ORDER BY created_at DESC, id DESC"
# Each tenant's own index gives its newest rows; whoever reaches all tenants gets the newest of
# those, at a price that does not grow with the log.
_TENANTS = "(SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1) t"
_ONE = f"SELECT {_COLUMNS} FROM event_log WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"  # noqa: S608


def emission(parameter: str, condition: str = "") -> str:
    """Two common table expressions, `emitted` and `routed`, for a statement that records events
    together with its own rows. The events are one JSON parameter; a condition or a join on `e` may
    be added. `ROUTED` gives what is to be woken for.
    """
    records = _RECORDS.format(parameter=parameter)
    return (
        f"emitted AS (INSERT INTO event_log ({_COLUMNS_IN}, depth, root_id) {records} {condition}"
        f" {_RETURNING}), routed AS ({_ROUTE.format(emitted='emitted')})"
    )


ROUTED = "(SELECT array_agg(id) FROM routed) AS routed"


class Filter(msgspec.Struct, frozen=True):
    event_type: str | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def insert(tx: Tx, tenant: str, *values: object) -> None:
    """Recorded, and handed out to nobody."""
    await fast.execute(tx, tenant, _INSERT, *values)


async def emit(tx: Tx, tenant: str, *values: object) -> str | None:
    """Recorded; gives the work that hands it out, if anybody waits for it."""
    routed: str | None = await fast.value(tx, tenant, _EMIT, *values)
    return routed


_FORGET_SAID = """
DELETE FROM event_log
WHERE type IN ('agent.chat.message', 'agent.chat.completed') AND NOT test
  AND data->>'agent_id' = ANY($2) AND tenant_id = $1
  AND coalesce(data->>'job_id', '') <> ALL($3)
"""


_FORGET_CONVERSATION = """
DELETE FROM event_log
WHERE type IN ('agent.chat.message', 'agent.chat.completed') AND NOT test
  AND data->>'agent_id' = $2 AND created_at >= $4 AND data->>'conversation_id' = $3
  AND tenant_id = $1
"""


async def forget_conversation(
    tx: Tx, tenant: str, agent_id: str, conversation_id: str, since: datetime
) -> None:
    await fast.execute(tx, tenant, _FORGET_CONVERSATION, agent_id, conversation_id, since)


async def forget_said(tx: Tx, tenant: str, agent_ids: list[str], except_jobs: list[str]) -> None:
    await fast.execute(tx, tenant, _FORGET_SAID, agent_ids, except_jobs)


async def page_of(
    tx: Tx, tenant: str | None, wanted: Filter, page: Page
) -> tuple[list[Row], Counted]:
    conditions, args = _conditions(wanted)
    theirs = f"FROM event_log WHERE tenant_id = t.id {conditions}"
    each = f"{theirs} {_ORDER} LIMIT {BOUND + 1}"
    of_all = f"FROM {_TENANTS} CROSS JOIN LATERAL (SELECT 1 {each}) e"
    mine = "tenant_id = $1" if tenant is not None else "$1::text IS NULL"
    guessed = f"FROM event_log WHERE {mine} {conditions}"
    total = await counting.rows(tx, tenant, of_all, *args, guessed=guessed)
    limit, offset = f"${len(args) + 2}", f"${len(args) + 3}"
    found = f"""
    SELECT {_COLUMNS} FROM event_log JOIN (
        SELECT e.id AS wanted FROM {_TENANTS} CROSS JOIN LATERAL (
            SELECT id, created_at {theirs}
            {_ORDER} LIMIT {limit}::bigint + {offset}::bigint
        ) e ORDER BY e.created_at DESC, e.id DESC LIMIT {limit} OFFSET {offset}
    ) p ON p.wanted = id {_ORDER}
    """  # noqa: S608
    return await fast.rows(tx, tenant, found, *args, page.per_page, page.offset), total


def _conditions(wanted: Filter) -> tuple[str, list[object]]:
    """Only those that are asked for: a plan that must serve all of them serves none well. Of a type
    and a correlation id, the second is what few rows have: the first is only looked at.
    """
    narrow = wanted.correlation_id is not None
    given = (
        ("type || '' = {}" if narrow else "type = {}", wanted.event_type),
        ("correlation_id = {}", wanted.correlation_id),
        ("created_at >= {}", wanted.since),
        ("created_at <= {}", wanted.until),
    )
    text = ""
    args: list[object] = []
    for condition, value in given:
        if value is not None:
            args.append(value)
            text += f" AND {condition.format(f'${len(args) + 1}')}"
    return text, args


async def one(tx: Tx, tenant: str | None, event_id: str) -> Row | None:
    return await fast.row(tx, tenant, _ONE, event_id)


class Trace(msgspec.Struct, frozen=True):
    events: list[Row]
    jobs: list[Row]
    tools: list[Row]
    models: list[Row]
    deliveries: list[Row]


_MOST = 5000
_MOST_BYTES = 4 * 1024 * 1024
_OF_TENANT = "tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)"

# The data of the first ones, as much as one can read.
_TRACE = f"""
SELECT id, type, correlation_id, parent_id, test, created_at, request_id,
       CASE WHEN sum(octet_length(data)) OVER (ORDER BY id) <= {_MOST_BYTES} THEN data END AS data
FROM (
    SELECT id, type, correlation_id, parent_id, test, created_at, request_id, data::text AS data
    FROM event_log WHERE {_OF_TENANT} AND correlation_id = $2 ORDER BY id LIMIT {_MOST}
) e ORDER BY id
"""  # noqa: S608

_JOBS = f"""
SELECT id, kind, ref_id, state, cause_event_id, created_at, started_at, finished_at FROM work
WHERE ($1::text IS NULL OR tenant_id = $1) AND correlation_id = $2
ORDER BY id LIMIT {_MOST}
"""  # noqa: S608

_TOOLS = f"""
SELECT e.id, e.work_id, t.name, e.status, e.executed_at, e.execution_time_ms
FROM tool_executions e JOIN tools t ON t.id = e.tool_id
WHERE e.{_OF_TENANT} AND e.correlation_id = $2
ORDER BY e.executed_at, e.id LIMIT {_MOST}
"""  # noqa: S608

# A turn's time is on the row of the agent's own model.
_MODELS = f"""
SELECT message_id AS id, model, response_time_ms, created_at FROM usage
WHERE {_OF_TENANT} AND correlation_id = $2
ORDER BY created_at, message_id LIMIT {_MOST}
"""  # noqa: S608

_DELIVERIES = f"""
SELECT d.id, d.event_id, d.event_type, d.status, d.created_at, d.finished_at,
       substring(w.url FROM '://([^/?#]*)') AS host
FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
WHERE d.{_OF_TENANT} AND d.correlation_id = $2
ORDER BY d.id LIMIT {_MOST}
"""  # noqa: S608


async def trace(tx: Tx, tenant: str | None, correlation_id: str) -> Trace:
    found = [
        await fast.rows(tx, tenant, sql, correlation_id)
        for sql in (_TRACE, _JOBS, _TOOLS, _MODELS, _DELIVERIES)
    ]
    return Trace(*found)
