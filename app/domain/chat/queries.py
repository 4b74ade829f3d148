"""The SQL of a turn: at most three ways to the database before the model speaks, one after.

Each statement is a transaction of its own, so that none is open while a model talks.
"""

from typing import NamedTuple

from app.domain.events import service as events
from db import fast
from db.fast import Row
from db.session import Tx

_TAKE = """
SET turn_holder = {holder}, turn_until = now() + {seconds} * interval '1 second', ended_at = NULL
"""
_IS_FREE = "(c.turn_until IS NULL OR c.turn_until < now())"
MAX_ENTRIES = 200
# More than the history may have altogether: what is longer is never shown to a model again.
_MAX_CHARS = 120_000
_MAX_BYTES = 250_000

# The tenant is not asked for here, where it tempts the planner to look through all that the tenant
# has: the conversation is known to be the tenant's.
_NEWEST = f"""
SELECT tenant_id, type, role, left(content, {_MAX_CHARS}) AS content,
       CASE WHEN type = 'tool_call' AND pg_column_size(data) < {_MAX_CHARS} THEN data::text END
         AS data
FROM (
    SELECT *, sum(own_bytes) OVER (ORDER BY seq DESC) - own_bytes AS newer_bytes
    FROM (
        SELECT *, coalesce(octet_length(content), 0) + pg_column_size(data) AS own_bytes
        FROM conversation_entries
        WHERE conversation_id = {{conversation}} AND type IN ('message', 'tool_call')
        ORDER BY seq DESC LIMIT {MAX_ENTRIES}
    ) newest
) within
WHERE newer_bytes < {_MAX_BYTES}
ORDER BY seq DESC
"""  # noqa: S608

# A row per entry, the newest first; one row where there is none. Should the statement have waited
# for another turn's end, the entries were read too early: `as_of` and `message_count` then differ.
_WITH_PAST = f"""
SELECT t.holder, t.is_new, t.message_count,
       (SELECT c.message_count FROM conversations c WHERE c.id = t.id) AS as_of,
       e.type, e.role, e.content, e.data{{more}}
FROM {{taken}} t LEFT JOIN LATERAL ({_NEWEST.format(conversation="t.id")}) e ON true
"""  # noqa: S608

_OPEN = f"""
WITH conversation AS (
    INSERT INTO conversations AS c
        (tenant_id, id, agent_id, turn_holder, turn_until, user_id, embed_key_id, session_id,
         source)
    VALUES ($1, $2, $3, $4, now() + $5 * interval '1 second', $6, $7, $8, $9)
    ON CONFLICT (id) DO UPDATE {_TAKE.format(holder="$4", seconds="$5")}
    WHERE c.tenant_id = $1 AND c.agent_id = $3 AND c.embed_key_id = $7 AND {_IS_FREE}
    RETURNING c.id, c.turn_holder AS holder, c.xmax = 0 AS is_new, c.message_count
), used AS (
    UPDATE embed_keys SET last_used_at = now()
    WHERE id = $7 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
), {events.emission("$10", "WHERE (SELECT is_new FROM conversation)")}
{_WITH_PAST.format(taken="conversation", more=", " + events.ROUTED)}
"""  # noqa: S608  # our own text

# Written in a way that no index serves: each row is found by its id, never through all that the
# tenant has.
_ONLY_CHECKED = "c.tenant_id IS NOT DISTINCT FROM $1"

# For several at once: whoever is in another transaction's hands is left out, so that the others
# need not wait for it.
_NOT_LOCKED = f"""
(SELECT g.* FROM {{given}} JOIN conversations c ON c.id = g.id AND {_ONLY_CHECKED}
 FOR UPDATE OF c SKIP LOCKED) AS g
"""  # noqa: S608

# Two who ask for the same conversation at once: one of them gets it.
_ASKED = "unnest($3::text[], $4::text[], $5::text[]) AS g(id, holder, user_id)"
_TAKE_THEM = f"""
WITH taken AS (
    UPDATE conversations AS c {_TAKE.format(holder="g.holder", seconds="$6")}
    FROM {{given}}
    WHERE c.id = g.id AND {_ONLY_CHECKED} AND c.agent_id IS NOT DISTINCT FROM $2
      AND c.user_id IS NOT DISTINCT FROM g.user_id AND {_IS_FREE}
    RETURNING c.id, c.turn_holder AS holder, false AS is_new, c.message_count{{more}}
)
{_WITH_PAST.format(taken="taken", more="")}
"""
_RESUME = _TAKE_THEM.format(given=_ASKED, more="")
# Nobody was told of anything yet, and this is all of its transaction: it need not be on disk before
# the model is asked. What an accepted job holds by is, with the job.
_NOT_ON_DISK = ", set_config('synchronous_commit', 'off', true)"
_RESUME_NOW = _TAKE_THEM.format(given=_ASKED, more=_NOT_ON_DISK)
_RESUME_TOGETHER = _TAKE_THEM.format(given=_NOT_LOCKED.format(given=_ASKED), more=_NOT_ON_DISK)

