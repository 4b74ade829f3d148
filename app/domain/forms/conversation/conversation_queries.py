"""SQL of conversations that fill in a form."""

from datetime import datetime
from typing import Any

import msgspec

from app.kit.languages import Language
from app.kit.texts import as_json
from db import fast
from db.session import Tx
from db.views import View

from .conversation_schemas import ConversationStatus, FormMessageView


class Conversation(msgspec.Struct, kw_only=True):
    id: str
    tenant_id: str
    form_id: str
    version: int
    status: ConversationStatus
    data: dict[str, Any]
    skipped: list[str]
    current_field: str | None
    turn: int
    submission_id: str | None
    created_at: datetime
    expires_at: datetime
    language: Language


_VIEW = View(Conversation)
_MESSAGE = View(FormMessageView)
_INSERT = f"""
INSERT INTO form_conversations
    (tenant_id, id, form_id, version, data, skipped, current_field, expires_at, language)
VALUES ($1, $2, $3, $4, $5::json, $6, $7, $8, $9) RETURNING {_VIEW.columns}
"""
_FIND = f"""
SELECT {_VIEW.columns} FROM form_conversations
WHERE tenant_id = $1 AND form_id = $2 AND id = $3 AND expires_at > now()
"""
# One that was abandoned goes on.
_SAVE_TURN = """
UPDATE form_conversations
SET status = $4, data = $5::json, skipped = $6, current_field = $7, submission_id = $8,
    turn = turn + 1, updated_at = now(), expires_at = $9
WHERE tenant_id = $1 AND id = $2 AND turn = $3 AND status <> 'completed'
"""
_INSERT_MESSAGE = f"""
INSERT INTO form_messages (tenant_id, id, conversation_id, position, role, content, field_id)
VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING {_MESSAGE.columns}
"""
_LIST_MESSAGES = f"""
SELECT {_MESSAGE.columns} FROM form_messages
WHERE tenant_id = $1 AND conversation_id = $2 ORDER BY position LIMIT $3
"""
_ABANDON = """
UPDATE form_conversations SET status = 'abandoned'
WHERE id = ANY(ARRAY(
    SELECT id FROM form_conversations
    WHERE status = 'active' AND updated_at < now() - interval '24 hours'
    ORDER BY updated_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
"""


async def insert(tx: Tx, tenant: str, *values: object) -> Conversation:
    """The values are those of the statement, from id to language."""
    conversation = await _VIEW.find(tx, tenant, _INSERT, *values)
    if conversation is None:
        raise RuntimeError("an insert returned no row")
    return conversation


async def find(tx: Tx, tenant: str, form_id: str, conversation_id: str) -> Conversation | None:
    return await _VIEW.find(tx, tenant, _FIND, form_id, conversation_id)


async def save_turn(tx: Tx, conversation: Conversation) -> bool:
    """False when another message was answered meanwhile."""
    count = await fast.execute(
        tx,
        conversation.tenant_id,
        _SAVE_TURN,
        conversation.id,
        conversation.turn,
        conversation.status,
        as_json(conversation.data),
        conversation.skipped,
        conversation.current_field,
        conversation.submission_id,
        conversation.expires_at,
    )
    return count == 1


async def insert_message(tx: Tx, tenant: str, *values: object) -> FormMessageView:
    """The values are those of the statement, from id to field_id."""
    message = await _MESSAGE.find(tx, tenant, _INSERT_MESSAGE, *values)
    if message is None:
        raise RuntimeError("an insert returned no row")
    return message


async def list_messages(
    tx: Tx, tenant: str, conversation_id: str, limit: int
) -> list[FormMessageView]:
    return await _MESSAGE.list(tx, tenant, _LIST_MESSAGES, conversation_id, limit)


async def abandon(tx: Tx, limit: int) -> int:
    """Marks conversations that nobody went on with. Returns their number."""
    status: str = await (await tx.raw()).execute(_ABANDON, limit)
    return int(status.rpartition(" ")[2])
