"""SQL of deliveries through channels: loading, recording and replacing them."""

from typing import Final

import asyncpg

from app.domain.messaging.outbox.api import OutboxSql
from db import fast
from db.fast import Row
from db.session import Tx

_LOAD = """
SELECT d.id AS delivery_id, d.tenant_id, d.message_id, d.channel_id AS endpoint_id, d.first_id,
       d.occasion AS cause_id, d.recipient, d.user_id, d.attempt AS attempts, d.is_test,
       d.throttled_at, d.correlation_id,
       m.type, m.source, m.title, m.message, m.data::text AS data, m.created_at,
       m.recipients ? 'channel_id' AS is_named,
       c.type AS channel_type, c.provider, c.config,
       c.active AND c.deleted_at IS NULL AS active, c.rate_limit_per_minute,
       d.user_id IS NULL OR u.id IS NOT NULL AS has_recipient
FROM notification_deliveries d
JOIN notification_messages m ON m.id = d.message_id AND m.tenant_id = d.tenant_id
JOIN notification_channels c ON c.id = d.channel_id AND c.tenant_id = d.tenant_id
LEFT JOIN users u ON u.id = d.user_id AND u.status = 'active'
WHERE d.id = ANY($1) AND d.status = 'pending'
"""

# Records deliveries, attempts and figures. A retry adds the row of its attempt. Rows of days are
# locked in the order of their channels.
_RECORD = """
delivery AS (
    UPDATE notification_deliveries d
    SET status = o.status, attempt = o.number,
        finished_at = CASE WHEN o.status = 'pending' THEN NULL ELSE now() END
    FROM o JOIN recorded ON recorded.id = o.work_id
    WHERE d.id = o.delivery_id AND d.work_id = o.work_id
    RETURNING d.id
), entry AS (
    UPDATE notification_log l
    SET status = CASE WHEN o.error IS NULL THEN 'delivered' ELSE 'failed' END,
        delivery_time_ms = o.ms, error_code = o.error_code, error = o.error
    FROM o JOIN delivery ON delivery.id = o.delivery_id
    WHERE l.delivery_id = o.delivery_id AND l.number = o.number AND l.tenant_id = o.tenant_id
), next_entry AS (
    INSERT INTO notification_log (tenant_id, id, channel_id, delivery_id, number)
    SELECT o.tenant_id, o.next_log_id, o.endpoint_id, o.delivery_id, o.number + 1
    FROM o JOIN delivery ON delivery.id = o.delivery_id WHERE o.status = 'pending'
    ON CONFLICT (delivery_id, number) DO NOTHING
), day AS (
    INSERT INTO notification_channel_days (tenant_id, channel_id, day, delivered, failed, total_ms)
    SELECT o.tenant_id, o.endpoint_id, (now() AT TIME ZONE 'UTC')::date,
           count(*) FILTER (WHERE o.status = 'delivered'),
           count(*) FILTER (WHERE o.status = 'failed'),
           coalesce(sum(o.ms) FILTER (WHERE o.status = 'delivered'), 0)
    FROM o JOIN delivery ON delivery.id = o.delivery_id WHERE o.status <> 'pending'
    GROUP BY o.tenant_id, o.endpoint_id ORDER BY o.endpoint_id
    ON CONFLICT (channel_id, day) DO UPDATE
    SET delivered = notification_channel_days.delivered + excluded.delivered,
        failed = notification_channel_days.failed + excluded.failed,
        total_ms = notification_channel_days.total_ms + excluded.total_ms
)
"""
_FAIL = """
WITH failed AS (
    UPDATE notification_deliveries SET status = 'failed', finished_at = now()
    WHERE tenant_id = $1 AND id = $2 AND status = 'pending' RETURNING id, channel_id
), day AS (
    INSERT INTO notification_channel_days (tenant_id, channel_id, day, failed)
    SELECT $1, channel_id, (now() AT TIME ZONE 'UTC')::date, 1 FROM failed
    ON CONFLICT (channel_id, day) DO UPDATE SET failed = notification_channel_days.failed + 1
)
UPDATE notification_log l SET status = 'failed', error_code = 'delivery_failed', error = $3
FROM failed WHERE l.tenant_id = $1 AND l.delivery_id = failed.id AND l.status = 'pending'
"""
_SPANS = """
SELECT d.id, CASE WHEN starts_with(d.occasion, 'evt_') THEN d.occasion END AS cause_id, d.status,
       d.created_at, d.finished_at,
       (SELECT l.error FROM notification_log l WHERE l.delivery_id = d.id
        ORDER BY l.number DESC LIMIT 1) AS error, concat(m.title, ' through ', c.name) AS name
FROM notification_deliveries d
JOIN notification_messages m ON m.id = d.message_id AND m.tenant_id = d.tenant_id
JOIN notification_channels c ON c.id = d.channel_id AND c.tenant_id = d.tenant_id
WHERE d.tenant_id IN (SELECT id FROM tenants WHERE $1::text IS NULL OR id = $1)
  AND d.correlation_id = $2
ORDER BY d.id LIMIT $3
"""
OUTBOX_SQL: Final = OutboxSql.build(
    "error_code text, next_log_id text", _RECORD, fail=_FAIL, spans=_SPANS
)

_LIST_USED_CHANNELS = """
SELECT first_id, channel_id FROM notification_deliveries WHERE first_id = ANY($1)
"""
_LIST_FAILED_CHANNELS = """
SELECT occasion AS cause_id, channel_id, recipient FROM notification_deliveries
WHERE occasion = ANY($1) AND recipient = ANY($2) AND status = 'failed'
"""
_MARK_RATE_LIMITED = """
WITH throttled AS (
    UPDATE notification_deliveries SET throttled_at = coalesce(throttled_at, now())
    WHERE tenant_id = $1 AND id = $2 AND $4
)
UPDATE notification_log SET error_code = 'rate_limited'
WHERE tenant_id = $1 AND delivery_id = $2 AND number = $3 AND error_code IS NULL
"""


async def load_pending(tx: Tx, delivery_ids: list[str]) -> list[asyncpg.Record]:
    """Returns the columns of requests, without deliveries that are finished or deleted."""
    rows: list[asyncpg.Record] = await (await tx.raw()).fetch(_LOAD, delivery_ids)
    return rows


async def list_used_channels(connection: asyncpg.Connection, first_ids: list[str]) -> list[Row]:
    """Returns the channels that each of these first deliveries has tried."""
    return list(await connection.fetch(_LIST_USED_CHANNELS, first_ids))


async def list_failed_channels(
    connection: asyncpg.Connection, cause_ids: list[str], recipients: list[str]
) -> list[Row]:
    """Returns the channels that failed to reach recipients with messages of these causes."""
    return list(await connection.fetch(_LIST_FAILED_CHANNELS, cause_ids, recipients))


async def mark_rate_limited(
    tx: Tx, tenant: str, delivery_id: str, number: int, *, by_provider: bool
) -> None:
    await fast.execute(tx, tenant, _MARK_RATE_LIMITED, delivery_id, number, by_provider)
