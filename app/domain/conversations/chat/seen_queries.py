"""The SQL of what the models of turns saw."""

from db import fast
from db.fast import Row
from db.session import Tx

_FIND = """
SELECT m.correlation_id, x.data::text AS data, v.system_prompt, u.prompt_tokens, u.completion_tokens
FROM conversation_entries m
JOIN conversations c ON c.id = m.conversation_id AND c.tenant_id = m.tenant_id
LEFT JOIN conversation_entries x
  ON x.id = $4 AND x.tenant_id = m.tenant_id AND x.conversation_id = m.conversation_id
  AND x.type = 'context'
LEFT JOIN agent_versions v
  ON v.agent_id = m.agent_id AND v.tenant_id = m.tenant_id
  AND v.version = (x.data->>'version')::int
CROSS JOIN LATERAL (
    SELECT sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens
    FROM usage WHERE tenant_id = m.tenant_id AND message_id = m.id
) u
WHERE ($1::text IS NULL OR m.tenant_id = $1) AND m.conversation_id = $2 AND m.id = $3
  AND m.type = 'message' AND m.role IS DISTINCT FROM 'user'
  AND ($5::text IS NULL OR c.user_id = $5)
"""


async def find(
    tx: Tx,
    tenant: str | None,
    conversation_id: str,
    message_id: str,
    entry_id: str,
    user_id: str | None,
) -> Row | None:
    """`user_id` None is for those who may read other people's conversations."""
    ids = (conversation_id, message_id, entry_id)
    return await fast.row(tx, tenant, _FIND, *ids, user_id)
