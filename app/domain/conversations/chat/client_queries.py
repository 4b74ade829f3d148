"""Answers to clients of OpenAI's wire formats, and the calls of their functions."""

from typing import NamedTuple

from db import fast
from db.fast import Row
from db.session import Tx


class AnswerOwner(NamedTuple):
    """Who got an answer, and from which agent."""

    agent_id: str
    user_id: str | None
    embed_key_id: str | None


# The newest calls of an answer whose texts have at most so many bytes in total.
_MAX_CALL_BYTES = 200_000


def calls_of(answer: str) -> str:
    """The calls `t` of an answer are the entries between the message before it and itself."""
    return f"""
conversation_entries t
WHERE t.conversation_id = {answer}.conversation_id AND t.tenant_id = {answer}.tenant_id
  AND t.type = 'tool_call' AND t.seq < {answer}.seq
  AND t.seq > coalesce((SELECT m.seq FROM conversation_entries m
                        WHERE m.conversation_id = {answer}.conversation_id
                          AND m.tenant_id = {answer}.tenant_id AND m.seq < {answer}.seq
                          AND m.type = 'message' ORDER BY m.seq DESC LIMIT 1), 0)"""


_OF_OWNER = """
a.id = ANY($2) AND a.tenant_id = $1 AND a.role = 'assistant' AND a.replaced_by IS NULL
  AND c.agent_id = $3 AND c.user_id IS NOT DISTINCT FROM $4
  AND c.embed_key_id IS NOT DISTINCT FROM $5 AND c.session_id IS NULL"""

# A call of a sub-agent is part of the call that delegated to it: it has no function.
_FIND = f"""
SELECT a.id, a.conversation_id,
       NOT EXISTS (SELECT 1 FROM conversation_entries n
                   WHERE n.tenant_id = $1 AND n.conversation_id = a.conversation_id
                     AND n.seq > a.seq AND n.role = 'assistant' AND n.replaced_by IS NULL
                     -- A turn that failed or was interrupted may be tried again.
                     AND n.status = 'complete') AS is_last,
       (SELECT json_agg(data ORDER BY seq) FROM (
            SELECT t.data, t.seq,
                   sum(octet_length(t.data::text)) OVER (ORDER BY t.seq DESC) AS bytes
            FROM {calls_of("a")}
              AND t.data->>'function' <> '' AND NOT coalesce((t.data->>'is_client')::boolean, false)
        ) own WHERE bytes <= {_MAX_CALL_BYTES})::text AS calls
FROM conversation_entries a JOIN conversations c ON c.id = a.conversation_id AND c.tenant_id = $1
WHERE {_OF_OWNER}
ORDER BY a.seq DESC
"""

# Without the texts of those that have more than $6 bytes together with the newer ones.
_FIND_ITEMS = f"""
SELECT id, conversation_id, bytes > $6 AS is_too_long,
       CASE WHEN bytes <= $6 THEN content END AS content,
       CASE WHEN bytes <= $6 THEN calls END AS calls
FROM (
    SELECT id, conversation_id, content, calls,
           sum(octet_length(content) + coalesce(octet_length(calls), 0))
             OVER (ORDER BY seq DESC) AS bytes
    FROM (
        SELECT a.id, a.seq, a.conversation_id, coalesce(a.content, '') AS content,
               (SELECT json_agg(json_build_object(
                    'id', t.data->'id', 'function', t.data->'function', 'input', t.data->'input')
                    ORDER BY t.seq)
                FROM {calls_of("a")} AND (t.data->>'is_client')::boolean)::text AS calls
        FROM conversation_entries a
        JOIN conversations c ON c.id = a.conversation_id AND c.tenant_id = $1
        WHERE {_OF_OWNER}
    ) answers
) counted
"""

_STORE = f"""
UPDATE conversation_entries e
SET data = e.data || jsonb_build_object('output', r.output, 'status', 'completed')
FROM jsonb_to_recordset($3::jsonb) AS r(answer_id text, call_id text, output text)
JOIN conversation_entries a ON a.id = r.answer_id AND a.tenant_id = $1 AND a.conversation_id = $2
JOIN LATERAL (
    SELECT t.id FROM {calls_of("a")}
      AND t.data->>'id' = r.call_id AND (t.data->>'is_client')::boolean
) called ON true
WHERE e.tenant_id = $1 AND e.id = called.id
"""

