"""The SQL of a turn: at most three round trips before the model answers, one after.

In the web tier each statement is a transaction of its own, so that none is open while a model
answers.
"""

from typing import NamedTuple

from app.domain.agents.usage import api as usage
from app.domain.platform.events import api as events
from db import fast
from db.fast import Row
from db.session import Tx

MAX_ENTRIES = 200
# More than the history may have altogether: a longer entry is never shown to a model again.
_MAX_CHARS = 120_000
_MAX_BYTES = 250_000

_IS_FREE = "(c.turn_until IS NULL OR c.turn_until < now())"
# Written so that no index serves it: each row is found by its id, never through all that the tenant
# has.
_OF_TENANT = "c.tenant_id IS NOT DISTINCT FROM $1"


def _newest_entries(conversation: str, condition: str = "") -> str:
    """The entries of a conversation that a model may see again, the newest first. The tenant is no
    condition here, where it tempts the planner to read all that the tenant has.
    """
    return f"""
SELECT tenant_id, id, seq, type, role, status, left(content, {_MAX_CHARS}) AS content,
       CASE WHEN type = 'tool_call' AND pg_column_size(data) < {_MAX_CHARS} THEN data::text
            WHEN type = 'message' THEN (data->'attachments')::text END AS data,
       CASE WHEN type = 'message' THEN (data->'before')::text END AS before
FROM (
    SELECT *, sum(own_bytes) OVER (ORDER BY seq DESC) - own_bytes AS newer_bytes
    FROM (
        SELECT *, coalesce(octet_length(content), 0) + pg_column_size(data) AS own_bytes
        FROM conversation_entries
        WHERE conversation_id = {conversation} AND type IN ('message', 'tool_call')
          AND replaced_by IS NULL{condition}
        ORDER BY seq DESC LIMIT {MAX_ENTRIES}
    ) newest
) within
WHERE newer_bytes < {_MAX_BYTES}
ORDER BY seq DESC"""


# A row per entry, the newest first; one row where there is none. Should the statement have waited
# for another turn's end, the entries were read too early: `as_of` and `message_count` then differ.
_TAKEN_COLUMNS = """
SELECT t.holder, t.is_new, t.message_count,
       (SELECT c.message_count FROM conversations c WHERE c.id = t.id) AS as_of,
       e.id, e.seq, e.type, e.role, e.status, e.content, e.data, e.before"""
_TAKEN_ENTRIES = f"FROM taken t LEFT JOIN LATERAL ({_newest_entries('t.id')}) e ON true"

_OPEN = f"""
WITH taken AS (
    INSERT INTO conversations AS c
        (tenant_id, id, agent_id, turn_holder, turn_until, user_id, embed_key_id, session_id,
         source, visitor)
    SELECT $1, $2, $3, $4, now() + $5 * interval '1 second', $6, $7, $8, $9,
           CAST($11::text AS jsonb)
    -- None for a user who is deleted at this moment, and takes all conversations along.
    WHERE $6::varchar IS NULL OR $6::varchar LIKE 'svk_%'
       OR EXISTS (SELECT 1 FROM users u WHERE u.id = $6::varchar FOR KEY SHARE)
    ON CONFLICT (id) DO UPDATE
    SET turn_holder = $4, turn_until = now() + $5 * interval '1 second', ended_at = NULL,
        visitor = coalesce(excluded.visitor, c.visitor)
    WHERE c.tenant_id = $1 AND c.agent_id = $3 AND c.embed_key_id = $7 AND {_IS_FREE}
    RETURNING c.id, c.turn_holder AS holder, c.xmax = 0 AS is_new, c.message_count
), {events.emission_sql("$10", "WHERE (SELECT is_new FROM taken)")}
{_TAKEN_COLUMNS}, {events.ROUTED} {_TAKEN_ENTRIES}
"""

_ASKED = "unnest($3::text[], $4::text[], $5::text[]) AS g(id, holder, user_id)"
_FINISHED = """
unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::text[])
  AS g(id, holder, messages, title, correlation_id)"""


def _unlocked(rows: str) -> str:
    """Of the rows `g`, those whose conversation no other transaction has locked."""
    return f"""
(SELECT g.* FROM {rows} JOIN conversations c ON c.id = g.id AND {_OF_TENANT}
 FOR UPDATE OF c SKIP LOCKED) AS g"""


