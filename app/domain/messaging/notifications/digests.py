"""Sends what was collected for one user, or for the team chat, as one message."""

from typing import Final

from app.domain.identity.accounts import api as accounts
from app.domain.platform.mail import api as mail
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import message_queries, messages, outgoing, preferences
from .messages import MAX_MESSAGE_CHARS, NewMessage
from .outgoing import Addressee
from .types import TYPES, Recipients

MAX_ITEMS: Final = 100
_MAX_LINE_CHARS = 300
# Room for the last paragraph, which says how many items are left out.
_MAX_LAST_CHARS = 50
_GAP = "\n\n"


async def send(services: Services, tx: Tx, tenant_id: str, digest_id: str) -> None:
    """In the transaction of the caller, which also marks the digest as sent."""
    digest = await message_queries.find_digest(tx, tenant_id, digest_id)
    if digest is None:
        return
    # The user is locked before the digest, as by the deletion of the user.
    addressees = await _find_addressees(tx, tenant_id, digest)
    digest = await message_queries.find_digest(tx, tenant_id, digest_id, for_update=True)
    if digest is None:
        return
    await message_queries.mark_digest_sent(tx, tenant_id, digest_id)
    items = await message_queries.list_digest_items(tx, tenant_id, digest_id, MAX_ITEMS)
    is_post = digest["channel_type"] == "team_chat"
    if not items or not (is_post or addressees):
        # The messages were deleted, or nobody wants them.
        return
    message = await _accept(tx, tenant_id, digest, items)
    if is_post:
        await outgoing.post_to_team_chat(services, tx, message, None)
        return
    more = items[0]["total"] - len(items)
    content = mail.render("digest", title=message["title"], items=items, more=more, url=None)

    async def write(user_ids: list[str]) -> dict[str, mail.MailContent]:
        return dict.fromkeys(user_ids, content)

    await outgoing.send_mails(services, tx, message, addressees, write)


async def _find_addressees(tx: Tx, tenant_id: str, digest: Row) -> list[Addressee]:
    """Returns the user of a digest, unless they are no longer active or want no more mails."""
    if digest["user_id"] is None:
        return []
    contacts = await accounts.list_contacts(
        tx, tenant_id, user_ids=[digest["user_id"]], limit=1, super_admins=True
    )
    stored = await message_queries.list_preferences(tx, contacts)
    return [
        Addressee(row["email"], None, row["id"])
        for row in contacts
        if preferences.resolve(digest["type"], stored[row["id"]]).email
    ]


async def _accept(tx: Tx, tenant_id: str, digest: Row, items: list[Row]) -> Row:
    """Returns the message that has the items as its text."""
    user_id, total = digest["user_id"], items[0]["total"]
    new = NewMessage(
        type=digest["type"],
        title=_build_title(digest["type"], total),
        message=_build_text(items),
        recipients=Recipients(user_ids=[user_id] if user_id else None),
        data={"digest_id": digest["id"], "count": total},
        source=digest["id"],
    )
    return await messages.accept_undispatched(tx, tenant_id, new)


def _build_title(type_name: str, count: int) -> str:
    description = TYPES[type_name].description
    return f"{count} notifications: {description}" if count != 1 else description


def _build_text(items: list[Row]) -> str:
    """One paragraph for each item that fits into a message, for channels without a layout."""
    paragraphs: list[str] = []
    chars_left = MAX_MESSAGE_CHARS - _MAX_LAST_CHARS
    for item in items:
        paragraph = f"{item['title']}: {item['message'][:_MAX_LINE_CHARS]}"
        chars_left -= len(paragraph) + len(_GAP)
        if chars_left < 0:
            break
        paragraphs.append(paragraph)
    more = items[0]["total"] - len(paragraphs)
    return _GAP.join([*paragraphs, f"… and {more} more"] if more else paragraphs)