# An answer, or the job that prepares it: $3. `seq` is None while there is no answer.
_FIND_ONE = f"""
SELECT c.id AS conversation_id, c.tenant_id, c.agent_id, c.created_at AS since,
       a.seq, a.content, a.status, a.data::text AS data, coalesce(j.created_at, a.created_at) AS at,
       j.id AS job_id, j.status AS job_status, j.error::text AS job_error, j.client::text AS client,
       (SELECT json_agg(t.data ORDER BY t.seq)
        FROM {calls_of("a")} AND (t.data->>'is_client')::boolean)::text AS calls
FROM (VALUES ($2::text)) AS asked (id)
LEFT JOIN conversation_entries a ON a.id = asked.id AND a.role = 'assistant'
  AND a.replaced_by IS NULL AND ($1::text IS NULL OR a.tenant_id = $1)
LEFT JOIN chat_jobs j ON j.id = $3 AND ($1::text IS NULL OR j.tenant_id = $1)
JOIN conversations c ON c.id = coalesce(a.conversation_id, j.conversation_id)
  AND ($1::text IS NULL OR c.tenant_id = $1)
WHERE c.user_id IS NOT DISTINCT FROM $4 AND c.embed_key_id IS NOT DISTINCT FROM $5
  AND c.session_id IS NULL
"""

# The question of an answer is the user's message after the answer before it.
_QUESTION = """
SELECT q.id, EXISTS (SELECT 1 FROM conversation_entries o
                     WHERE o.conversation_id = $2 AND o.type = 'message' AND o.tenant_id = $1
                       AND o.id <> $3 AND o.id IS DISTINCT FROM q.id) AS has_more
FROM (VALUES (1)) AS one (n) LEFT JOIN LATERAL (
    SELECT id, role FROM conversation_entries
    WHERE conversation_id = $2 AND type = 'message' AND seq < $4 AND tenant_id = $1
      AND replaced_by IS NULL
    ORDER BY seq DESC LIMIT 1
) q ON q.role = 'user'
"""

# What belongs to the answer $4 is between the messages before and after its place, which is $6.
_DELETE_ENTRIES = """
WITH neighbours AS (
    SELECT coalesce((SELECT seq FROM conversation_entries
                     WHERE conversation_id = $2 AND tenant_id = $1 AND type = 'message'
                       AND seq < $6 ORDER BY seq DESC LIMIT 1), 0) AS before,
           (SELECT seq FROM conversation_entries
            WHERE conversation_id = $2 AND tenant_id = $1 AND type = 'message'
              AND seq > $6 ORDER BY seq LIMIT 1) AS after
), deleted AS (
    DELETE FROM conversation_entries e USING neighbours n
    WHERE e.conversation_id = $2 AND e.tenant_id = $1
      AND (e.id = ANY($3) OR e.seq > n.before AND (n.after IS NULL OR e.seq < n.after)
           AND e.data->>'message_id' = $4)
    RETURNING e.type, e.data
), job AS (
    DELETE FROM chat_jobs WHERE id = $5 AND tenant_id = $1
), conversation AS (
    UPDATE conversations c
    SET message_count = message_count - (SELECT count(*) FROM deleted WHERE type = 'message')
    WHERE c.id = $2 AND c.tenant_id = $1
)
SELECT data->>'id' AS id FROM deleted WHERE type = 'tool_call'
"""


async def find_answers(
    tx: Tx, tenant: str, message_ids: list[str], owner: AnswerOwner
) -> list[Row]:
    """Returns those of the answers that are the owner's, the newest first, with the calls that the
    agent made itself.
    """
    return await fast.rows(tx, tenant, _FIND, message_ids, *owner)


async def find_items(
    tx: Tx, tenant: str, message_ids: list[str], owner: AnswerOwner, max_bytes: int
) -> list[Row]:
    """Returns those of the answers that are the owner's, with the calls for the client."""
    return await fast.rows(tx, tenant, _FIND_ITEMS, message_ids, *owner, max_bytes)


async def find_answer(
    tx: Tx,
    tenant: str | None,
    message_id: str,
    job_id: str,
    user_id: str | None,
    embed_key_id: str | None,
) -> Row | None:
    """Returns the caller's own answer, or the job that will have it."""
    return await fast.row(tx, tenant, _FIND_ONE, message_id, job_id, user_id, embed_key_id)


async def find_question(
    tx: Tx, tenant: str, conversation_id: str, message_id: str, seq: int
) -> tuple[str | None, bool]:
    """Returns the question of an answer, and whether the conversation has more than both."""
    row = await fast.row(tx, tenant, _QUESTION, conversation_id, message_id, seq)
    return (None, False) if row is None else (row["id"], row["has_more"])


async def delete_entries(
    tx: Tx,
    tenant: str,
    conversation_id: str,
    ids: list[str],
    message_id: str,
    job_id: str,
    seq: int,
) -> list[str]:
    """Deletes messages, and what belongs to the answer; returns the calls of tools among it."""
    values = (conversation_id, ids, message_id, job_id, seq)
    return [row["id"] for row in await fast.rows(tx, tenant, _DELETE_ENTRIES, *values)]


async def store_outputs(tx: Tx, tenant: str, conversation_id: str, outputs: str) -> None:
    await fast.execute(tx, tenant, _STORE, conversation_id, outputs)
