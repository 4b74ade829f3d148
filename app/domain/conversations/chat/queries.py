"""The SQL of asynchronous chat, conversations and the agents' logs."""

from datetime import datetime

import msgspec
from sqlalchemy import Select, select

from app.domain.platform.events import api as events
from app.kit import paging
from app.kit.errors import ProviderError
from app.kit.paging import Page, SortOrders
from app.security.principal import Principal
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Conversation
from db.session import Tx
from db.views import View

from . import feedback_queries
from .errors import CANNOT_ANSWER
from .schemas import ConversationView, LogEntry, MessageView, VisitorMessage

_SORT_ORDERS = SortOrders(
    "-last_message_at",
    Conversation.id,
    created_at=Conversation.created_at,
    last_message_at=Conversation.last_message_at,
    message_count=Conversation.message_count,
)
_CONVERSATION = View(
    ConversationView, status="CASE WHEN ended_at IS NULL THEN 'active' ELSE 'ended' END"
)
# What a client sent along may be as large as a request.
_LOG_ENTRY = View(LogEntry, data="data - '{before,client}'::text[]")
_MESSAGE = View(
    MessageView,
    "m",
    computed=("content_chars",),
    content="coalesce(m.content, '')",
    tool_calls="coalesce(c.calls, '[]')",
    sources="coalesce(m.data->'sources', '[]')",
    error="m.data->'error'",
    attachments="coalesce(m.data->'attachments', '[]')",
    feedback=feedback_queries.select_sql("m.id", "m.tenant_id", "$user"),
)

_VISITOR_MESSAGE = View(
    VisitorMessage,
    "newest",
    content="coalesce(content, '')",
    sources="coalesce(data->'sources', '[]')",
    attachments="coalesce(data->'attachments', '[]')",
    error=f"""CASE WHEN status = 'failed' THEN
        jsonb_build_object('code', '{ProviderError.code}', 'message', '{CANNOT_ANSWER}') END""",
    feedback=feedback_queries.select_sql(
        "newest.id", "newest.tenant_id", feedback_queries.OF_VISITOR
    ),
)

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
                                      data, logged, correlation_id)
    SELECT $1, $3, agent_id, id, 'message', 'user', $4, $6::jsonb, $7, $8 FROM conversation
), {events.emission_sql("$9")}
SELECT {events.ROUTED}
"""

_STORE_FAILURE = f"""
WITH conversation AS (
    UPDATE conversations SET message_count = message_count + 1, last_message_at = now()
    WHERE tenant_id = $1 AND id = $2
    RETURNING id, agent_id
), entry AS (
    INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                      status, data, correlation_id)
    SELECT $1, $3, agent_id, id, 'message', 'assistant', '', 'failed', $4::jsonb, $5
    FROM conversation
), {events.emission_sql("$6")}
SELECT {events.ROUTED}
"""

_JOB_COLUMNS = """
id, tenant_id, agent_id, conversation_id, user_id, work_id, message_id, caller_id, status,
reply::text AS reply, error::text AS error, created_at, finished_at
"""

_ADD_JOB = """
INSERT INTO chat_jobs (tenant_id, id, agent_id, conversation_id, user_id, work_id, message_id,
                       context, caller_id, client)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10::jsonb)
"""

_JOB = f"""
SELECT {_JOB_COLUMNS} FROM chat_jobs
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND agent_id = $3
  AND ($4::text IS NULL OR user_id = $4)
"""

_UNFINISHED_JOB = f"""
SELECT {_JOB_COLUMNS}, context::text AS context, progress::text AS progress,
       client::text AS client,
       (SELECT e.content FROM conversation_entries e
        WHERE e.tenant_id = $1 AND e.conversation_id = chat_jobs.conversation_id
          AND e.type = 'message'
        ORDER BY e.seq DESC LIMIT 1) AS question