def _resume_sql(rows: str, *, is_durable: bool) -> str:
    """Takes conversations; of two that ask for the same one, one gets it.

    Where nothing has been answered yet and the statement is all of its transaction, it need not be
    on disk before the model is asked. An accepted job's lease is durable, as the job is.
    """
    commit = "" if is_durable else ", set_config('synchronous_commit', 'off', true)"
    return f"""
WITH taken AS (
    UPDATE conversations AS c
    SET turn_holder = g.holder, turn_until = now() + $6 * interval '1 second', ended_at = NULL
    FROM {rows}
    WHERE c.id = g.id AND {_OF_TENANT} AND c.agent_id IS NOT DISTINCT FROM $2
      AND c.user_id IS NOT DISTINCT FROM g.user_id AND (c.source = 'preview') = $7 AND {_IS_FREE}
    RETURNING c.id, c.turn_holder AS holder, false AS is_new, c.message_count{commit}
)
{_TAKEN_COLUMNS} {_TAKEN_ENTRIES}
"""


_RESUME_FOR_JOB = _resume_sql(_ASKED, is_durable=True)
_RESUME = _resume_sql(_ASKED, is_durable=False)
# For several at once: those that another transaction has locked are left out.
_RESUME_TOGETHER = _resume_sql(_unlocked(_ASKED), is_durable=False)

_EXISTS = """
SELECT 1 FROM conversations
WHERE tenant_id = $1 AND id = $2 AND agent_id = $3 AND user_id = $4
  AND (source = 'preview') = $5
"""

_HISTORY = f"""
SELECT id, seq, type, role, status, content, data, before
FROM ({_newest_entries("$2")}) e WHERE tenant_id = $1
"""
_HISTORY_BEFORE = f"""
SELECT id, seq, type, role, status, content, data, before
FROM ({_newest_entries("$2", " AND seq < $3")}) e WHERE tenant_id = $1
"""

_RENEW = """
UPDATE conversations SET turn_until = now() + $4 * interval '1 second'
WHERE tenant_id = $1 AND id = $2 AND turn_holder = $3
"""

_RELEASE = """
UPDATE conversations SET turn_holder = NULL, turn_until = NULL
WHERE tenant_id = $1 AND id = $2 AND turn_holder = $3
"""

_RELEASE_ALL = """
UPDATE conversations SET turn_holder = NULL, turn_until = NULL
WHERE tenant_id = $1 AND id = ANY($2) AND turn_holder = ANY($3)
"""

_MARK_REPLACED = """
UPDATE conversation_entries SET replaced_by = $4
WHERE conversation_id = $2 AND seq >= $3 AND replaced_by IS NULL AND tenant_id = $1
"""

_RESTORE_REPLACED = """
UPDATE conversation_entries SET replaced_by = NULL
WHERE conversation_id = $2 AND replaced_by = $3 AND tenant_id = $1
"""

_DELETE_EMPTY = """
DELETE FROM conversations
WHERE tenant_id = $1 AND id = $2 AND turn_holder = $3 AND message_count = 0
"""


def _store_sql(rows: str) -> str:
    """Stores finished turns, each of another conversation, and frees the conversations. One that
    ended after the turn's lease ran out is open again, as after any message.
    """
    used = usage.insert_sql("FROM stored c JOIN", "$8", "c.agent_id", "c.correlation_id")
    return f"""
WITH stored AS (
    UPDATE conversations AS c
    SET turn_holder = NULL, turn_until = NULL, ended_at = NULL,
        message_count = c.message_count + g.messages, last_message_at = now(),
        title = CASE WHEN c.title = '' THEN g.title ELSE c.title END
    FROM {rows}
    WHERE c.id = g.id AND {_OF_TENANT} AND c.turn_holder = g.holder
    RETURNING c.id, c.agent_id, g.holder, g.correlation_id
), entries AS (
    INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                      status, data, logged, correlation_id, created_at)
    SELECT $1, e.id, c.agent_id, c.id, e.type, e.role, e.content, e.status, e.data, e.logged,
           c.correlation_id, e.created_at
    FROM stored c JOIN jsonb_to_recordset($7::jsonb)
      AS e(n int, conversation_id text, id text, type text, role text, content text, status text,
           data jsonb, logged boolean, created_at timestamptz) ON e.conversation_id = c.id
    ORDER BY c.id, e.n
), used AS ({used} ON u.conversation_id = c.id
), {events.emission_sql("$9", "JOIN stored c ON c.id = e.data->>'conversation_id'")}
SELECT holder, {events.ROUTED} FROM stored
"""


