"""The SQL of deliveries: creating, sending, recording and listing them."""

from typing import Final

import asyncpg
import msgspec

from app.domain.messaging.outbox.api import LogFilter, OutboxSql, list_newest
from app.jobs.work import WorkKind
from app.kit.paging import Page
from db import fast, leases
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.session import Tx
from db.views import View

from .schemas import DeliveryView, FullDelivery

# The retry schedule is a setting; the timeout is longer than that of one request.
DELIVER: Final = WorkKind("webhooks.deliver", "deliveries", timeout_seconds=45, in_bulk=True)

_TO_SEND = """
SELECT d.id AS delivery_id, d.tenant_id, d.webhook_id AS endpoint_id, d.attempt AS attempts,
       e.test AS is_test, w.url, w.active, w.keys, w.previous_until, d.event_id, d.event_type
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
_ADD_WORK = DELIVER.insert_sql(
    "added JOIN requested g ON g.id = added.id",
    id="g.work_id",
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

_ADD_RESTARTED_WORK = DELIVER.insert_sql(
    "again",
    id="$3::text",
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

_WAIT_AGAIN = """
UPDATE deliveries SET status = 'pending', finished_at = NULL, next_attempt_at = now()
WHERE tenant_id = $1 AND id = $2 AND work_id = $3 AND status = 'failed'
"""


# Records attempts, deliveries and health; `at` is null where nothing was sent. Locks endpoints in
# the order of their ids.
_RECORD = """
delivery AS (
    UPDATE deliveries d
    SET status = o.status, error = o.error,
        attempt = CASE WHEN o.at IS NULL THEN d.attempt ELSE greatest(d.attempt, o.number) END,
        response_code = CASE WHEN o.at IS NULL THEN d.response_code ELSE o.code END,
        response_time_ms = CASE WHEN o.at IS NULL THEN d.response_time_ms ELSE o.ms END,
        next_attempt_at = CASE WHEN o.state = 'pending' THEN recorded.run_at END,
        finished_at = CASE WHEN o.state = 'pending' THEN NULL ELSE now() END
    FROM o JOIN recorded ON recorded.id = o.work_id
    WHERE d.id = o.delivery_id AND d.work_id = o.work_id
    RETURNING d.id
), attempt AS (
    INSERT INTO delivery_attempts (tenant_id, delivery_id, number, url, response_code,
                                   response_time_ms, response_body, error, created_at)
    SELECT o.tenant_id, o.delivery_id, o.number, o.url, o.code, o.ms, o.body, o.error, o.at
    FROM o JOIN delivery ON delivery.id = o.delivery_id WHERE o.at IS NOT NULL
    ON CONFLICT (delivery_id, number) DO NOTHING
), turned AS (
    SELECT h.id, x.healthy
    FROM webhooks h JOIN (
        SELECT o.endpoint_id, bool_or(o.healthy) AS healthy
        FROM o JOIN delivery ON delivery.id = o.delivery_id
        WHERE o.healthy IS NOT NULL GROUP BY o.endpoint_id
    ) x ON x.endpoint_id = h.id
    WHERE x.healthy = (h.failing_since IS NOT NULL)
    ORDER BY h.id FOR UPDATE OF h
), health AS (
    UPDATE webhooks h SET failing_since = CASE WHEN turned.healthy THEN NULL ELSE now() END
    FROM turned WHERE h.id = turned.id
)
"""
_FAIL = """
UPDATE deliveries SET status = 'failed', error = $3, finished_at = now(), next_attempt_at = NULL
WHERE tenant_id = $1 AND id = $2 AND status = 'pending'
"""
_SPANS = """
SELECT d.id, d.event_id AS cause_id, d.status, d.created_at, d.finished_at, d.error,
       concat(d.event_type, ' to ', substring(w.url FROM '://([^/?#]*)')) AS name
FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.tenant_id = d.tenant_id
WHERE d.tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND d.correlation_id = $2
ORDER BY d.id LIMIT $3
"""
OUTBOX_SQL: Final = OutboxSql.build(
    "url text, at timestamptz, code int, body text, healthy boolean",
    _RECORD,
    fail=_FAIL,
    spans=_SPANS,
)

_FAILING = """
SELECT id FROM webhooks
WHERE id = ANY($1) AND active AND failing_since < now() - $2 * interval '1 second'
"""
_DISABLE = """
UPDATE webhooks SET active = false, disabled_reason = $3, updated_at = now()
WHERE tenant_id = $1 AND id = $2 AND active
RETURNING url, subscription_id, created_by
"""

_VIEW = View(DeliveryView, "l")
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
# No index serves it: rows are found by their webhook, never through all that the tenant has.
_UNINDEXED_TENANT = "tenant_id || ''"
_ONE = f"""
SELECT {_VIEW.columns}, l.work_id FROM deliveries l
WHERE l.tenant_id = $1 AND l.webhook_id = $2 AND l.id = $3
"""
_LOCKED = _ONE + " FOR UPDATE"


async def load_pending(
    tx: Tx, delivery_ids: list[str]
) -> tuple[list[asyncpg.Record], list[asyncpg.Record]]:
    """Returns the columns of requests for pending deliveries, and each of their events once."""
    raw = await tx.raw()
    deliveries = await raw.fetch(_TO_SEND, delivery_ids)
    events = await raw.fetch(_EVENTS, list({row["event_id"] for row in deliveries}))
    return deliveries, events


async def add(tx: Tx, tenant: str, *values: object) -> list[Row]:
    return await fast.rows(tx, tenant, _ADD, *values)


async def find_endpoints(tx: Tx, tenant: str, event_type: str, webhook_ids: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _ENDPOINTS, event_type, webhook_ids)


async def restart(tx: Tx, tenant: str, delivery_id: str, work_id: str, max_attempts: int) -> None:
    await fast.execute(tx, tenant, _RESTART, delivery_id, work_id, max_attempts)


async def wait_again(tx: Tx, tenant: str, delivery_id: str, work_id: str) -> bool:
    return await fast.execute(tx, tenant, _WAIT_AGAIN, delivery_id, work_id) == 1


async def find_failing(
    connection: asyncpg.Connection, webhook_ids: list[str], seconds: float
) -> list[str]:
    return [row["id"] for row in await connection.fetch(_FAILING, webhook_ids, seconds)]


async def disable(tx: Tx, tenant: str, webhook_id: str, reason: str) -> Row | None:
    return await fast.row(tx, tenant, _DISABLE, webhook_id, reason)


class EndpointRef(msgspec.Struct, frozen=True):
    """A webhook, or the own address of a subscription."""

    webhook_id: str
    subscription_id: str | None = None


_OF_SUBSCRIPTION = """
EXISTS (SELECT 1 FROM webhooks w
        WHERE ($1::text IS NULL OR w.tenant_id = $1) AND w.id = $2
          AND w.subscription_id IS NOT DISTINCT FROM $n)
"""


async def list_page(
    tx: Tx, endpoint: EndpointRef, filters: LogFilter, page: Page
) -> tuple[list[DeliveryView], Total]:
    where = Where(tenant_of(tx), tenant_column=_UNINDEXED_TENANT)
    where.add("webhook_id = $n", endpoint.webhook_id)
    where.add(_OF_SUBSCRIPTION, endpoint.subscription_id)
    rows, total = await list_newest(tx, _VIEW.columns, "deliveries", where, filters, page)
    return [_VIEW.build(row) for row in rows], total


async def find(
    tx: Tx, tenant: str, webhook_id: str, delivery_id: str, *, for_update: bool = False
) -> Row | None:
    return await fast.row(tx, tenant, _LOCKED if for_update else _ONE, webhook_id, delivery_id)


async def find_full(tx: Tx, endpoint: EndpointRef, delivery_id: str) -> Row | None:
    """Returns a delivery with its attempts, its event and the endpoint."""
    values = (endpoint.webhook_id, endpoint.subscription_id, delivery_id)
    return await fast.row(tx, tenant_of(tx), _FIND_FULL, *values)
