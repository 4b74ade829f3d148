"""Sends what one channel did not deliver through the next active channel of the same type."""

from collections import defaultdict
from datetime import datetime

from app.domain.notifications import channel_queries, delivery_queries, outgoing, sending
from app.domain.notifications.outgoing import Outgoing
from app.domain.notifications.sending import SendRequest
from app.kit.crypto import Keyring
from db.fast import Row
from db.session import Tx


async def find_replacements(
    keyring: Keyring,
    tx: Tx,
    requests: list[SendRequest],
    due: dict[str, datetime] | None = None,
) -> dict[str, list[Outgoing]]:
    """Returns the deliveries that replace others, by the id of the replaced one: through the oldest
    channel that was not tried yet. `due` has the times of those that are not due at once.
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
                run_at = (due or {}).get(request.id)
                replacements[request.id] = _replace(keyring, request, channel, run_at)
                break
    return replacements


def _replace(
    keyring: Keyring, request: SendRequest, channel: Row, run_at: datetime | None
) -> list[Outgoing]:
    """A person keeps their address; a post goes to the place that the other channel leads to."""
    if request.channel_type in {"email", "sms"} and request.recipient:
        recipients = [request.recipient]
    else:
        recipients = outgoing.list_recipients(keyring, channel) or [""]
    return [
        Outgoing(channel["id"], recipient, run_at, request.first_id) for recipient in recipients
    ]


async def add(tx: Tx, request: SendRequest, replacements: list[Outgoing]) -> None:
    """Adds deliveries of the message that a request belongs to."""
    message = {
        "id": request.message_id,
        "tenant_id": request.tenant_id,
        "occasion": request.occasion,
        "correlation_id": request.correlation_id,
    }
    await outgoing.add_deliveries(tx, message, replacements)


async def move_pending(keyring: Keyring, tx: Tx, tenant_id: str, channel_id: str) -> None:
    """Adds replacements of all pending deliveries of a channel that is being deleted."""
    due = await delivery_queries.list_pending(tx, tenant_id, channel_id)
    requests = await sending.load(tx, list(due))
    replacements = await find_replacements(keyring, tx, list(requests.values()), due)
    # One statement for each message, which may have thousands of recipients.
    by_message: defaultdict[str, list[Outgoing]] = defaultdict(list)
    samples: dict[str, SendRequest] = {}
    for delivery_id, items in replacements.items():
        request = requests[delivery_id]
        samples[request.message_id] = request
        by_message[request.message_id] += items
    for message_id, items in by_message.items():
        await add(tx, samples[message_id], items)
