"""Messages of long conversations, and the texts of messages in slices."""

from app.kit.errors import Invalid
from app.security.principal import Principal
from db.session import Tx

from . import conversations, message_queries
from .errors import MessageNotFound
from .message_queries import MessageRange, TextRange
from .schemas import MessagePage, TextSlice


async def list_range(
    tx: Tx, principal: Principal, conversation_id: str, wanted: MessageRange
) -> MessagePage:
    if wanted.before is not None and wanted.after is not None:
        raise Invalid.field("after", "cannot be used together with before")
    # One more than the page shows whether there are more.
    limit = wanted.limit
    views = await message_queries.list_range(tx, principal, conversation_id, wanted, limit + 1)
    if not views:
        await conversations.require(tx, principal, conversation_id)
        await _require_place(tx, conversation_id, wanted)
    page = views[-limit:] if wanted.after is None else views[:limit]
    return MessagePage(page, has_more=len(views) > limit)


async def _require_place(tx: Tx, conversation_id: str, wanted: MessageRange) -> None:
    for name, message_id in (("before", wanted.before), ("after", wanted.after)):
        if message_id is not None and not await message_queries.is_message(
            tx, conversation_id, message_id
        ):
            raise Invalid.field(name, "must be the id of a message of this conversation")


async def get_text(
    tx: Tx, principal: Principal, conversation_id: str, message_id: str, wanted: TextRange
) -> TextSlice:
    if (wanted.part == "content") != (wanted.call_id is None):
        reason = "is needed for input and output" if wanted.call_id is None else "has no content"
        raise Invalid.field("call_id", reason)
    row = await message_queries.find_text(tx, principal, conversation_id, message_id, wanted)
    if row is None:
        await conversations.require(tx, principal, conversation_id)
        raise MessageNotFound("This conversation has no such message, or no such call of a tool")
    end, total = wanted.offset + len(row["text"]), row["total_chars"]
    return TextSlice(
        row["text"], wanted.offset, total, end if row["text"] and end < total else None
    )
