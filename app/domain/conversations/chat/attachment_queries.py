"""The SQL of attachments."""

from db import fast
from db.fast import Row
from db.session import Tx

_ADD = """
INSERT INTO chat_attachments (tenant_id, id, agent_id, user_id, embed_key_id, session_id, name,
                              mime_type, size_bytes, content, characters, truncated, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now() + interval '1 day')
RETURNING expires_at
"""
_FIND_USABLE = """
SELECT id, name, size_bytes FROM chat_attachments
WHERE tenant_id = $1 AND agent_id = $2 AND id = ANY($6) AND user_id IS NOT DISTINCT FROM $3
  AND embed_key_id IS NOT DISTINCT FROM $4 AND session_id IS NOT DISTINCT FROM $5
  AND (expires_at IS NULL OR expires_at > now())
"""
_MARK_USED = """
UPDATE chat_attachments SET conversation_id = $2, used_at = now(), expires_at = NULL
WHERE tenant_id = $1 AND id = ANY($3)
"""
_LIST_TEXTS = """
SELECT id, name, left(content, $4) AS text, truncated OR characters > $4 AS is_truncated
FROM chat_attachments
WHERE tenant_id = $1 AND agent_id = $2 AND id = ANY($3)
"""


async def add(tx: Tx, tenant: str, *values: object) -> Row | None:
    return await fast.row(tx, tenant, _ADD, *values)


async def find_usable(
    tx: Tx, tenant: str, agent_id: str, owner: tuple[str | None, ...], ids: list[str]
) -> list[Row]:
    """`owner` is the user, the embed key and the session."""
    return await fast.rows(tx, tenant, _FIND_USABLE, agent_id, *owner, ids)


async def mark_used(tx: Tx, tenant: str, conversation_id: str, ids: list[str]) -> None:
    """Gives attachments to a conversation, with which they are deleted."""
    await fast.execute(tx, tenant, _MARK_USED, conversation_id, ids)


async def list_texts(
    tx: Tx, tenant: str, agent_id: str, ids: list[str], max_characters: int
) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_TEXTS, agent_id, ids, max_characters)