_EXISTS = """
SELECT 1 FROM conversations WHERE tenant_id = $1 AND id = $2 AND agent_id = $3 AND user_id = $4
"""

_HISTORY = f"""
SELECT type, role, content, data FROM ({_NEWEST.format(conversation="$2")}) e WHERE tenant_id = $1
"""  # noqa: S608

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

_FORGET_EMPTY = """
DELETE FROM conversations
WHERE tenant_id = $1 AND id = $2 AND turn_holder = $3 AND message_count = 0
"""

_USAGE = """
INSERT INTO usage (tenant_id, agent_id, conversation_id, message_id, user_id, source, model,
                   prompt_tokens, completion_tokens, cost_usd, turns, conversations, messages,
                   response_time_ms, correlation_id)
SELECT $1, {agent_id}, u.conversation_id, u.message_id, u.user_id, u.source, u.model,
       u.prompt_tokens, u.completion_tokens, u.cost_usd, u.turns, u.conversations, u.messages,
       u.response_time_ms, {correlation_id}
FROM {source}jsonb_to_recordset({usage}::jsonb)
  AS u(conversation_id text, message_id text, user_id text, source text, model text,
       prompt_tokens int, completion_tokens int, cost_usd numeric, turns int, conversations int,
       messages int, response_time_ms int)
"""
_ADD_USAGE = (
    _USAGE.format(agent_id="$2", source="", usage="$3", correlation_id="$4")
    + "ON CONFLICT (message_id, model) DO NOTHING"
)

_FREED = """
unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::text[])
  AS g(id, holder, messages, title, correlation_id)
"""
_STORE_THEM = f"""
WITH conversation AS (
    UPDATE conversations AS c
    SET turn_holder = NULL, turn_until = NULL, message_count = c.message_count + g.messages,
        last_message_at = now(), title = CASE WHEN c.title = '' THEN g.title ELSE c.title END
    FROM {{given}}
    WHERE c.id = g.id AND {_ONLY_CHECKED} AND c.turn_holder = g.holder
    RETURNING c.id, c.agent_id, g.holder, g.correlation_id
), entries AS (
    INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                      status, data, logged, correlation_id, created_at)
    SELECT $1, e.id, c.agent_id, c.id, e.type, e.role, e.content, e.status, e.data, e.logged,
           c.correlation_id, e.created_at
    FROM conversation c JOIN jsonb_to_recordset($7::jsonb)
      AS e(n int, conversation_id text, id text, type text, role text, content text, status text,
           data jsonb, logged boolean, created_at timestamptz) ON e.conversation_id = c.id
    ORDER BY c.id, e.n
), used AS (
    {_USAGE.format(agent_id="c.agent_id", source="conversation c JOIN ", usage="$8",
                   correlation_id="c.correlation_id")} ON u.conversation_id = c.id
), {events.emission("$9", "JOIN conversation c ON c.id = e.data->>'conversation_id'")}
SELECT holder, {events.ROUTED} FROM conversation
"""  # noqa: S608  # fmt: skip
_STORE = _STORE_THEM.format(given=_FREED)
_STORE_TOGETHER = _STORE_THEM.format(given=_NOT_LOCKED.format(given=_FREED))


async def open_new(tx: Tx, tenant: str, *values: object) -> list[Row]:
    """Begin a conversation, or a visitor's next turn; nothing while another turn is running."""
    found = await fast.rows(tx, tenant, _OPEN, *values)
    if found:
        events.wake(tx, found[0]["routed"])
    return found


async def resume(
    tx: Tx,
    tenant: str,
    agent_id: str,
    wanted: list[tuple[str, str, str | None]],
    seconds: float,
    *,
    with_job: bool = False,
    together: bool = False,
) -> list[Row]:
    """Take these conversations: each by its id, for a holder, if it is this user's and free.
    `together` waits for nobody.
    """
    # In one order everywhere: two processes that take the same ones must not wait for each other.
    ids, holders, users = zip(*sorted(wanted), strict=True)
    sql = _RESUME_TOGETHER if together else _RESUME if with_job else _RESUME_NOW
    return await fast.rows(tx, tenant, sql, agent_id, ids, holders, users, seconds)


async def exists(
    tx: Tx, tenant: str, conversation_id: str, agent_id: str, user_id: str | None
) -> bool:
    return bool(await fast.value(tx, tenant, _EXISTS, conversation_id, agent_id, user_id))


