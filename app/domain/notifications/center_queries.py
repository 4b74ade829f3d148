"""SQL of the notification center: a user's own notifications and preferences."""

from datetime import datetime

import msgspec

from app.domain.notifications.schemas import NotificationView
from app.domain.notifications.types import NAMES
from app.kit import paging
from app.kit.paging import Page
from db import fast, lists
from db.fast import tenant_of
from db.lists import BOUND, Total, Where
from db.session import Tx
from db.views import View

_VIEW = View(NotificationView, "n", title="m.title", message="m.message", data="m.data")
_JOIN = "JOIN notification_messages m ON m.id = n.message_id AND m.tenant_id = n.tenant_id"
_ORDER = "ORDER BY created_at DESC, id DESC"
_TYPES = ", ".join(f"'{name}'" for name in NAMES)
_FIND = f"""
SELECT {_VIEW.columns} FROM notifications n {_JOIN}
WHERE ($1::text IS NULL OR n.tenant_id = $1) AND n.user_id = $2 AND n.id = $3
"""
_MARK_READ = """
UPDATE notifications SET read = true
WHERE ($1::text IS NULL OR tenant_id = $1) AND user_id = $2 AND id = $3 AND NOT read
"""
# Names the types, so that the index on user, type and state serves it.
_MARK_ALL_READ = """
UPDATE notifications SET read = true
WHERE ($1::text IS NULL OR tenant_id = $1) AND user_id = $2 AND type = ANY($3) AND NOT read
"""
_LIST_SINCE = f"""
SELECT {_VIEW.columns} FROM notifications n {_JOIN}
WHERE ($1::text IS NULL OR n.tenant_id = $1) AND n.user_id = $2 AND n.created_at >= $3
  AND n.id <> ALL($4)
ORDER BY n.created_at, n.id LIMIT $5
"""
_FIND_TIME = """
SELECT created_at FROM notifications
WHERE ($1::text IS NULL OR tenant_id = $1) AND user_id = $2 AND id = $3
"""
_LIST_IDS_SINCE = """
SELECT id, created_at FROM notifications
WHERE ($1::text IS NULL OR tenant_id = $1) AND user_id = $2 AND created_at >= $3
"""
_FIND_PREFERENCES = """
SELECT preferences::text FROM notification_preferences WHERE tenant_id = $1 AND user_id = $2
"""
# The row of the user is locked, so that two changes at a time do not overwrite each other.
_LOCK_PREFERENCES = """
INSERT INTO notification_preferences (tenant_id, user_id, preferences) VALUES ($1, $2, '{}')
ON CONFLICT (user_id) DO UPDATE SET updated_at = now()
RETURNING preferences::text
"""
_SET_PREFERENCES = """
UPDATE notification_preferences SET preferences = $3::jsonb WHERE tenant_id = $1 AND user_id = $2
"""


class NotificationFilter(msgspec.Struct, frozen=True):
    read: bool | None = None
    type: str | None = None


class NotificationRows(msgspec.Struct, frozen=True):
    """One page, the total of all that match, and how many are unread whatever the filters."""

    data: list[NotificationView]
    total: Total
    unread: int


async def list_page(
    tx: Tx, user_id: str, filters: NotificationFilter, page: Page
) -> NotificationRows:
    """With a filter, reads the newest rows of each type and state and takes the newest of these, so
    that the index serves every combination.
    """
    where = _of_user(tx, user_id)
    counted = f"FROM notifications WHERE {where.sql}"
    matching = ""
    page_sql = f"SELECT id AS listed_id {counted} {_ORDER} LIMIT $limit OFFSET $offset"
    if filters.read is not None or filters.type is not None:
        groups, of_group, matching = _group(where, filters)
        page_sql = f"""
        SELECT e.id AS listed_id FROM {groups} CROSS JOIN LATERAL (
            SELECT id, created_at {of_group} {_ORDER} LIMIT $limit::bigint + $offset::bigint
        ) e ORDER BY e.created_at DESC, e.id DESC LIMIT $limit OFFSET $offset
        """
        counted = f"FROM {groups} CROSS JOIN LATERAL (SELECT 1 {of_group} LIMIT {BOUND + 1}) e"
    rows, total = await paging.fetch_page(
        tx,
        where,
        f"""
        ({_count_unread_sql(where)}) AS unread, {_VIEW.columns} FROM ({page_sql}) p
        JOIN notifications n ON n.id = p.listed_id AND ($1::text IS NULL OR n.tenant_id = $1)
        {_JOIN} ORDER BY n.created_at DESC, n.id DESC
        """,
        page,
        counted=counted,
        estimated=f"FROM notifications WHERE {where.sql_without_tenant}{matching}",
    )
    unread = await (
        _complete_unread(tx, user_id, rows[0]["unread"]) if rows else count_unread(tx, user_id)
    )
    return NotificationRows([_VIEW.build(row) for row in rows], total, unread)


