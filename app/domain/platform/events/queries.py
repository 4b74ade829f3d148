"""The event log's SQL."""

from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from app.jobs.work import WorkKind
from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import Row, tenant_of
from db.lists import BOUND, Total, Where
from db.session import Tx
from db.user_names import user_name_sql
from db.views import View

from .schemas import Entry

MAX_DEPTH: Final = 8

# Fans an event out: deliveries and actions, each of them work of its own.
FAN_OUT: Final = WorkKind("events.fan_out", "deliveries")
# Runs one action of a subscription.
RUN_ACTION: Final = WorkKind("events.act", retry_delays=(5, 30, 120, 600))

# Users are notified of these without a subscription; the rules of notifications say who.
NOTIFIED_TYPES: Final = (
    "approval.requested",
    "form.submission.created",
    "system.credential.invalid",
    "system.source.changes_found",
    "system.source.failed",
    "system.storage.warning",
    "system.user.mfa_device_added",
    "system.user.mfa_device_removed",
    "system.user.mfa_disabled",
    "system.user.mfa_enabled",
    "system.user.mfa_reset",
    "system.user.password_changed",
    "system.user.recovery_code_used",
    "system.user.recovery_codes_replaced",
    "system.user.sign_in_blocked",
    "system.webhook.disabled",
    "workflow.execution.completed",
    "workflow.execution.failed",
)
_NOTIFIED = ", ".join(f"'{name}'" for name in NOTIFIED_TYPES)

_COLUMNS_IN = "tenant_id, id, type, correlation_id, parent_id, request_id, actor_id, data"

# One more than the depth of the event `p` that caused it; and the first event of the chain.
_DEPTH = "CASE WHEN p.id IS NULL THEN 0 ELSE least(p.depth + 1, 1000) END"
_ROOT = "coalesce(p.root_id, p.id)"

# A worker fans out an event that a webhook or a subscription waits for, or that users are notified
# of. That work is accepted in the statement that records the event: neither exists without the
# other. Of a chain that is too long, one more event is fanned out, so that its end is recorded; a
# workflow adds two at once, its start and its end, of which a subscription may name either.
_ROUTE = FAN_OUT.insert_sql(
    f"""emitted e
WHERE e.depth <= {MAX_DEPTH + 2} AND (
    e.type IN ({_NOTIFIED})
    OR EXISTS (SELECT 1 FROM webhooks w
               WHERE w.tenant_id = e.tenant_id AND w.active AND w.subscription_id IS NULL
                 AND e.type = ANY(w.events))
    OR EXISTS (SELECT 1 FROM event_subscriptions s
               WHERE s.tenant_id = e.tenant_id AND s.event_type = e.type AND s.active))
RETURNING id""",
    tenant_id="e.tenant_id",
    id="'wrk_' || substr(e.id, 5)",
    ref_id="e.id",
    dedupe_key="e.id",
    correlation_id="e.correlation_id",
    cause_event_id="e.id",
    dispatched_at="now()",
)


def work_id_of(event_id: str) -> str:
    """Returns the id of the work that fans the event out, if anything waits for it."""
    return f"wrk_{event_id[4:]}"


def _parent_sql(event_id: str, tenant_id: str) -> str:
    """LIMIT prevents a hash join, which would read the whole log."""
    return f"""
    SELECT id, depth, root_id FROM event_log WHERE id = {event_id} AND tenant_id = {tenant_id}
    LIMIT 1"""


_RETURNING = "RETURNING tenant_id, id, type, correlation_id, depth"

_INSERT = f"""
INSERT INTO event_log ({_COLUMNS_IN}, test, depth, root_id)
SELECT $1::text, $2, $3, $4, $5::text, $6, $7, $8::jsonb, $9, greatest({_DEPTH}, $10::int), {_ROOT}
FROM (SELECT 1) one LEFT JOIN LATERAL ({_parent_sql("$5::text", "$1::text")}) p ON true
"""
_EMIT = f"WITH emitted AS ({_INSERT} {_RETURNING}) {_ROUTE}"

