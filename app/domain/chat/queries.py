"""The SQL of asynchronous chat, conversations and the agents' logs."""

import msgspec
from sqlalchemy import Select, select

from app.domain.events import service as events
from app.kit import paging
from app.kit.paging import Page
from app.security.principal import Principal
from db import counting, fast
from db.counting import Total
from db.fast import Row
from db.models import Conversation, ConversationEntry
from db.session import Tx

_SORTABLE = {
    "created_at": Conversation.created_at,
    "last_message_at": Conversation.last_message_at,
    "message_count": Conversation.message_count,
}

# Asynchronous chat

_STORE_QUESTION = f"""
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
), {events.emission_sql("$8")}
SELECT {events.ROUTED}
"""

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
"""

_UNFINISHED_JOB = f"""
SELECT {_JOB_COLUMNS}, context::text AS context, progress::text AS progress,
       (SELECT e.content FROM conversation_entries e
        WHERE e.conversation_id = chat_jobs.conversation_id AND e.type = 'message'
        ORDER BY e.seq DESC LIMIT 1) AS question
FROM chat_jobs
WHERE tenant_id = $1 AND id = $2 AND status IN ('pending', 'running')
"""

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


async def store_question(tx: Tx, tenant: str, *values: object) -> None:
    events.wake(tx, await fast.value(tx, tenant, _STORE_QUESTION, *values))


async def add_job(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ADD_JOB, *values)


async def find_job(
    tx: Tx, tenant: str | None, job_id: str, agent_id: str, user_id: str | None
) -> Row | None:
    """`user_id` None is for those who may read other people's."""
    return await fast.row(tx, tenant, _JOB, job_id, agent_id, user_id)


async def list_unfinished_jobs(tx: Tx, tenant: str, agent_ids: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _UNFINISHED, agent_ids)


async def find_unfinished_job(tx: Tx, tenant: str, job_id: str) -> Row | None:
    """What a worker needs of a job that is not finished."""
    return await fast.row(tx, tenant, _UNFINISHED_JOB, job_id)


async def mark_running(tx: Tx, tenant: str, job_id: str) -> None:
    await fast.execute(tx, tenant, _RUNNING, job_id)


async def store_progress(tx: Tx, tenant: str, job_id: str, rounds: str) -> None:
    await fast.execute(tx, tenant, _PROGRESS, job_id, rounds)


async def end_job(
    tx: Tx, tenant: str, job_id: str, status: str, reply: str | None, error: str | None
) -> Row | None:
    return await fast.row(tx, tenant, _END_JOB, job_id, status, reply, error)


# Conversations and logs

_OF_AGENT = """
agent_id = $2 AND logged
  AND ($3::text IS NULL OR type = $3)
  AND ($4::text IS NULL OR conversation_id = $4)
  AND ($5::timestamptz IS NULL OR created_at >= $5)
  AND ($6::timestamptz IS NULL OR created_at <= $6)
"""
_LOG = f"FROM conversation_entries WHERE ($1::text IS NULL OR tenant_id = $1) AND {_OF_AGENT}"
# An agent has one tenant. With both conditions the planner estimates too low.
_ESTIMATED_LOG = f"""
FROM conversation_entries WHERE ($1::text IS NULL OR $1 IS NOT NULL) AND {_OF_AGENT}
"""
_LOG_PAGE = f"""
SELECT id, conversation_id, type, role, content, data::text AS data, created_at {_LOG}
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
), {events.emission_sql("$3", "WHERE EXISTS (SELECT 1 FROM ended)")}
SELECT {events.ROUTED}
"""

_IDLE = """
SELECT tenant_id, id, agent_id FROM conversations
WHERE ended_at IS NULL AND last_message_at < now() - $1 * interval '1 second'
  AND (turn_until IS NULL OR turn_until < now())
ORDER BY last_message_at LIMIT $2
FOR UPDATE SKIP LOCKED
"""


async def list_log(
    tx: Tx, tenant: str | None, agent_id: str, filters: tuple[object, ...], page: Page
) -> tuple[list[Row], Total]:
    total = await counting.count_rows(
        tx, tenant, _LOG, agent_id, *filters, estimated_from=_ESTIMATED_LOG
    )
    args = (agent_id, *filters, page.per_page, page.offset)
    return await fast.rows(tx, tenant, _LOG_PAGE, *args), total


async def list_calls(
    tx: Tx, tenant: str | None, conversation_id: str, message_ids: list[str]
) -> list[Row]:
    return await fast.rows(tx, tenant, _CALLS, conversation_id, message_ids)


async def count_active(tx: Tx, tenant: str | None, agent_id: str, seconds: float) -> int:
    return int(await fast.value(tx, tenant, _ACTIVE, agent_id, seconds))


async def end(
    tx: Tx, tenant: str, conversation_id: str, emitted: str, idle_seconds: float | None = None
) -> None:
    """With `idle_seconds`, only if it is still idle."""
    routed = await fast.value(tx, tenant, _END, conversation_id, emitted, idle_seconds)
    events.wake(tx, routed)


async def list_idle(tx: Tx, seconds: float, limit: int) -> list[Row]:
    """Of every tenant: without a message for a while, and without a running turn."""
    return list(await (await tx.raw()).fetch(_IDLE, seconds, limit))


_CALL_IDS = """
SELECT data->>'id' AS id FROM conversation_entries
WHERE tenant_id = $1 AND conversation_id = $2 AND type = 'tool_call'
"""


async def list_call_ids(tx: Tx, tenant: str, conversation_id: str) -> list[str]:
    """The calls of tools and sub-agents in a conversation."""
    return [row["id"] for row in await fast.rows(tx, tenant, _CALL_IDS, conversation_id)]


def _visible(principal: Principal) -> Select[Conversation]:
    statement = select(Conversation)
    if not principal.may("conversations:read"):
        statement = statement.where(Conversation.user_id == principal.user_id)
    return statement


class ConversationFilter(msgspec.Struct, frozen=True):
    status: str | None = None
    search: str | None = None
    sort: str | None = None


async def list_page(
    tx: Tx, principal: Principal, agent_id: str, page: Page, filters: ConversationFilter
) -> tuple[list[Conversation], Total]:
    statement = _visible(principal).where(Conversation.agent_id == agent_id)
    if filters.status:
        is_ended = Conversation.ended_at.is_not(None)
        statement = statement.where(is_ended if filters.status == "ended" else ~is_ended)
    if filters.search:
        statement = statement.where(paging.contains(Conversation.title, filters.search))
    ordering = paging.order(filters.sort, _SORTABLE, "-last_message_at", Conversation.id)
    return await paging.fetch(tx, statement, page, ordering)


async def find(
    tx: Tx, principal: Principal, conversation_id: str, *, for_update: bool = False
) -> Conversation | None:
    statement = _visible(principal).where(Conversation.id == conversation_id)
    if for_update:
        statement = statement.with_for_update()
    conversation: Conversation | None = await (await tx.session()).scalar(statement)
    return conversation


async def list_messages(
    tx: Tx, conversation_id: str, page: Page
) -> tuple[list[ConversationEntry], Total]:
    statement = select(ConversationEntry).where(
        ConversationEntry.conversation_id == conversation_id, ConversationEntry.type == "message"
    )
    return await paging.fetch(tx, statement, page, [ConversationEntry.seq.asc()])
