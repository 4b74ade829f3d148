"""SQL of the notification center: a user's own notifications and preferences."""

from datetime import datetime

import msgspec

from app.kit import paging
from app.kit.paging import Page
from db import fast, lists
from db.fast import tenant_of
from db.lists import BOUND, Total, Where
from db.session import Tx
from db.views import View

from .schemas import NotificationView
from .types import NAMES, TypeName

_VIEW = View(NotificationView, "n", title="m.title", message="m.message", data="m.data")
_JOIN = "JOIN notification_messages m ON m.id = n.message_id AND m.tenant_id = n.tenant_id"
_ORDER = "ORDER BY created_at DESC, id DESC"
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
    type: TypeName | None = None


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
    # Counts have the order as well: without it, the planner may read the whole table for them.
    counted = f"FROM notifications WHERE {where.sql} {_ORDER}"
    page_sql = f"SELECT id AS listed_id {counted} LIMIT $limit OFFSET $offset"
    matching = ""
    if filters.read is not None or filters.type is not None:
        groups, matching = _group(filters)
        newest = _union(where, groups, "id, created_at", "$limit::bigint + $offset::bigint")
        page_sql = f"""
        SELECT id AS listed_id FROM ({newest}) e {_ORDER} LIMIT $limit OFFSET $offset
        """
        counted = f"FROM ({_union(where, groups, '1', str(BOUND + 1))}) e"
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


def _group(filters: NotificationFilter) -> tuple[list[str], str]:
    """Returns a condition for each type and state that match, and one for the estimate of all. They
    have no arguments, so that the planner knows how many rows of each there are.
    """
    names = [name for name in NAMES if filters.type in {None, name}]
    state = {None: "", True: " AND read", False: " AND NOT read"}[filters.read]
    matching = state if filters.type is None else f" AND type = '{names[0]}'{state}"
    states = [state] if state else [" AND read", " AND NOT read"]
    return [f" AND type = '{name}'{of_state}" for name in names for of_state in states], matching


def _union(where: Where, groups: list[str], columns: str, limit: str) -> str:
    """Returns the newest rows of each group."""
    parts = (
        f"(SELECT {columns} FROM notifications WHERE {where.sql}{group} {_ORDER} LIMIT {limit})"
        for group in groups
    )
    return " UNION ALL ".join(parts)


def _count_unread_sql(where: Where) -> str:
    """Counts up to one more than the bound."""
    groups, _ = _group(NotificationFilter(read=False))
    unread = _union(where, groups, "1", str(BOUND + 1))
    return f"SELECT count(*) FROM (SELECT 1 FROM ({unread}) e LIMIT {BOUND + 1}) bounded"


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
