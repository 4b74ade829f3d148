"""The SQL of deliveries: creating, sending, recording and listing them."""

from datetime import datetime
from typing import Final

import asyncpg
import msgspec

from app.domain.messaging.deliveries.schemas import DeliveryView, FullDelivery, Status
from app.jobs.work import WorkKind
from app.kit import paging
from app.kit.paging import Page
from db import fast, leases, ledger
from db.fast import Row, tenant_of
from db.lists import BOUND, Total, Where
from db.session import Tx
from db.views import View

# The retry schedule is a setting; the timeout is longer than that of one request.
DELIVER: Final = WorkKind("webhooks.deliver", "deliveries", timeout_seconds=45, in_bulk=True)

_TO_SEND = """
SELECT d.id, d.id AS delivery_id, d.tenant_id, d.webhook_id, w.url, w.active, w.keys,
       w.previous_until, d.event_id, d.event_type, d.attempt AS attempts, e.test
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id AND w.tenant_id = d.tenant_id
JOIN event_log e ON e.id = d.event_id AND e.tenant_id = d.tenant_id
WHERE d.id = ANY($1) AND d.status = 'pending'
"""
_EVENTS = """
SELECT e.id AS event_id, e.type AS event_type, e.created_at AS emitted_at, e.correlation_id,
       e.data::text AS data
FROM event_log e WHERE e.id = ANY($1)
"""

# One delivery for each event and endpoint, also if the event is fanned out twice. Deliveries that
# the caller sends itself are leased from the start.
_ADD_WORK = ledger.insert_sql(
    "added JOIN requested g ON g.id = added.id",
    tenant_id="$1::text",
    id="g.work_id",
    kind=f"'{DELIVER.name}'",
    ref_id="g.id",
    lane="g.webhook_id",
    max_attempts="$8",
    correlation_id="$4::text",
    cause_event_id="$2::text",
    dispatched_at="now()",
    **leases.columns_sql("g.token", "$10"),
)
_ADD = f"""
WITH requested AS (
    SELECT * FROM unnest($5::text[], $6::text[], $7::text[], $9::text[])
      AS g(id, webhook_id, work_id, token)
), added AS (
    INSERT INTO deliveries (tenant_id, id, webhook_id, event_id, event_type, work_id,
                            correlation_id)
    SELECT $1::text, g.id, g.webhook_id, $2::text, $3, g.work_id, $4::text FROM requested g
    ON CONFLICT (event_id, webhook_id) DO NOTHING
    RETURNING id
)
{_ADD_WORK}
RETURNING id, ref_id, lane, lease_token
"""

# Locked until their deliveries are written, so that no endpoint is deleted before.
_ENDPOINTS = """
SELECT id AS webhook_id, tenant_id, url, active, keys, previous_until FROM webhooks
WHERE tenant_id = $1 AND active
  AND (subscription_id IS NULL AND $2 = ANY(events) OR id = ANY($3))
ORDER BY id FOR KEY SHARE
"""

_ADD_RESTARTED_WORK = ledger.insert_sql(
    "again",
    tenant_id="$1::text",
    id="$3::text",
    kind=f"'{DELIVER.name}'",
    ref_id="id",
    lane="webhook_id",
    max_attempts="$4",
    correlation_id="correlation_id",
    cause_event_id="event_id",
    dispatched_at="now()",
)
_RESTART = f"""
WITH again AS (
    UPDATE deliveries SET status = 'pending', work_id = $3::text, finished_at = NULL,
                          next_attempt_at = now()
    WHERE tenant_id = $1::text AND id = $2
    RETURNING id, webhook_id, event_id, correlation_id
)
{_ADD_RESTARTED_WORK}
"""