_ACTOR = f"""
jsonb_build_object(
    'type', CASE WHEN starts_with(actor_id, 'usr_') THEN 'user'
                 WHEN starts_with(actor_id, 'svk_') THEN 'service_key'
                 WHEN starts_with(actor_id, 'emk_') THEN 'embed_key'
                 WHEN request_id IS NULL THEN 'system' ELSE 'anonymous' END,
    'id', actor_id,
    'name', coalesce(
        (SELECT {user_name_sql("u")} FROM users u
         WHERE u.id = actor_id AND u.tenant_id = event_log.tenant_id),
        (SELECT k.name FROM service_keys k
         WHERE k.id = actor_id AND k.tenant_id = event_log.tenant_id),
        (SELECT k.name FROM embed_keys k
         WHERE k.id = actor_id AND k.tenant_id = event_log.tenant_id)))"""
_ENTRY = View(Entry, computed=("omitted",), actor=_ACTOR)
# Also where rows are only counted: without it, a plan may read the whole table for a few.
_ORDER = "ORDER BY created_at DESC, id DESC"
# The newest rows of each tenant through the index, and the newest of these for super_admin: the
# cost does not grow with the log.
_TENANTS = "(SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1) t"
_FIND = f"""
SELECT {_ENTRY.columns} FROM event_log WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""


def emission_sql(parameter: str, condition: str = "") -> str:
    """Two common table expressions, `emitted` and `routed`, for a statement that records events
    together with its own rows. The events are one JSON parameter; `condition` is a WHERE or a JOIN
    on `e`. `ROUTED` selects the ids of the work to wake workers for.
    """
    return f"""
emitted AS (
    INSERT INTO event_log ({_COLUMNS_IN}, depth, root_id)
    SELECT e.tenant_id, e.id, e.type, e.correlation_id, e.parent_id, e.request_id, e.actor_id,
           e.data, greatest({_DEPTH}, e.depth), {_ROOT}
    FROM jsonb_to_recordset({parameter}::jsonb)
      AS e(tenant_id text, id text, type text, correlation_id text, parent_id text,
           request_id text, actor_id text, data jsonb, depth int)
    LEFT JOIN LATERAL ({_parent_sql("e.parent_id", "e.tenant_id")}) p ON true
    {condition}
    {_RETURNING}
), routed AS ({_ROUTE})"""


ROUTED: Final = "(SELECT array_agg(id) FROM routed) AS routed"


class Filter(msgspec.Struct, frozen=True):
    event_type: str | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def insert(tx: Tx, tenant: str, *values: object) -> None:
    """Records an event without fanning it out."""
    await fast.execute(tx, tenant, _INSERT, *values)


async def emit(tx: Tx, tenant: str, *values: object) -> str | None:
    """Records an event; returns the work that fans it out, if anything waits for the event."""
    work_id: str | None = await fast.value(tx, tenant, _EMIT, *values)
    return work_id


# What is said in conversations, and about them: deleted with them. `t` is the event.
CHAT_EVENTS: Final = """
t.type IN ('agent.chat.message', 'agent.chat.completed', 'agent.chat.failed', 'agent.chat.rated')
AND NOT t.test"""
_DELETE_CHATS = f"""
DELETE FROM event_log t
WHERE {CHAT_EVENTS}
  AND data->>'agent_id' = ANY($2) AND tenant_id = $1
  AND coalesce(data->>'job_id', '') <> ALL($3)
"""
_DELETE_CHAT = f"""
DELETE FROM event_log t
WHERE {CHAT_EVENTS}
  AND data->>'agent_id' = $2 AND created_at >= $4 AND data->>'conversation_id' = $3
  AND tenant_id = $1
"""

_DELETE_MESSAGES = f"""
DELETE FROM event_log t
WHERE {CHAT_EVENTS}
  AND data->>'agent_id' = $2 AND created_at >= $4 AND data->>'message_id' = ANY($3)
  AND tenant_id = $1
