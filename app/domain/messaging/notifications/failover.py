"""Sends what one channel did not deliver through the next active channel of the same type."""

from functools import partial

from app.crypto.keyring import Keyring
from app.domain.messaging.outbox.api import Fallback
from app.domain.platform.mail import api as mail
from app.kit import logs
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import channel_queries, delivery_queries, mail_contents, outgoing, sending
from .outgoing import Outgoing
from .sending import SendRequest

log = logs.get("notifications")


async def find_fallbacks(
    services: Services, tx: Tx, failures: list[tuple[SendRequest, str | None]]
) -> dict[str, Fallback]:
    """Returns the other ways that there are, by delivery id. A failure is a request with the code
    of its error.
    """
    requests = [request for request, code in failures if may_be_replaced(request, code)]
    replacements = await _find_replacements(services.keyring, tx, requests)
    fallbacks: dict[str, Fallback] = {}
    for request, code in failures:
        id_ = request.delivery_id
        if id_ in replacements:
            fallbacks[id_] = partial(_add, tx, request, replacements[id_])
        elif _goes_by_own_server(request, code):
            fallbacks[id_] = partial(_send_by_own_server, tx, services, request)
    return fallbacks


def may_be_replaced(request: SendRequest, code: str | None) -> bool:
    """True when another channel reaches the same people. A message that names its channel goes to
    no other place, and not at all when that channel is not active.
    """
    if code == "recipient_inactive" or request.channel_type == "webhook":
        return False
    if not request.is_named:
        return True
    has_address = request.channel_type in {"email", "sms"} and request.recipient != ""
    return has_address and code != "channel_inactive"


async def _find_replacements(
    keyring: Keyring, tx: Tx, requests: list[SendRequest]
) -> dict[str, Outgoing]:
    """Returns the deliveries that replace others, by the id of the replaced one: through the oldest
    channel that was not tried yet.
    """
    if not requests:
        return {}
    excluded = await _find_excluded(tx, requests)
    channels: dict[tuple[str, str], list[Row]] = {}
    replacements = {}
    for request in requests:
        key = (request.tenant_id, request.channel_type)
        if key not in channels:
            channels[key] = await channel_queries.list_active(tx, key[0], [key[1]])
        for channel in channels[key]:
            replacement = _replace(keyring, request, channel)
            if excluded.isdisjoint(_keys(request, replacement.channel_id, replacement.recipient)):
                replacements[request.delivery_id] = replacement
                break
    return replacements


def _keys(request: SendRequest, channel_id: str, recipient: str) -> set[tuple[str, ...]]:
    return {(request.first_id, channel_id), (request.cause_id, channel_id, recipient)}


async def _find_excluded(tx: Tx, requests: list[SendRequest]) -> set[tuple[str, ...]]:
    """Returns the channels that the first delivery has tried, and those that failed to reach the
    recipient with another message about the same event: such a delivery is not added again.
    """
    connection, excluded = await tx.raw(), set()
    for request in requests:
        excluded |= _keys(request, request.endpoint_id, request.recipient)
    first_ids = list({request.first_id for request in requests})
    for row in await delivery_queries.list_used_channels(connection, first_ids):
        excluded.add((row["first_id"], row["channel_id"]))
    cause_ids = list({request.cause_id for request in requests})
    recipients = list({request.recipient for request in requests})
    for row in await delivery_queries.list_failed_channels(connection, cause_ids, recipients):
        excluded.add((row["cause_id"], row["channel_id"], row["recipient"]))
    return excluded


def _replace(keyring: Keyring, request: SendRequest, channel: Row) -> Outgoing:
    """A person keeps their address; a post goes to the place that the other channel leads to."""
    recipient = request.recipient
    if request.channel_type == "team_chat":
        recipient = next(iter(outgoing.list_recipients(keyring, channel)), "")
    return Outgoing(channel["id"], recipient, user_id=request.user_id, first_id=request.first_id)


async def _add(tx: Tx, request: SendRequest, replacement: Outgoing) -> bool:
    """Returns False when the recipient gets another message about the same event through that
    channel.
    """
    message = {
        "id": request.message_id,
        "tenant_id": request.tenant_id,
        "cause_id": request.cause_id,
        "correlation_id": request.correlation_id,
    }
    is_added = bool(await outgoing.add_deliveries(tx, message, [replacement]))
    if is_added:
        ids = {"channel_id": request.endpoint_id, "next_channel_id": replacement.channel_id}
        log.info("notification goes through another channel", **ids)
    return is_added


def _goes_by_own_server(request: SendRequest, code: str | None) -> bool:
    """True for a mail to a user whose channel is no longer active: without a mail channel, mails go
    through the instance's own mail server.
    """
    return code == "channel_inactive" and request.channel_type == "email" and not request.is_named


async def _send_by_own_server(tx: Tx, services: Services, request: SendRequest) -> bool:
    message, user_id = sending.mailed_message(request), request.user_id or ""
    contents = await mail_contents.write(services, tx, message, [user_id])
    await mail.queue(
        tx,
        services.keyring,
        tenant_id=request.tenant_id,
        recipient=request.recipient,
        content=contents[user_id],
        cause_event_id=outgoing.event_of({"cause_id": request.cause_id}),
    )
    return True
