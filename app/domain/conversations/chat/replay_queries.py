"""The SQL of questions that are asked again."""

from db import fast
from db.fast import Row
from db.session import Tx

# The question of an answer, in a conversation that the user may read.
_FIND_QUESTION = """
SELECT q.conversation_id, q.seq, q.content, (q.data->'attachments')::text AS attachments
FROM conversation_entries a
JOIN conversations c ON c.id = a.conversation_id AND c.tenant_id = a.tenant_id
CROSS JOIN LATERAL (
    SELECT * FROM conversation_entries e
    WHERE e.conversation_id = a.conversation_id AND e.seq < a.seq
      AND e.type = 'message' AND e.role = 'user' AND e.tenant_id = a.tenant_id
    ORDER BY e.seq DESC LIMIT 1
) q
WHERE a.tenant_id = $1 AND a.agent_id = $2 AND a.id = $3 AND a.type = 'message'
  AND a.role = 'assistant' AND ($4::text IS NULL OR c.user_id = $4)
"""

# A copy's calls have other ids: deleting the copy deletes nothing of the calls themselves. Copies
# are as old as their originals, so that they are kept for the same time.
_COPY = """
WITH names AS (
    SELECT * FROM unnest($3::text[], $4::text[]) AS n(id, copy_id)
), copied AS (
    INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content,
                                      status, data, logged, correlation_id, created_at)
    SELECT e.tenant_id, n.copy_id, e.agent_id, $2, e.type, e.role, e.content, e.status,
           CASE WHEN e.type = 'tool_call' THEN e.data || jsonb_build_object(
               'message_id', m.copy_id,
               'id', regexp_replace(e.data->>'id', '^(replay_)?', 'replay_'),
               'parent_id', regexp_replace(e.data->>'parent_id', '^(replay_)?', 'replay_')
           ) ELSE e.data END,
           false, e.correlation_id, e.created_at
    FROM names n
    JOIN conversation_entries e ON e.id = n.id AND e.tenant_id = $1
    LEFT JOIN names m ON m.id = e.data->>'message_id'
    WHERE e.conversation_id = $5
    ORDER BY e.seq
    RETURNING type
)
UPDATE conversations
SET message_count = message_count + (SELECT count(*) FROM copied WHERE type = 'message')
WHERE tenant_id = $1 AND id = $2
"""


async def find_question(
    tx: Tx, tenant: str, agent_id: str, answer_id: str, user_id: str | None
) -> Row | None:
    """`user_id` None is for those who may read other people's conversations."""
    return await fast.row(tx, tenant, _FIND_QUESTION, agent_id, answer_id, user_id)


async def copy(tx: Tx, tenant: str, target_id: str, copies: dict[str, str], source_id: str) -> None:
    """Copies entries from one conversation to another; `copies` has their new ids."""
    ids = (list(copies), list(copies.values()))
    await fast.execute(tx, tenant, _COPY, target_id, *ids, source_id)