async def history(tx: Tx, tenant: str, conversation_id: str) -> list[Row]:
    """The newest first."""
    return await fast.rows(tx, tenant, _HISTORY, conversation_id)


async def renew(tx: Tx, tenant: str, conversation_id: str, holder: str, seconds: float) -> bool:
    return await fast.execute(tx, tenant, _RENEW, conversation_id, holder, seconds) == 1


async def release(tx: Tx, tenant: str, conversation_id: str, holder: str) -> None:
    await fast.execute(tx, tenant, _RELEASE, conversation_id, holder)


async def release_all(tx: Tx, tenant: str, ids: list[str], holders: list[str]) -> None:
    await fast.execute(tx, tenant, _RELEASE_ALL, ids, holders)


async def forget_empty(tx: Tx, tenant: str, conversation_id: str, holder: str) -> None:
    await fast.execute(tx, tenant, _FORGET_EMPTY, conversation_id, holder)


async def add_usage(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ADD_USAGE, *values)


class Freed(NamedTuple):
    """A conversation at the end of its turn."""

    id: str
    holder: str
    messages: int
    title: str
    correlation_id: str


async def store(
    tx: Tx, tenant: str, freed: list[Freed], *rows: str, together: bool = False
) -> set[str]:
    """All of these turns, each of another conversation; gives the holders that still had theirs.
    `together` waits for nobody.
    """
    columns, sql = zip(*sorted(freed), strict=True), _STORE_TOGETHER if together else _STORE
    found = await fast.rows(tx, tenant, sql, *columns, *rows)
    if found:
        events.wake(tx, found[0]["routed"])
    return {row["holder"] for row in found}


# Asynchronous chat

_KEEP_QUESTION = f"""
WITH conversation AS (
    UPDATE conversations
    SET message_count = message_count + 1, last_message_at = now(),
        title = CASE WHEN title = '' THEN $5 ELSE title END
    WHERE tenant_id = $1 AND id = $2
    RETURNING id, agent_id
), entry AS (
    INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                      logged, correlation_id)
    SELECT $1, $3, agent_id, id, 'message', 'user', $4, $6, $7 FROM conversation
), {events.emission("$8")}
SELECT {events.ROUTED}
"""  # noqa: S608

_JOB_COLUMNS = """
id, tenant_id, agent_id, conversation_id, user_id, work_id, message_id, status,
reply::text AS reply, error::text AS error, created_at, finished_at
"""

_ADD_JOB = """
INSERT INTO chat_jobs (tenant_id, id, agent_id, conversation_id, user_id, work_id, message_id,
                       context)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb)
"""

_JOB = f"""
SELECT {_JOB_COLUMNS} FROM chat_jobs
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND agent_id = $3
  AND ($4::text IS NULL OR user_id = $4)
"""  # noqa: S608

_TASK = f"""
SELECT {_JOB_COLUMNS}, context::text AS context, progress::text AS progress,
       (SELECT e.content FROM conversation_entries e
        WHERE e.conversation_id = chat_jobs.conversation_id AND e.type = 'message'
        ORDER BY e.seq DESC LIMIT 1) AS question
FROM chat_jobs
WHERE tenant_id = $1 AND id = $2 AND status IN ('pending', 'running')
"""  # noqa: S608

_UNFINISHED = """
SELECT id, work_id FROM chat_jobs
WHERE tenant_id = $1 AND agent_id = ANY($2) AND status IN ('pending', 'running')
ORDER BY work_id
"""

_RUNNING = "UPDATE chat_jobs SET status = 'running' WHERE tenant_id = $1 AND id = $2"

_PROGRESS = "UPDATE chat_jobs SET progress = $3::jsonb WHERE tenant_id = $1 AND id = $2"

_END_JOB = """
UPDATE chat_jobs j
SET status = $3, reply = $4::jsonb, error = $5::jsonb, finished_at = now(), progress = '[]'
FROM (SELECT id, progress FROM chat_jobs WHERE tenant_id = $1 AND id = $2 FOR UPDATE) was
WHERE j.id = was.id AND j.status IN ('pending', 'running')
RETURNING j.agent_id, j.conversation_id, j.message_id, j.user_id, was.progress::text AS progress
"""


async def keep_question(tx: Tx, tenant: str, *values: object) -> None:
    events.wake(tx, await fast.value(tx, tenant, _KEEP_QUESTION, *values))


async def add_job(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ADD_JOB, *values)


async def job(
    tx: Tx, tenant: str | None, job_id: str, agent_id: str, user_id: str | None
) -> Row | None:
    """`user_id` None is for those who may read other people's."""
    return await fast.row(tx, tenant, _JOB, job_id, agent_id, user_id)


