"""The SQL of lists of conversations over all agents, and of how far users have read them.

A conversation is unread while its last message is later than what its reader has read: the row in
`conversation_reads`, or else `read_until` of the reader. The first list of a reader sets that to
now, so that older conversations do not count as unread.
"""

from datetime import datetime
from typing import Final, Literal

import msgspec

from app.kit.cursors import Cursor
from app.security.principal import Principal
from db import fast
from db.fast import tenant_of
from db.lists import Where
from db.session import Tx
from db.user_names import user_name_sql
from db.views import View

from .schemas import PREVIEW, Source
from .summary_schemas import ConversationSummary

_PREVIEW_CHARS: Final = 200
_LAST_MESSAGE = f"""(
    SELECT json_build_object('role', m.role, 'status', m.status,
                             'text', left(coalesce(m.content, ''), {_PREVIEW_CHARS}))
    FROM conversation_entries m
    WHERE m.tenant_id = c.tenant_id AND m.conversation_id = c.id AND m.type = 'message'
      AND m.replaced_by IS NULL
    ORDER BY m.seq DESC LIMIT 1)"""
_USER_NAME = f"coalesce({user_name_sql('u')}, k.name)"
_READ_UNTIL = "coalesce((SELECT read_until FROM reader), now())"
_IS_UNREAD = f"""c.last_message_at > CASE
    WHEN r.user_id IS NULL THEN {_READ_UNTIL}
    WHEN r.is_unread THEN '-infinity' ELSE r.read_at END"""
# Nothing before this time is unread, so that the list ends there.
_UNREAD_SINCE = f"""least({_READ_UNTIL}, (
    SELECT min(marked.read_at) FROM conversation_reads marked
    WHERE $tenant AND marked.user_id = $user AND marked.is_unread))"""
_READS = """
LEFT JOIN conversation_reads r
  ON r.tenant_id = c.tenant_id AND r.conversation_id = c.id AND r.user_id = $user"""
_SUMMARY = View(
    ConversationSummary,
    "c",
    status="CASE WHEN c.ended_at IS NULL THEN 'active' ELSE 'ended' END",
    agent_name="coalesce(a.name, '')",
    user_name=_USER_NAME,
    last_message=_LAST_MESSAGE,
    unread=_IS_UNREAD,
)
_NEWEST_FIRST = "c.last_message_at DESC, c.id DESC"
_LIST = f"""
WITH reader AS (
    SELECT read_until FROM conversation_readers WHERE tenant_id = $home AND user_id = $user
), first_use AS (
    INSERT INTO conversation_readers (tenant_id, user_id, read_until)
    SELECT $home, $user, now() WHERE NOT EXISTS (SELECT 1 FROM reader)
    ON CONFLICT DO NOTHING
)
SELECT {_SUMMARY.columns} FROM (
    SELECT c.* FROM conversations c $joined WHERE $where ORDER BY {_NEWEST_FIRST} LIMIT $limit
) c
LEFT JOIN agents a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
LEFT JOIN service_keys k ON k.tenant_id = c.tenant_id AND k.id = c.user_id
{_READS}
ORDER BY {_NEWEST_FIRST}
"""


