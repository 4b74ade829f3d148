"""The SQL of ratings."""

from typing import Final

from db import fast
from db.fast import Row
from db.session import Tx

_FIND_MESSAGE = """
SELECT e.tenant_id, e.agent_id, e.conversation_id, e.role, e.logged, c.source
FROM conversation_entries e
JOIN conversations c ON c.id = e.conversation_id AND c.tenant_id = e.tenant_id
WHERE ($1::text IS NULL OR e.tenant_id = $1) AND e.conversation_id = $2 AND e.id = $3
  AND e.type = 'message'
"""
_RATE = """
INSERT INTO message_feedback AS f
    (tenant_id, id, agent_id, conversation_id, message_id, message_at, user_id, rating, comment)
SELECT tenant_id, $2, agent_id, conversation_id, id, created_at, $4, $5, $6
FROM conversation_entries
WHERE tenant_id = $1 AND id = $3
ON CONFLICT (message_id, user_id) DO UPDATE
SET rating = excluded.rating, comment = excluded.comment, updated_at = now()
WHERE (f.rating, f.comment) IS DISTINCT FROM (excluded.rating, excluded.comment)
"""
_WITHDRAW = """
DELETE FROM message_feedback
WHERE tenant_id = $1 AND message_id = $2 AND user_id IS NOT DISTINCT FROM $3
"""


def select_sql(message: str, tenant: str, user: str) -> str:
    """Returns a sub-select of the rating that a person gave to a message. The arguments are SQL;
    `user` is NULL for the visitor of the conversation.
    """
    return f"""(
    SELECT json_build_object('rating', f.rating, 'comment', f.comment) FROM message_feedback f
    WHERE f.tenant_id = {tenant} AND f.message_id = {message}
      AND f.user_id IS NOT DISTINCT FROM {user})"""


OF_VISITOR: Final = "NULL"


async def find_message(
    tx: Tx, tenant: str | None, conversation_id: str, message_id: str
) -> Row | None:
    return await fast.row(tx, tenant, _FIND_MESSAGE, conversation_id, message_id)


async def rate(tx: Tx, tenant: str, *values: str | None) -> bool:
    """The values are id, message_id, user_id, rating and comment. False when nothing changed."""
    return await fast.execute(tx, tenant, _RATE, *values) == 1


async def withdraw(tx: Tx, tenant: str, message_id: str, user_id: str | None) -> bool:
    """False when there was no rating."""
    return await fast.execute(tx, tenant, _WITHDRAW, message_id, user_id) == 1
