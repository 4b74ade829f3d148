"""Sends what one channel did not deliver through the next active channel of the same type."""

from app.domain.mail import service as mail
from app.domain.notifications import channel_queries, delivery_queries, outgoing
from app.domain.notifications.outgoing import Outgoing
from app.domain.notifications.sending import ErrorCode, SendRequest
from app.kit.crypto import Keyring
from db.fast import Row
from db.session import Tx


def may_be_replaced(request: SendRequest, code: ErrorCode | None) -> bool:
    """True when another channel reaches the same people. A message that names its channel goes to
    no other place, and not at all when that channel is not active.
    """
    if code == "recipient_inactive" or request.channel_type == "webhook":
        return False
    if not request.is_named:
        return True
    has_address = request.channel_type in {"email", "sms"} and request.recipient != ""
    return has_address and code != "channel_inactive"


async def find_replacements(
    keyring: Keyring, tx: Tx, requests: list[SendRequest]
) -> dict[str, Outgoing]:
    """Returns the deliveries that replace others, by the id of the replaced one: through the oldest
    channel that was not tried yet.
    """
    if not requests:
        return {}
    tried = {(request.first_id, request.channel_id) for request in requests}
    first_ids = list({request.first_id for request in requests})
    for row in await delivery_queries.list_tried(await tx.raw(), first_ids):
        tried.add((row["first_id"], row["channel_id"]))
    channels: dict[tuple[str, str], list[Row]] = {}
    replacements = {}
    for request in requests:
        key = (request.tenant_id, request.channel_type)
        if key not in channels:
            channels[key] = await channel_queries.list_active(tx, key[0], [key[1]])
        for channel in channels[key]:
            if (request.first_id, channel["id"]) not in tried:
                replacements[request.id] = _replace(keyring, request, channel)
                break
    return replacements


def _replace(keyring: Keyring, request: SendRequest, channel: Row) -> Outgoing:
    """A person keeps their address; a post goes to the place that the other channel leads to."""
    recipient = request.recipient
    if request.channel_type == "team_chat":
        recipient = next(iter(outgoing.list_recipients(keyring, channel)), "")
    return Outgoing(channel["id"], recipient, user_id=request.user_id, first_id=request.first_id)


async def add(tx: Tx, request: SendRequest, replacement: Outgoing) -> bool:
    """Returns False when the recipient gets another message about the same event through that
    channel.
    """
    message = {
        "id": request.message_id,
        "tenant_id": request.tenant_id,
        "occasion": request.occasion,
        "correlation_id": request.correlation_id,
    }
    return bool(await outgoing.add_deliveries(tx, message, [replacement]))


def goes_by_own_server(request: SendRequest, code: ErrorCode | None) -> bool:
    """True for a mail to a user whose channel is not active any more: without a mail channel, mails
    go through the instance's own mail server.
    """
    return code == "channel_inactive" and request.channel_type == "email" and not request.is_named


async def send_by_own_server(tx: Tx, keyring: Keyring, request: SendRequest) -> None:
    content = mail.render("notification", title=request.title, message=request.message, url=None)
    await mail.queue(
        tx,
        keyring,
        tenant_id=request.tenant_id,
        recipient=request.recipient,
        content=content,
        cause_event_id=outgoing.event_of({"occasion": request.occasion}),
    )