"""


async def delete_conversation_events(
    tx: Tx, tenant: str, agent_id: str, conversation_id: str, since: datetime
) -> None:
    await fast.execute(tx, tenant, _DELETE_CHAT, agent_id, conversation_id, since)


async def delete_message_events(
    tx: Tx, tenant: str, agent_id: str, message_ids: list[str], since: datetime
) -> None:
    """What was said in these messages, and about them."""
    await fast.execute(tx, tenant, _DELETE_MESSAGES, agent_id, message_ids, since)


async def delete_agent_chat_events(
    tx: Tx, tenant: str, agent_ids: list[str], except_jobs: list[str]
) -> None:
    await fast.execute(tx, tenant, _DELETE_CHATS, agent_ids, except_jobs)


# The events and those that they caused, at any distance, also of a first event that is deleted.
# LIMIT prevents hash joins, and `|| ''` the indexes that start with the tenant: they would read the
# whole log.
_FIND_CHAINS = """
WITH RECURSIVE chain AS (
    SELECT f.id AS first_id, e.id, e.root_id, e.execution_id
    FROM unnest($2::text[]) f(id) CROSS JOIN LATERAL (
        (SELECT id, coalesce(root_id, id) AS root_id, data->>'execution_id' AS execution_id
         FROM event_log WHERE tenant_id = $1 AND id = f.id LIMIT 1)
        UNION ALL
        (SELECT id, root_id, data->>'execution_id' FROM event_log
         WHERE tenant_id || '' = $1 AND root_id = f.id LIMIT 100000)
    ) e
    UNION
    SELECT c.first_id, e.id, c.root_id, e.execution_id
    FROM chain c CROSS JOIN LATERAL (
        SELECT id, data->>'execution_id' AS execution_id FROM event_log
        WHERE tenant_id || '' = $1 AND root_id = c.root_id AND parent_id = c.id LIMIT 100000
    ) e
)
SELECT first_id, id, execution_id FROM chain
"""


async def find_chains(tx: Tx, tenant: str, event_ids: list[str]) -> list[Row]:
    """Returns events with all that they caused: the first event, the id, and the execution of a
    workflow that the event is about.
    """
    return await fast.rows(tx, tenant, _FIND_CHAINS, event_ids)


async def delete(tx: Tx, tenant: str, event_ids: list[str]) -> None:
    """With their deliveries."""
    await delete_selected(tx, tenant, "SELECT unnest($2::text[])", event_ids)


async def delete_selected(tx: Tx, tenant: str, ids_sql: str, *args: object) -> None:
    sql = f"DELETE FROM event_log WHERE tenant_id = $1 AND id IN ({ids_sql})"
    await fast.execute(tx, tenant, sql, *args)


async def list_page(tx: Tx, filters: Filter, page: Page) -> tuple[list[Entry], Total]:
    where = _build_where(tenant_of(tx), filters)
    newest = f"FROM event_log WHERE {where.sql} AND tenant_id = t.id {_ORDER}"
    rows, total = await paging.fetch_page(
        tx,
        where,
        f"""
        {_ENTRY.columns} FROM event_log JOIN (
            SELECT e.id AS listed_id FROM {_TENANTS} CROSS JOIN LATERAL (
                SELECT id, created_at {newest} LIMIT $limit::bigint + $offset::bigint
            ) e ORDER BY e.created_at DESC, e.id DESC LIMIT $limit OFFSET $offset
        ) p ON p.listed_id = id AND {where.tenant_condition} {_ORDER}
        """,
        page,
        counted=f"FROM {_TENANTS} CROSS JOIN LATERAL (SELECT 1 {newest} LIMIT {BOUND + 1}) e",
        estimated=f"FROM event_log WHERE {where.estimated_sql}",
    )
    return [_ENTRY.build(row, omitted=False) for row in rows], total


def _build_where(tenant: str | None, filters: Filter) -> Where:
    where = Where(tenant)
    # With a correlation id, which few rows have, the condition on the type uses no index.
    has_correlation_id = filters.correlation_id is not None
    where.equal("type || ''" if has_correlation_id else "type", filters.event_type)
    where.equal("correlation_id", filters.correlation_id)
    where.between("created_at", filters.since, filters.until)
    return where


async def find(tx: Tx, event_id: str) -> Entry | None:
    row = await fast.row(tx, tenant_of(tx), _FIND, event_id)
    return None if row is None else _ENTRY.build(row, omitted=False)


_MAX_BYTES = 4 * 1024 * 1024
# Data is returned for the first events, up to a size in total.
_LIST_BY_CORRELATION = f"""
SELECT id, type, correlation_id, parent_id, test, created_at, request_id, actor,
       CASE WHEN sum(octet_length(data)) OVER (ORDER BY id) <= {_MAX_BYTES} THEN data END AS data
