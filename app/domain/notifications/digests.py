"""Sends what was collected for one user as one message."""

from typing import Final

from app.domain.accounts import service as accounts
from app.domain.mail import service as mail
from app.domain.notifications import dispatching, message_queries, messages
from app.domain.notifications.dispatching import Planned
from app.domain.notifications.messages import NewMessage
from app.domain.notifications.recipients import Recipients
from app.domain.notifications.types import TYPES
from app.services import Services
from db.fast import Row
from db.session import Tx

MAX_ITEMS: Final = 100
_MAX_LINE_CHARS = 300


async def send(services: Services, tx: Tx, tenant_id: str, digest_id: str) -> None:
    """In the transaction of the caller, which also marks the digest as sent."""
    digest = await message_queries.lock_digest(tx, tenant_id, digest_id)
    if digest is None:
        return
    await message_queries.mark_digest_sent(tx, tenant_id, digest_id)
    items = await message_queries.list_digest_items(tx, tenant_id, digest_id, MAX_ITEMS)
    user_id = digest["user_id"]
    contacts = await accounts.list_contacts(tx, tenant_id, user_ids=[user_id], limit=1)
    if not items or not contacts:
        # The messages or the user were deleted, or the user is not active any more.
        return
    title = _build_title(digest["type"], items[0]["total"])
    new = NewMessage(
        type=digest["type"],
        title=title,
        message=_build_text(items),
        recipients=Recipients(user_ids=[user_id]),
        data={"digest_id": digest_id, "count": items[0]["total"]},
        source=digest_id,
    )
    message_id = await messages.accept(tx, tenant_id, new, is_dispatched=False)
    message = await message_queries.find(tx, tenant_id, message_id or "")
    if message is None:
        return
    content = mail.render("digest", title=title, items=items, url=None)
    planned: Planned = {digest["channel_type"]: [(contacts[0]["email"], None)]}
    await dispatching.send_to_users(services, tx, message, planned, content)


def _build_title(type_name: str, count: int) -> str:
    description = TYPES[type_name].description
    return f"{count} notifications: {description}" if count != 1 else description


def _build_text(items: list[Row]) -> str:
    """One paragraph for each item, for channels without a layout."""
    paragraphs = [f"{item['title']}: {item['message'][:_MAX_LINE_CHARS]}" for item in items]
    total = items[0]["total"]
    if total > len(items):
        paragraphs.append(f"… and {total - len(items)} more")
    return "\n\n".join(paragraphs)
