"""The conversations of a customer: a visitor whom a user token names."""

from db import fast
from db.session import Tx
from db.views import View

from .schemas import CustomerConversation

_CONVERSATION = View(CustomerConversation)
_OF_CUSTOMER = """
tenant_id = $1 AND embed_key_id = $2 AND visitor IS NOT NULL AND visitor->>'id' = $3
"""
# Those without a title are being deleted, with the agent's log.
_LIST = f"""
SELECT {_CONVERSATION.columns} FROM conversations WHERE {_OF_CUSTOMER} AND title <> ''
ORDER BY last_message_at DESC LIMIT $4
"""
_FIND_NEWEST = f"""
SELECT session_id FROM conversations WHERE {_OF_CUSTOMER} ORDER BY last_message_at DESC LIMIT 1
"""
_HAS_OTHERS = f"""
SELECT EXISTS (
    SELECT 1 FROM conversations WHERE {_OF_CUSTOMER} AND title <> '' AND session_id <> $4
)
"""


async def list_for_customer(
    tx: Tx, tenant: str, embed_key_id: str, visitor_id: str, limit: int
) -> list[CustomerConversation]:
    """Returns the newest ones first."""
    return await _CONVERSATION.list(tx, tenant, _LIST, embed_key_id, visitor_id, limit)


async def find_newest_session(
    tx: Tx, tenant: str, embed_key_id: str, visitor_id: str
) -> str | None:
    session_id: str | None = await fast.value(tx, tenant, _FIND_NEWEST, embed_key_id, visitor_id)
    return session_id


async def has_other_conversations(
    tx: Tx, tenant: str, embed_key_id: str, visitor_id: str, session_id: str
) -> bool:
    """Whether the customer has conversations besides that of the session."""
    args = (embed_key_id, visitor_id, session_id)
    has_others: bool = await fast.value(tx, tenant, _HAS_OTHERS, *args)
    return has_others