FROM (
    SELECT id, type, correlation_id, parent_id, test, created_at, request_id, data::text AS data,
           {_ACTOR} AS actor
    FROM event_log
    WHERE tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
      AND correlation_id = $2
    ORDER BY id LIMIT $3
) e ORDER BY id
"""


async def list_by_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_BY_CORRELATION, correlation_id, limit)


# Requests. Their ends are of use, but not worth a wait for the disk.

_ADD_REQUESTS = """
INSERT INTO request_spans (tenant_id, id, correlation_id, request_id, started_at, duration_ms,
                           name, status_code)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[],
                     $6::float8[], $7::text[], $8::int[])
RETURNING set_config('synchronous_commit', 'off', true)
"""
_LIST_REQUESTS = """
SELECT request_id, min(started_at) AS started_at,
       max(started_at + duration_ms * interval '1 millisecond') AS ended_at,
       (array_agg(name ORDER BY started_at))[1] AS name, max(status_code) AS status_code
FROM request_spans
WHERE tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND correlation_id = $2
GROUP BY request_id ORDER BY started_at LIMIT $3
"""


class FinishedRequest(NamedTuple):
    tenant_id: str
    id: str
    correlation_id: str
    request_id: str
    started_at: datetime
    duration_ms: float
    name: str
    status_code: int


async def add_requests(tx: Tx, requests: list[FinishedRequest]) -> None:
    """Of any tenants."""
    await (await tx.raw()).execute(_ADD_REQUESTS, *zip(*requests, strict=True))


async def list_requests(tx: Tx, tenant: str | None, correlation_id: str, limit: int) -> list[Row]:
    """The requests of a trace that are over, each from its first start to its last end."""
    return await fast.rows(tx, tenant, _LIST_REQUESTS, correlation_id, limit)


# The chain that an event belongs to, and how much work the chain has caused.

_FOR_FAN_OUT = """
SELECT id AS event_id, type AS event_type, correlation_id, created_at AS emitted_at, depth, root_id,
       test, data::text AS data
FROM event_log
WHERE tenant_id = $1 AND id = $2
"""
_DERIVED_WORK = "SELECT offspring FROM event_log WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE"
_ADD_DERIVED_WORK = """
UPDATE event_log SET offspring = offspring + $3 WHERE tenant_id = $1 AND id = $2
"""
_CAUSE = "SELECT tenant_id = $1 AS own, correlation_id, depth FROM event_log WHERE id = $2"


async def find_event(tx: Tx, tenant: str, event_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FOR_FAN_OUT, event_id)


async def lock_derived_work(tx: Tx, tenant: str, root_id: str) -> int:
    """Returns how much work a chain has caused, and locks the count until the transaction ends."""
    return int(await fast.value(tx, tenant, _DERIVED_WORK, root_id) or 0)


async def add_derived_work(tx: Tx, tenant: str, root_id: str, count: int) -> None:
    await fast.execute(tx, tenant, _ADD_DERIVED_WORK, root_id, count)


async def find_cause(tx: Tx, tenant: str, event_id: str) -> Row | None:
    """Finds an event of any tenant; of another tenant's event only the depth is used."""
    return await fast.row(tx, tenant, _CAUSE, event_id)
