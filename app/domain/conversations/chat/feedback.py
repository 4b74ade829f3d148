"""Ratings of answers, by users and by visitors of web sites."""

from app.domain.platform.events import api as events
from app.kit.ids import new_id
from app.security.principal import Principal
from db.fast import tenant_of
from db.session import Tx

from . import conversations, feedback_queries
from .errors import MessageNotFound, MessageNotRatable
from .events import ChatRated
from .schemas import PREVIEW, Feedback, RatedMessage, RateMessage


async def rate(
    tx: Tx, principal: Principal, conversation_id: str, message_id: str, data: RateMessage
) -> RatedMessage:
    """Rates an answer for a user who may read the conversation."""
    await conversations.require(tx, principal, conversation_id)
    user_id = principal.user_id
    return await _rate(tx, tenant_of(tx), (conversation_id, message_id), user_id, data)


async def rate_as_visitor(
    tx: Tx, tenant_id: str, conversation_id: str, message_id: str, data: RateMessage
) -> RatedMessage:
    return await _rate(tx, tenant_id, (conversation_id, message_id), None, data)


async def _rate(
    tx: Tx, tenant: str | None, message: tuple[str, str], user_id: str | None, data: RateMessage
) -> RatedMessage:
    conversation_id, message_id = message
    row = await feedback_queries.find_message(tx, tenant, conversation_id, message_id)
    if row is None:
        raise MessageNotFound(f"There is no message {message_id[:64]} in this conversation")
    if row["role"] != "assistant":
        raise MessageNotRatable("Only messages of the agent can be rated")
    if row["source"] == PREVIEW:
        raise MessageNotRatable("Answers of a preview cannot be rated")
    tenant_id: str = row["tenant_id"]
    feedback = Feedback(data.rating, data.comment or None) if data.rating else None
    if await _store(tx, tenant_id, message_id, user_id, feedback):
        comment = feedback.comment if feedback is not None and row["logged"] else None
        rated = ChatRated(row["agent_id"], conversation_id, message_id, data.rating, comment)
        await events.emit(tx, rated, tenant_id=tenant_id)
    return RatedMessage(message_id, feedback)


async def _store(
    tx: Tx, tenant_id: str, message_id: str, user_id: str | None, feedback: Feedback | None
) -> bool:
    """False when nothing changed."""
    if feedback is None:
        return await feedback_queries.withdraw(tx, tenant_id, message_id, user_id)
    values = (message_id, user_id, feedback.rating, feedback.comment)
    return await feedback_queries.rate(tx, tenant_id, new_id("fbk"), *values)