def _record_sql(*, skip_locked: bool) -> str:
    """Records attempts, deliveries, work and health; locks endpoints in the order of their ids."""
    return f"""
WITH o AS (
    SELECT * FROM jsonb_to_recordset($1::jsonb) AS o(
        work_id text, lease_token text, state text, after float8, error text, tenant_id text,
        delivery_id text, webhook_id text, number int, status text, code int, ms int, body text,
        url text, at timestamptz, healthy boolean)
), {ledger.outcomes_sql("o", skip_locked=skip_locked)}, delivery AS (
    UPDATE deliveries d
    SET status = o.status, attempt = greatest(d.attempt, coalesce(o.number, 0)), error = o.error,
        response_code = CASE WHEN o.number IS NULL THEN d.response_code ELSE o.code END,
        response_time_ms = CASE WHEN o.number IS NULL THEN d.response_time_ms ELSE o.ms END,
        next_attempt_at = CASE WHEN o.state = 'pending' THEN recorded.run_at END,
        finished_at = CASE WHEN o.state = 'pending' THEN NULL ELSE now() END
    FROM o JOIN recorded ON recorded.id = o.work_id
    WHERE d.id = o.delivery_id AND d.work_id = o.work_id
    RETURNING d.id
), attempt AS (
    INSERT INTO delivery_attempts (tenant_id, delivery_id, number, url, response_code,
                                   response_time_ms, response_body, error, created_at)
    SELECT o.tenant_id, o.delivery_id, o.number, o.url, o.code, o.ms, o.body, o.error, o.at
    FROM o JOIN delivery ON delivery.id = o.delivery_id WHERE o.number IS NOT NULL
    ON CONFLICT (delivery_id, number) DO NOTHING
), turned AS (
    SELECT h.id, x.healthy
    FROM webhooks h JOIN (
        SELECT o.webhook_id, bool_or(o.healthy) AS healthy
        FROM o JOIN delivery ON delivery.id = o.delivery_id
        WHERE o.healthy IS NOT NULL GROUP BY o.webhook_id
    ) x ON x.webhook_id = h.id
    WHERE x.healthy = (h.failing_since IS NOT NULL)
    ORDER BY h.id FOR UPDATE OF h
), health AS (
    UPDATE webhooks h SET failing_since = CASE WHEN turned.healthy THEN NULL ELSE now() END
    FROM turned WHERE h.id = turned.id
)
SELECT id FROM recorded
"""


_RECORD_MANY = _record_sql(skip_locked=True)
_RECORD_ONE = _record_sql(skip_locked=False)

_FAILING = """
SELECT id FROM webhooks
WHERE id = ANY($1) AND active AND failing_since < now() - $2 * interval '1 second'
"""
_DISABLE = """
UPDATE webhooks SET active = false, disabled_reason = $3, updated_at = now()
WHERE tenant_id = $1 AND id = $2 AND active
RETURNING url, subscription_id, created_by
"""

_FAIL = """
UPDATE deliveries SET status = 'failed', error = $3, finished_at = now(), next_attempt_at = NULL
WHERE tenant_id = $1 AND id = $2 AND status = 'pending'
"""

_VIEW = View(DeliveryView)
_FULL = View(
    FullDelivery,
    "d",
    computed=("request",),
    attempts="""
    (SELECT coalesce(json_agg(json_build_object(
        'attempt', a.number, 'url', a.url, 'response_code', a.response_code,
        'status', CASE WHEN a.error IS NULL THEN 'delivered' ELSE 'failed' END,
        'response_time_ms', a.response_time_ms, 'response_body', a.response_body,
        'error', a.error, 'created_at', a.created_at) ORDER BY a.number DESC), '[]')
     FROM (SELECT * FROM delivery_attempts WHERE tenant_id = d.tenant_id AND delivery_id = d.id
           ORDER BY number DESC LIMIT 100) a)""",
)
_FIND_FULL = f"""
SELECT {_FULL.columns}, d.tenant_id, d.webhook_id, w.url, w.keys, e.created_at AS emitted_at,
       e.data::text AS data
FROM deliveries d
JOIN webhooks w ON w.id = d.webhook_id AND w.tenant_id = d.tenant_id
LEFT JOIN event_log e ON e.id = d.event_id AND e.tenant_id = d.tenant_id
WHERE ($1::text IS NULL OR d.tenant_id = $1) AND d.webhook_id = $2 AND d.id = $4
  AND w.subscription_id IS NOT DISTINCT FROM $3
"""
build_view, build_full = _VIEW.build, _FULL.build
# Also where rows are only counted: without it, a plan may read the whole table for a few.
_ORDER = "ORDER BY created_at DESC, id DESC"
# No index serves it: rows are found by their webhook, never through all that the tenant has.
_UNINDEXED_TENANT = "tenant_id || ''"
_STATUSES = ("pending", "delivered", "failed")
_ONE = f"""
SELECT {_VIEW.columns}, work_id FROM deliveries
WHERE tenant_id = $1 AND webhook_id = $2 AND id = $3
"""
_LOCKED = _ONE + " FOR UPDATE"


async def load_pending(tx: Tx, delivery_ids: list[str]) -> tuple[list[Row], list[Row]]:
    """Returns the pending deliveries, and each of their events once."""
    raw = await tx.raw()
    deliveries = await raw.fetch(_TO_SEND, delivery_ids)
    events = await raw.fetch(_EVENTS, list({row["event_id"] for row in deliveries}))
    return list(deliveries), list(events)