class SummaryFilter(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: str | None = None
    source: Source | None = None
    user_id: str | None = None
    visitor: str | None = None
    status: Literal["active", "ended"] | None = None
    rating: Literal["up", "down", "any"] | None = None
    failed: bool | None = None
    since: datetime | None = None
    until: datetime | None = None
    search: str | None = None
    unread: bool | None = None


# In the form that the condition of an index on these conversations has.
_IS_RATED = "(c.ratings_up > 0 OR c.ratings_down > 0)"
_RATINGS: Final = {
    "any": _IS_RATED,
    "up": f"{_IS_RATED} AND c.ratings_up > 0",
    "down": f"{_IS_RATED} AND c.ratings_down > 0",
}
_STATUSES: Final = {"active": "c.ended_at IS NULL", "ended": "c.ended_at IS NOT NULL"}


def _select(tx: Tx, principal: Principal, filters: SummaryFilter) -> Where:
    where = Where(tenant_of(tx), tenant_column="c.tenant_id")
    if not principal.may("conversations:read"):
        where.add("c.user_id = $n", principal.user_id)
    if principal.agent_ids is not None:
        where.add("c.agent_id = ANY($n)", sorted(principal.agent_ids))
    where.equal("c.agent_id", filters.agent_id)
    if filters.source is None:
        where.require(f"c.source <> '{PREVIEW}'")
    where.equal("c.source", filters.source)
    where.equal("c.user_id", filters.user_id)
    if filters.visitor is not None:
        where.add("c.visitor IS NOT NULL AND c.visitor->>'id' = $n", filters.visitor)
    if filters.status is not None:
        where.require(_STATUSES[filters.status])
    if filters.rating is not None:
        where.require(_RATINGS[filters.rating])
    if filters.failed is not None:
        where.require("c.failed_answers > 0" if filters.failed else "c.failed_answers = 0")
    where.between("c.last_message_at", filters.since, filters.until)
    where.contain(filters.search, "c.title")
    return where


async def list_after(
    tx: Tx, principal: Principal, filters: SummaryFilter, after: Cursor | None, limit: int
) -> list[ConversationSummary]:
    """Returns conversations that the principal may read, the newest activity first."""
    where, joined = _select(tx, principal, filters), ""
    if after is not None:
        place = f"({where.bind(after.at)}::timestamptz, {where.bind(after.id)})"
        where.require(f"(c.last_message_at, c.id) < {place}")
    if filters.unread is not None:
        joined = _READS
        where.require(_IS_UNREAD if filters.unread else f"NOT ({_IS_UNREAD})")
    if filters.unread:
        where.require(f"c.last_message_at >= {_UNREAD_SINCE}")
    sql = _LIST.replace("$joined", joined).replace("$where", where.sql)
    sql = sql.replace("$tenant", _tenant_condition(where)).replace("$limit", where.bind(limit))
    sql = sql.replace("$home", f"{where.bind(principal.tenant_id)}::varchar")
    sql = sql.replace("$user", f"{where.bind(principal.user_id)}::varchar")
    return await _SUMMARY.list(tx, where.tenant, sql, *where.args)


def _tenant_condition(where: Where) -> str:
    return where.tenant_condition.replace("c.tenant_id", "marked.tenant_id")


_MARK = """
INSERT INTO conversation_reads AS r (tenant_id, conversation_id, user_id, agent_id, read_at,
                                     is_unread)
SELECT c.tenant_id, c.id, $3, c.agent_id, c.last_message_at, $4 FROM conversations c
WHERE ($1::text IS NULL OR c.tenant_id = $1) AND c.id = $2
  AND ($5::text IS NULL OR c.user_id = $5)
ON CONFLICT (user_id, conversation_id) DO UPDATE
SET read_at = excluded.read_at, is_unread = excluded.is_unread
"""
_MARK_ALL = """
WITH reader AS (
    INSERT INTO conversation_readers AS w (tenant_id, user_id, read_until)
    VALUES ($1, $2, least($3, now()))
    ON CONFLICT (user_id) DO UPDATE SET read_until = greatest(w.read_until, excluded.read_until)
    RETURNING user_id, read_until
), obsolete AS (
    DELETE FROM conversation_reads r USING reader w
    WHERE r.user_id = w.user_id AND r.read_at <= w.read_until
)
SELECT read_until FROM reader
"""


async def mark(tx: Tx, principal: Principal, conversation_id: str, *, is_unread: bool) -> bool:
    """False for a conversation that the principal may not read."""
    only_user = None if principal.may("conversations:read") else principal.user_id
    values = (conversation_id, principal.user_id, is_unread, only_user)
    return await fast.execute(tx, tenant_of(tx), _MARK, *values) == 1


async def mark_all(tx: Tx, principal: Principal, until: datetime) -> datetime:
    """Returns the time up to which all conversations are read."""
    read_until: datetime = await fast.value(
        tx, principal.tenant_id, _MARK_ALL, principal.user_id, until
    )
    return read_until
