"""SQL of channels, of their log and of their figures."""

from app.domain import quota
from app.domain.messaging.outbox.api import LogFilter, list_newest
from app.kit.paging import Page
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import NotificationChannel
from db.session import Tx
from db.views import View

from .channel_schemas import ChannelSummary, ChannelView, LogEntryView

MAX_CHANNELS = 200
_SUMMARY = View(ChannelSummary)
_VIEW = View(ChannelView, computed=("config",))
_FIND = f"""
SELECT {_VIEW.columns}, tenant_id, config FROM notification_channels
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND deleted_at IS NULL
"""
_LIST = f"""
SELECT {_SUMMARY.columns} FROM notification_channels
WHERE ($1::text IS NULL OR tenant_id = $1) AND ($2::text IS NULL OR type = $2)
  AND ($3::boolean IS NULL OR active = $3) AND deleted_at IS NULL
ORDER BY created_at, id LIMIT $4
"""
_EXISTS = """
SELECT 1 FROM notification_channels
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND deleted_at IS NULL
"""
_FIND_EXISTING_IDS = """
SELECT id FROM notification_channels
WHERE tenant_id = $1 AND id = ANY($2) AND deleted_at IS NULL
"""
# The oldest of a type is the first choice; the others replace it where it fails.
_LIST_ACTIVE = """
SELECT id, tenant_id, type, provider, config FROM notification_channels
WHERE tenant_id = $1 AND active AND deleted_at IS NULL AND type = ANY($2) ORDER BY created_at, id
"""

build_view = _VIEW.build


async def find(tx: Tx, channel_id: str, *, for_update: bool = False) -> NotificationChannel | None:
    session = await tx.session()
    channel: NotificationChannel | None = await session.get(
        NotificationChannel, channel_id, with_for_update=for_update
    )
    return channel if channel is not None and channel.deleted_at is None else None


async def find_row(tx: Tx, channel_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, channel_id)


async def exists(tx: Tx, channel_id: str) -> bool:
    return await fast.value(tx, tenant_of(tx), _EXISTS, channel_id) is not None


async def find_existing_ids(tx: Tx, tenant: str, channel_ids: list[str]) -> set[str]:
    return {row["id"] for row in await fast.rows(tx, tenant, _FIND_EXISTING_IDS, channel_ids)}


async def list_all(
    tx: Tx, type_: str | None, *, active: bool | None, limit: int
) -> list[ChannelSummary]:
    rows = await fast.rows(tx, tenant_of(tx), _LIST, type_, active, limit)
    return [_SUMMARY.build(row) for row in rows]


async def list_active(tx: Tx, tenant: str, types: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_ACTIVE, types)


async def check_quota(tx: Tx, tenant_id: str) -> None:
    conditions = (
        NotificationChannel.tenant_id == tenant_id,
        NotificationChannel.deleted_at.is_(None),
    )
    await quota.check(tx, NotificationChannel, MAX_CHANNELS, "notification channels", *conditions)


# The log

_ENTRY = View(LogEntryView, "l", subject="m.title", recipient="d.recipient", attempt="l.number")
_JOINS = """
JOIN notification_deliveries d ON d.id = l.delivery_id AND d.tenant_id = l.tenant_id
JOIN notification_messages m ON m.id = d.message_id AND m.tenant_id = l.tenant_id
"""
_FIND_ENTRY = f"""
SELECT {_ENTRY.columns} FROM notification_log l {_JOINS}
WHERE l.tenant_id = $1 AND l.delivery_id = $2 ORDER BY l.number DESC LIMIT 1
"""


_OF_CHANNEL = """
EXISTS (SELECT 1 FROM notification_channels c
        WHERE ($1::text IS NULL OR c.tenant_id = $1) AND c.id = $2 AND c.deleted_at IS NULL)
"""


async def list_log(
    tx: Tx, channel_id: str, filters: LogFilter, page: Page
) -> tuple[list[LogEntryView], Total]:
    where = Where(tenant_of(tx))
    where.add("channel_id = $n", channel_id)
    where.require(_OF_CHANNEL)
    rows, total = await list_newest(
        tx, _ENTRY.columns, "notification_log", where, filters, page, _JOINS
    )
    return [_ENTRY.build(row) for row in rows], total


async def find_last_entry(tx: Tx, tenant: str, delivery_id: str) -> LogEntryView | None:
    row = await fast.row(tx, tenant, _FIND_ENTRY, delivery_id)
    return _ENTRY.build(row) if row is not None else None


# Figures

_SUMS = """
coalesce(sum(s.delivered), 0)::bigint AS delivered, coalesce(sum(s.failed), 0)::bigint AS failed,
coalesce(sum(s.total_ms), 0)::bigint AS total_ms
"""
_CHANNEL_STATS = f"""
SELECT {_SUMS} FROM notification_channels c
LEFT JOIN notification_channel_days s ON s.channel_id = c.id AND s.tenant_id = c.tenant_id
WHERE ($1::text IS NULL OR c.tenant_id = $1) AND c.id = $2 AND c.deleted_at IS NULL
GROUP BY c.id
"""
_ALL_STATS = f"""
SELECT {_SUMS}, count(DISTINCT c.id) AS channels,
       count(DISTINCT c.id) FILTER (WHERE c.active) AS active_channels
FROM notification_channels c
LEFT JOIN notification_channel_days s ON s.channel_id = c.id AND s.tenant_id = c.tenant_id
WHERE ($1::text IS NULL OR c.tenant_id = $1) AND c.deleted_at IS NULL
"""
# One row for each type, for each provider and for each day; the other columns are null.
_BREAKDOWN = f"""
SELECT c.type, c.provider, s.day, {_SUMS}
FROM notification_channels c
JOIN notification_channel_days s ON s.channel_id = c.id AND s.tenant_id = c.tenant_id
WHERE ($1::text IS NULL OR c.tenant_id = $1) AND c.deleted_at IS NULL
  AND s.day > (now() AT TIME ZONE 'UTC')::date - $2::int
GROUP BY GROUPING SETS ((c.type), (c.provider), (s.day))
ORDER BY c.type, c.provider, s.day
"""


async def find_stats(tx: Tx, channel_id: str) -> Row | None:
    """Returns None when there is no such channel."""
    return await fast.row(tx, tenant_of(tx), _CHANNEL_STATS, channel_id)


async def find_all_stats(tx: Tx) -> Row:
    row = await fast.row(tx, tenant_of(tx), _ALL_STATS)
    if row is None:
        raise LookupError("an aggregate without a row")
    return row


async def list_breakdown(tx: Tx, days: int) -> list[Row]:
    return await fast.rows(tx, tenant_of(tx), _BREAKDOWN, days)