FROM chat_jobs
WHERE tenant_id = $1 AND id = $2 AND status IN ('pending', 'running')
"""

_UNFINISHED = """
SELECT id, work_id, caller_id FROM chat_jobs
WHERE tenant_id = $1 AND agent_id = ANY($2) AND status IN ('pending', 'running')
ORDER BY work_id
"""

_FIND_WORK = "SELECT work_id FROM chat_jobs WHERE tenant_id = $1 AND id = $2"

_RUNNING = "UPDATE chat_jobs SET status = 'running' WHERE tenant_id = $1 AND id = $2"

_PROGRESS = "UPDATE chat_jobs SET progress = $3::jsonb WHERE tenant_id = $1 AND id = $2"

_END_JOB = """
UPDATE chat_jobs j
SET status = $3, reply = $4::jsonb, error = $5::jsonb, finished_at = now(), progress = '[]'
FROM (SELECT id, progress FROM chat_jobs WHERE tenant_id = $1 AND id = $2 FOR UPDATE) was
WHERE j.id = was.id AND j.status IN ('pending', 'running')
RETURNING j.agent_id, j.conversation_id, j.message_id, j.user_id, j.caller_id,
          was.progress::text AS progress,
          (SELECT primary_model FROM agents a WHERE a.id = j.agent_id) AS model,
          NOT EXISTS (SELECT 1 FROM conversation_entries e
                      WHERE e.conversation_id = j.conversation_id AND e.type = 'message'
                        AND e.role = 'assistant') AS is_new
"""


async def store_question(tx: Tx, tenant: str, *values: object) -> None:
    events.wake(tx, await fast.value(tx, tenant, _STORE_QUESTION, *values))


async def store_failure(tx: Tx, tenant: str, *values: object) -> None:
    events.wake(tx, await fast.value(tx, tenant, _STORE_FAILURE, *values))


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


async def find_work_id(tx: Tx, tenant: str, job_id: str) -> str | None:
    work_id: str | None = await fast.value(tx, tenant, _FIND_WORK, job_id)
    return work_id


async def mark_running(tx: Tx, tenant: str, job_id: str) -> None:
    await fast.execute(tx, tenant, _RUNNING, job_id)


async def store_progress(tx: Tx, tenant: str, job_id: str, rounds: str) -> None:
    await fast.execute(tx, tenant, _PROGRESS, job_id, rounds)


async def end_job(
    tx: Tx, tenant: str, job_id: str, status: str, reply: str | None, error: str | None
) -> Row | None:
    return await fast.row(tx, tenant, _END_JOB, job_id, status, reply, error)


# Conversations and logs

# A message with the calls of tools that its turn made.
_LISTED = "FROM conversation_entries WHERE $where ORDER BY seq LIMIT $limit OFFSET $offset"
_MESSAGE_PAGE = f"""
{_MESSAGE.columns} FROM (SELECT * {_LISTED}) m LEFT JOIN (
    SELECT data->>'message_id' AS message_id, json_agg(data ORDER BY seq) AS calls
    FROM conversation_entries
    WHERE $tenant AND conversation_id = $2 AND type = 'tool_call'
      AND data->>'message_id' IN (SELECT id {_LISTED})
    GROUP BY data->>'message_id'
) c ON c.message_id = m.id
ORDER BY m.seq
"""

_VISITOR_MESSAGES = f"""
SELECT {_VISITOR_MESSAGE.columns} FROM (
    SELECT * FROM conversation_entries
    WHERE conversation_id = $2 AND type = 'message' AND replaced_by IS NULL
    ORDER BY seq DESC LIMIT $3
) newest WHERE tenant_id = $1 ORDER BY seq
"""

_ACTIVITY = """
SELECT (SELECT count(*) FROM conversations
        WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND ended_at IS NULL
          AND source <> 'preview' AND last_message_at > now() - $3 * interval '1 second'
       ) AS conversations,
       count(*) AS documents,
       count(*) FILTER (WHERE status IN ('ready', 'failed')) AS documents_done,
       count(*) FILTER (WHERE status = 'failed') AS documents_failed
FROM documents
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND deleted_at IS NULL
"""

_ENDED_CONVERSATION = """
JOIN ended c ON c.id = e.data->>'conversation_id' AND c.source <> 'preview'"""
_END = f"""
WITH ended AS (
    UPDATE conversations SET ended_at = clock_timestamp()
    WHERE ($1::text IS NULL OR tenant_id = $1) AND id = ANY($2) AND ended_at IS NULL
      AND (turn_until IS NULL OR turn_until < now())
    RETURNING id, source
), {events.emission_sql("$3", _ENDED_CONVERSATION)}
SELECT {events.ROUTED}
"""

_IDLE = """
SELECT tenant_id, id, agent_id FROM conversations
WHERE ended_at IS NULL AND last_message_at < now() - $1 * interval '1 second'
  AND (turn_until IS NULL OR turn_until < now())