async def unfinished(tx: Tx, tenant: str, agent_ids: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _UNFINISHED, agent_ids)


async def task(tx: Tx, tenant: str, job_id: str) -> Row | None:
    """What a worker needs of a job that is not over."""
    return await fast.row(tx, tenant, _TASK, job_id)


async def mark_running(tx: Tx, tenant: str, job_id: str) -> None:
    await fast.execute(tx, tenant, _RUNNING, job_id)


async def keep_progress(tx: Tx, tenant: str, job_id: str, rounds: str) -> None:
    await fast.execute(tx, tenant, _PROGRESS, job_id, rounds)


async def end_job(
    tx: Tx, tenant: str, job_id: str, status: str, reply: str | None, error: str | None
) -> Row | None:
    return await fast.row(tx, tenant, _END_JOB, job_id, status, reply, error)


# Conversations and logs

_LOG_WHERE = """
FROM conversation_entries
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND logged
  AND ($3::text IS NULL OR type = $3)
  AND ($4::text IS NULL OR conversation_id = $4)
  AND ($5::timestamptz IS NULL OR created_at >= $5)
  AND ($6::timestamptz IS NULL OR created_at <= $6)
"""
_LOG_COUNT = f"SELECT count(*) {_LOG_WHERE}"
_LOG_PAGE = f"""
SELECT id, conversation_id, type, role, content, data::text AS data, created_at {_LOG_WHERE}
ORDER BY created_at DESC, seq DESC LIMIT $7 OFFSET $8
"""

_CALLS = """
SELECT data::text AS data FROM conversation_entries
WHERE ($1::text IS NULL OR tenant_id = $1) AND conversation_id = $2 AND type = 'tool_call'
  AND data->>'message_id' = ANY($3)
ORDER BY seq
"""

_ACTIVE = """
SELECT count(*) FROM conversations
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND ended_at IS NULL
  AND last_message_at > now() - $3 * interval '1 second'
"""

_END = f"""
WITH ended AS (
    UPDATE conversations SET ended_at = now()
    WHERE tenant_id = $1 AND id = $2 AND ended_at IS NULL
      AND ($4::float8 IS NULL OR last_message_at < now() - $4 * interval '1 second'
           AND (turn_until IS NULL OR turn_until < now()))
    RETURNING id
), {events.emission("$3", "WHERE EXISTS (SELECT 1 FROM ended)")}
SELECT {events.ROUTED}
"""  # noqa: S608

_IDLE = """
SELECT tenant_id, id, agent_id FROM conversations
WHERE ended_at IS NULL AND last_message_at < now() - $1 * interval '1 second'
  AND (turn_until IS NULL OR turn_until < now())
ORDER BY last_message_at LIMIT $2
FOR UPDATE SKIP LOCKED
"""


async def log_page(
    tx: Tx, tenant: str | None, agent_id: str, filters: tuple[object, ...], limit: int, offset: int
) -> tuple[list[Row], int]:
    total: int = await fast.value(tx, tenant, _LOG_COUNT, agent_id, *filters)
    found = await fast.rows(tx, tenant, _LOG_PAGE, agent_id, *filters, limit, offset)
    return found, total


async def calls_of(
    tx: Tx, tenant: str | None, conversation_id: str, message_ids: list[str]
) -> list[Row]:
    return await fast.rows(tx, tenant, _CALLS, conversation_id, message_ids)


async def active(tx: Tx, tenant: str | None, agent_id: str, seconds: float) -> int:
    return int(await fast.value(tx, tenant, _ACTIVE, agent_id, seconds))


async def end(
    tx: Tx, tenant: str, conversation_id: str, packed: str, idle_seconds: float | None = None
) -> None:
    """With `idle_seconds`, only if it is still idle."""
    routed = await fast.value(tx, tenant, _END, conversation_id, packed, idle_seconds)
    events.wake(tx, routed)


async def idle(tx: Tx, seconds: float, limit: int) -> list[Row]:
    """Of every tenant: nobody wrote for a while, and nobody is answering."""
    return list(await (await tx.raw()).fetch(_IDLE, seconds, limit))


_CALL_IDS = """
SELECT data->>'id' AS id FROM conversation_entries
WHERE tenant_id = $1 AND conversation_id = $2 AND type = 'tool_call'
"""


async def call_ids(tx: Tx, tenant: str, conversation_id: str) -> list[str]:
    """The calls of tools and sub-agents in a conversation."""
    return [row["id"] for row in await fast.rows(tx, tenant, _CALL_IDS, conversation_id)]