_STORE = _store_sql(_FINISHED)
_STORE_TOGETHER = _store_sql(_unlocked(_FINISHED))


async def create_or_take(tx: Tx, tenant: str, *values: object) -> list[Row]:
    """Creates a conversation, or takes a visitor's; no row while another turn is running."""
    rows = await fast.rows(tx, tenant, _OPEN, *values)
    if rows:
        events.wake(tx, rows[0]["routed"])
    return rows


async def resume(
    tx: Tx,
    tenant: str,
    agent_id: str,
    requests: list[tuple[str, str, str | None]],
    seconds: float,
    *,
    is_preview: bool = False,
    with_job: bool = False,
    together: bool = False,
) -> list[Row]:
    """Takes these conversations: each by its id, for a holder, if it is this user's and free, and
    a preview or not. `together` waits for no lock.
    """
    # In one order: two processes that take the same ones must not wait for each other.
    ids, holders, users = zip(*sorted(requests), strict=True)
    sql = _RESUME_TOGETHER if together else _RESUME_FOR_JOB if with_job else _RESUME
    return await fast.rows(tx, tenant, sql, agent_id, ids, holders, users, seconds, is_preview)


async def exists(
    tx: Tx, tenant: str, ids: tuple[str, str, str | None], *, is_preview: bool = False
) -> bool:
    """`ids` are those of the conversation, its agent and its user."""
    return bool(await fast.value(tx, tenant, _EXISTS, *ids, is_preview))


async def list_history(tx: Tx, tenant: str, conversation_id: str) -> list[Row]:
    """The newest first."""
    return await fast.rows(tx, tenant, _HISTORY, conversation_id)


async def list_history_before(tx: Tx, tenant: str, conversation_id: str, seq: int) -> list[Row]:
    """What a conversation had before this place, the newest first."""
    return await fast.rows(tx, tenant, _HISTORY_BEFORE, conversation_id, seq)


async def renew(tx: Tx, tenant: str, conversation_id: str, holder: str, seconds: float) -> bool:
    return await fast.execute(tx, tenant, _RENEW, conversation_id, holder, seconds) == 1


async def release(tx: Tx, tenant: str, conversation_id: str, holder: str) -> None:
    await fast.execute(tx, tenant, _RELEASE, conversation_id, holder)


async def release_all(tx: Tx, tenant: str, ids: list[str], holders: list[str]) -> None:
    await fast.execute(tx, tenant, _RELEASE_ALL, ids, holders)


async def mark_replaced(
    tx: Tx, tenant: str, conversation_id: str, from_seq: int, message_id: str
) -> None:
    """Takes the last entries out of the conversation; this message replaces them."""
    await fast.execute(tx, tenant, _MARK_REPLACED, conversation_id, from_seq, message_id)


async def restore_replaced(tx: Tx, tenant: str, conversation_id: str, message_id: str) -> None:
    """Puts back what this message was to replace."""
    await fast.execute(tx, tenant, _RESTORE_REPLACED, conversation_id, message_id)


async def delete_empty(tx: Tx, tenant: str, conversation_id: str, holder: str) -> None:
    await fast.execute(tx, tenant, _DELETE_EMPTY, conversation_id, holder)


class FinishedConversation(NamedTuple):
    """A conversation at the end of its turn."""

    id: str
    holder: str
    messages: int
    title: str
    correlation_id: str


async def store(
    tx: Tx, tenant: str, finished: list[FinishedConversation], *rows: str, together: bool = False
) -> set[str]:
    """Stores these turns, each of another conversation; returns the holders that still held theirs.
    `together` waits for no lock.
    """
    columns, sql = zip(*sorted(finished), strict=True), _STORE_TOGETHER if together else _STORE
    stored = await fast.rows(tx, tenant, sql, *columns, *rows)
    if stored:
        events.wake(tx, stored[0]["routed"])
    return {row["holder"] for row in stored}