ORDER BY last_message_at LIMIT $2
FOR UPDATE SKIP LOCKED
"""


class LogFilter(msgspec.Struct, frozen=True):
    type: str | None = None
    conversation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def list_log(
    tx: Tx, agent_id: str, filters: LogFilter, page: Page
) -> tuple[list[LogEntry], Total]:
    where = Where(tenant_of(tx), "logged")
    where.add("agent_id = $n", agent_id)
    where.equal("type", filters.type)
    where.equal("conversation_id", filters.conversation_id)
    where.between("created_at", filters.since, filters.until)
    order = "created_at DESC, seq DESC"
    return await paging.fetch(
        tx, _LOG_ENTRY, "conversation_entries", where, order, page, tenant_is_implied=True
    )


async def load_activity(tx: Tx, tenant: str | None, agent_id: str, seconds: float) -> Row:
    """Returns the numbers of active conversations and of documents."""
    row = await fast.row(tx, tenant, _ACTIVITY, agent_id, seconds)
    if row is None:
        raise RuntimeError("an aggregate returned no row")
    return row


async def end(tx: Tx, tenant: str | None, conversation_ids: list[str], emitted: str) -> None:
    """Ends those conversations in which no turn runs, and emits the events of these."""
    events.wake(tx, await fast.value(tx, tenant, _END, conversation_ids, emitted))


async def lock_idle(tx: Tx, seconds: float, limit: int) -> list[Row]:
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
    statement, only_user = select(Conversation), owner_filter(principal)
    if only_user is not None:
        statement = statement.where(Conversation.user_id == only_user)
    return statement


class ConversationFilter(msgspec.Struct, frozen=True):
    status: str | None = None
    search: str | None = None
    sort: str | None = None
    source: str | None = None


async def list_page(
    tx: Tx, principal: Principal, agent_id: str, page: Page, filters: ConversationFilter
) -> tuple[list[ConversationView], Total]:
    where = Where(tenant_of(tx))
    where.add("agent_id = $n", agent_id)
    where.equal("user_id", owner_filter(principal))
    if filters.status:
        where.require("ended_at IS NOT NULL" if filters.status == "ended" else "ended_at IS NULL")
    if filters.source is None:
        where.require("source <> 'preview'")
    where.equal("source", filters.source)
    where.contain(filters.search, "title")
    order = _SORT_ORDERS.sql(filters.sort)
    return await paging.fetch(
        tx, _CONVERSATION, "conversations", where, order, page, tenant_is_implied=True
    )


_FIND = f"""
SELECT {_CONVERSATION.columns} FROM conversations
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND ($3::text IS NULL OR user_id = $3)
"""


async def find_view(tx: Tx, principal: Principal, conversation_id: str) -> ConversationView | None:
    only_user = owner_filter(principal)
    return await _CONVERSATION.find(tx, tenant_of(tx), _FIND, conversation_id, only_user)


def owner_filter(principal: Principal) -> str | None:
    """Returns whose conversations the principal may read; None means everybody's."""
    return None if principal.may("conversations:read") else principal.user_id


async def find(
    tx: Tx, principal: Principal, conversation_id: str, *, for_update: bool = False
) -> Conversation | None:
    statement = _visible(principal).where(Conversation.id == conversation_id)
    if for_update:
        statement = statement.with_for_update()
    conversation: Conversation | None = await (await tx.session()).scalar(statement)
    return conversation


async def list_messages(
    tx: Tx, principal: Principal, conversation_id: str, page: Page
) -> tuple[list[MessageView], Total]:
    where = Where(tenant_of(tx), "type = 'message' AND replaced_by IS NULL")
    where.add("conversation_id = $n", conversation_id)
    user = where.bind(principal.user_id)
    # Gives the parameter a type where messages are only counted.
    where.require(f"{user}::text IS NOT NULL")
    if owner_filter(principal) is not None:
        # Refers to no column of the messages, so that Postgres evaluates it once.
        own = f"{where.tenant_condition} AND id = $2 AND user_id = {user}"
        where.require(f"EXISTS (SELECT 1 FROM conversations WHERE {own})")
    listed = (
        _MESSAGE_PAGE.replace("$where", where.sql)
        .replace("$tenant", where.tenant_condition)
        .replace("$user", user)
    )
    rows, total = await paging.fetch_page(
        tx,
        where,
        listed,
        page,
        counted=f"FROM conversation_entries WHERE {where.sql}",
        estimated=f"FROM conversation_entries WHERE {where.sql_without_tenant}",
    )
    return [_MESSAGE.build(row) for row in rows], total


async def list_visitor_messages(
    tx: Tx, tenant: str, conversation_id: str, limit: int
) -> list[VisitorMessage]:
    """Returns the newest messages of a visitor's conversation, the oldest of them first."""
    return await _VISITOR_MESSAGE.list(tx, tenant, _VISITOR_MESSAGES, conversation_id, limit)