async def add(tx: Tx, tenant: str, *values: object) -> list[Row]:
    return await fast.rows(tx, tenant, _ADD, *values)


async def find_endpoints(tx: Tx, tenant: str, event_type: str, webhook_ids: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _ENDPOINTS, event_type, webhook_ids)


async def restart(tx: Tx, tenant: str, delivery_id: str, work_id: str, max_attempts: int) -> None:
    await fast.execute(tx, tenant, _RESTART, delivery_id, work_id, max_attempts)


async def record(
    connection: asyncpg.Connection, outcomes: str, *, skip_locked: bool = True
) -> set[str]:
    """Returns the work whose lease is still valid. With `skip_locked`, locked rows are left out."""
    sql = _RECORD_MANY if skip_locked else _RECORD_ONE
    return {row["id"] for row in await connection.fetch(sql, outcomes)}


async def find_failing(
    connection: asyncpg.Connection, webhook_ids: list[str], seconds: float
) -> list[str]:
    return [row["id"] for row in await connection.fetch(_FAILING, webhook_ids, seconds)]


async def disable(tx: Tx, tenant: str, webhook_id: str, reason: str) -> Row | None:
    return await fast.row(tx, tenant, _DISABLE, webhook_id, reason)


async def fail(tx: Tx, tenant: str, delivery_id: str, error: str) -> None:
    await fast.execute(tx, tenant, _FAIL, delivery_id, error)


class EndpointRef(msgspec.Struct, frozen=True):
    """A webhook, or the own address of a subscription."""

    webhook_id: str
    subscription_id: str | None = None


class DeliveryFilter(msgspec.Struct, frozen=True):
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None


_OF_SUBSCRIPTION = """
EXISTS (SELECT 1 FROM webhooks w
        WHERE ($1::text IS NULL OR w.tenant_id = $1) AND w.id = $2
          AND w.subscription_id IS NOT DISTINCT FROM $n)
"""


async def list_page(
    tx: Tx, endpoint: EndpointRef, filters: DeliveryFilter, page: Page
) -> tuple[list[DeliveryView], Total]:
    """Reads the newest rows of each status and takes the newest of these, so that one index serves
    every combination of filters.
    """
    where = Where(tenant_of(tx), tenant_column=_UNINDEXED_TENANT)
    where.add("webhook_id = $n", endpoint.webhook_id)
    where.add(_OF_SUBSCRIPTION, endpoint.subscription_id)
    where.between("created_at", filters.since, filters.until)
    statuses = where.bind([filters.status] if filters.status else list(_STATUSES))
    of_status = f"FROM deliveries WHERE {where.sql} AND status = s.status {_ORDER}"
    each_status = f"FROM unnest({statuses}::text[]) AS s(status) CROSS JOIN LATERAL"
    rows, total = await paging.fetch_page(
        tx,
        where,
        f"""
        {_VIEW.columns} FROM deliveries JOIN (
            SELECT d.id AS listed_id {each_status} (
                SELECT id, created_at {of_status} LIMIT $limit::bigint + $offset::bigint
            ) d ORDER BY d.created_at DESC, d.id DESC LIMIT $limit OFFSET $offset
        ) p ON p.listed_id = id AND {where.tenant_condition} {_ORDER}
        """,
        page,
        counted=f"{each_status} (SELECT 1 {of_status} LIMIT {BOUND + 1}) d",
        estimated=f"FROM deliveries WHERE {where.sql_without_tenant} AND status = ANY({statuses})",
    )
    return [_VIEW.build(row) for row in rows], total


async def find(
    tx: Tx, tenant: str, webhook_id: str, delivery_id: str, *, for_update: bool = False
) -> Row | None:
    return await fast.row(tx, tenant, _LOCKED if for_update else _ONE, webhook_id, delivery_id)


async def find_full(tx: Tx, endpoint: EndpointRef, delivery_id: str) -> Row | None:
    """Returns a delivery with its attempts, its event and the endpoint."""
    values = (endpoint.webhook_id, endpoint.subscription_id, delivery_id)
    return await fast.row(tx, tenant_of(tx), _FIND_FULL, *values)


_SPANS = """
SELECT d.id, d.event_id, d.event_type, d.status, d.created_at, d.finished_at,
       substring(w.url FROM '://([^/?#]*)') AS host
FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.tenant_id = d.tenant_id
WHERE d.tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND d.correlation_id = $2
ORDER BY d.id LIMIT $3
"""


async def list_by_correlation(
    tx: Tx, tenant: str | None, correlation_id: str, limit: int
) -> list[Row]:
    return await fast.rows(tx, tenant, _SPANS, correlation_id, limit)