def _of_user(tx: Tx, user_id: str) -> Where:
    where = Where(tenant_of(tx))
    where.add("user_id = $n", user_id)
    return where


def _group(where: Where, filters: NotificationFilter) -> tuple[str, str, str]:
    """Returns the groups of type and state that match, the rows of one group `g`, and a condition
    for the estimate of all rows, which the planner knows better than the groups.
    """
    types, states, matching = f"ARRAY[{_TYPES}]", "true, false", ""
    if filters.type is not None:
        type_ = where.bind(filters.type)
        types, matching = f"ARRAY[{type_}::text]", f" AND type = {type_}"
    if filters.read is not None:
        states = "true" if filters.read else "false"
        matching += f" AND read = {states}"
    groups = (
        f"(SELECT type, read FROM unnest({types}) AS t(type), unnest(ARRAY[{states}]) AS s(read)) g"
    )
    of_group = f"FROM notifications WHERE {where.sql} AND type = g.type AND read = g.read"
    return groups, of_group, matching


def _count_unread_sql(where: Where) -> str:
    """Counts up to one more than the bound."""
    return f"""
    SELECT count(*) FROM (
        SELECT 1 FROM unnest(ARRAY[{_TYPES}]) AS g(type) CROSS JOIN LATERAL (
            SELECT 1 FROM notifications
            WHERE {where.tenant_condition} AND user_id = $2 AND type = g.type AND NOT read
            LIMIT {BOUND + 1}
        ) e LIMIT {BOUND + 1}
    ) bounded
    """


async def count_unread(tx: Tx, user_id: str) -> int:
    """Exact up to the bound of totals, and an estimate beyond it."""
    where = _of_user(tx, user_id)
    count: int = await fast.value(tx, where.tenant, _count_unread_sql(where), *where.args)
    return await _complete_unread(tx, user_id, count)


async def _complete_unread(tx: Tx, user_id: str, count: int) -> int:
    """Replaces a count beyond the bound by an estimate."""
    if count <= BOUND:
        return count
    where = _of_user(tx, user_id)
    total = await lists.estimate(
        tx,
        where,
        estimated=f"FROM notifications WHERE {where.sql_without_tenant} AND NOT read",
        at_least=count,
    )
    return total.count


async def find(tx: Tx, user_id: str, notification_id: str) -> NotificationView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, user_id, notification_id)


async def mark_read(tx: Tx, user_id: str, notification_id: str) -> bool:
    return await fast.execute(tx, tenant_of(tx), _MARK_READ, user_id, notification_id) == 1


async def mark_all_read(tx: Tx, user_id: str) -> int:
    return await fast.execute(tx, tenant_of(tx), _MARK_ALL_READ, user_id, NAMES)


async def read_time(tx: Tx) -> datetime:
    """Returns the time of the database, by which rows are dated."""
    now: datetime = await (await tx.raw()).fetchval("SELECT now()")
    return now


async def find_time(tx: Tx, user_id: str, notification_id: str) -> datetime | None:
    at: datetime | None = await fast.value(tx, tenant_of(tx), _FIND_TIME, user_id, notification_id)
    return at


async def list_ids_since(tx: Tx, user_id: str, since: datetime) -> dict[str, datetime]:
    """Returns the times by id."""
    rows = await fast.rows(tx, tenant_of(tx), _LIST_IDS_SINCE, user_id, since)
    return {row["id"]: row["created_at"] for row in rows}


async def list_since(
    tx: Tx, user_id: str, since: datetime, seen: list[str], limit: int
) -> list[NotificationView]:
    """Returns the oldest first, without those that were seen."""
    rows = await fast.rows(tx, tenant_of(tx), _LIST_SINCE, user_id, since, seen, limit)
    return [_VIEW.build(row) for row in rows]


async def find_preferences(tx: Tx, tenant: str, user_id: str) -> str:
    return await fast.value(tx, tenant, _FIND_PREFERENCES, user_id) or "{}"


async def lock_preferences(tx: Tx, tenant: str, user_id: str) -> str:
    stored: str = await fast.value(tx, tenant, _LOCK_PREFERENCES, user_id)
    return stored


async def set_preferences(tx: Tx, tenant: str, user_id: str, preferences: str) -> None:
    await fast.execute(tx, tenant, _SET_PREFERENCES, user_id, preferences)
