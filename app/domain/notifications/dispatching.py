"""Turns the recipients of a message into rows of the notification center and deliveries.

Users get what their preferences say; a channel gets the message for its own recipients. A second
run of the same dispatch adds nothing.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from app.domain.accounts import service as accounts
from app.domain.mail import service as mail
from app.domain.notifications import channel_queries, message_queries, preferences
from app.domain.notifications.channels import open_config
from app.domain.notifications.errors import UnusableConfig
from app.domain.notifications.preferences import Timing
from app.domain.notifications.providers.registry import PROVIDERS
from app.domain.notifications.recipients import Recipients
from app.domain.notifications.work_kinds import SEND
from app.kit import clock, logs
from app.kit.crypto import Keyring
from app.kit.ids import new_id
from app.services import Services
from db.fast import Row
from db.session import Tx

log = logs.get("notifications")

BATCH: Final = 500
# The types of channels that a user's preferences switch.
_OUTGOING: Final = ("email", "team_chat")


# Addresses of users and when each of them gets the message, by type of channel.
Planned = dict[str, list[tuple[str, datetime | None]]]


class Outgoing(NamedTuple):
    """A delivery to add. `first_id` names the delivery that it replaces, if any."""

    channel_id: str
    recipient: str
    run_at: datetime | None = None
    first_id: str | None = None


class Batch(NamedTuple):
    """The users who got the message in their center, and the last user of the batch; None when
    there are no more.
    """

    notified: list[str]
    last: str | None


async def dispatch_batch(
    services: Services, tx: Tx, tenant_id: str, message: Row, after: str
) -> Batch:
    recipients = msgspec.json.decode(message["recipients"], type=Recipients)
    if recipients.channel_id is not None:
        return await _dispatch_to_channel(
            services, tx, tenant_id, message, recipients.channel_id, after
        )
    contacts = await _list_contacts(tx, tenant_id, recipients, after)
    return _build_batch(await _dispatch_to_users(services, tx, message, contacts), contacts)


def _build_batch(notified: list[str], contacts: list[Row]) -> Batch:
    return Batch(notified, contacts[-1]["id"] if len(contacts) == BATCH else None)


async def _dispatch_to_channel(
    services: Services, tx: Tx, tenant_id: str, message: Row, channel_id: str, after: str
) -> Batch:
    """To the recipients of its config. Without any, or with an unusable config, one delivery fails
    and says why.
    """
    channel = await channel_queries.find_row(tx, channel_id)
    if channel is None:
        log.warning("message to a deleted channel", message_id=message["id"])
        return Batch([], None)
    recipients = list_recipients(services.keyring, channel)
    if channel["type"] == "in_app":
        # The users that the channel names, or else all users of the tenant.
        users = Recipients(user_ids=recipients or None)
        contacts = await _list_contacts(tx, tenant_id, users, after)
        user_ids = [row["id"] for row in contacts]
        return _build_batch(await _add_notifications(tx, message, user_ids), contacts)
    deliveries = [Outgoing(channel_id, recipient) for recipient in recipients or [""]]
    await add_deliveries(tx, message, deliveries)
    return Batch([], None)


async def _list_contacts(tx: Tx, tenant_id: str, recipients: Recipients, after: str) -> list[Row]:
    return await accounts.list_contacts(
        tx,
        tenant_id,
        user_ids=recipients.user_ids,
        role=recipients.role,
        after=after,
        limit=BATCH,
    )


async def _dispatch_to_users(
    services: Services, tx: Tx, message: Row, contacts: list[Row]
) -> list[str]:
    """Returns the users who got it in their center."""
    if not contacts:
        return []
    stored = await message_queries.list_preferences(
        tx, [row["id"] for row in contacts], [row["tenant_id"] for row in contacts]
    )
    now, type_name = clock.now(), message["type"]
    in_app: list[str] = []
    timings: dict[str, list[tuple[Row, Timing]]] = {name: [] for name in _OUTGOING}
    for contact in contacts:
        changed = msgspec.json.decode(stored.get(contact["id"], "{}"))
        preference = preferences.resolve(type_name, changed)
        if preference.in_app:
            in_app.append(contact["id"])
        timing = preferences.time_of(type_name, preference, ZoneInfo(contact["timezone"]), now)
        if preference.email and not message["is_mailed"]:
            timings["email"].append((contact, timing))
        if preference.team_chat:
            timings["team_chat"].append((contact, timing))
    notified = await _add_notifications(tx, message, in_app)
    for channel_type, planned in timings.items():
        await _add_to_digests(tx, message, channel_type, planned)
    await _send(services, tx, message, timings)
    return notified


async def _add_notifications(tx: Tx, message: Row, user_ids: list[str]) -> list[str]:
    ids = (message["tenant_id"], message["id"], message["type"])
    return await add_to_center(tx, *ids, user_ids)


async def add_to_center(
    tx: Tx, tenant_id: str, message_id: str, type_name: str, user_ids: list[str]
) -> list[str]:
    """Returns the users who did not have the message yet."""
    if not user_ids:
        return []
    ids = [new_id("ntf") for _ in user_ids]
    values = (message_id, type_name, ids, user_ids)
    return await message_queries.add_notifications(tx, tenant_id, *values)


async def _add_to_digests(
    tx: Tx, message: Row, channel_type: str, planned: list[tuple[Row, Timing]]
) -> None:
    held = [(contact["id"], timing.at) for contact, timing in planned if timing.is_digest]
    if held:
        await message_queries.add_to_digests(
            tx,
            message["tenant_id"],
            message["id"],
            message["type"],
            [new_id("ntg") for _ in held],
            [user_id for user_id, _ in held],
            [channel_type for _ in held],
            [due_at for _, due_at in held],
            message["correlation_id"],
            _event_of(message),
        )


async def _send(
    services: Services, tx: Tx, message: Row, timings: dict[str, list[tuple[Row, Timing]]]
) -> None:
    """Sends what is not held back for a digest."""
    planned: Planned = {
        name: [(contact["email"], timing.at) for contact, timing in users if not timing.is_digest]
        for name, users in timings.items()
    }
    if any(planned.values()):
        content = mail.render(
            "notification", title=message["title"], message=message["message"], url=None
        )
        await send_to_users(services, tx, message, planned, content)


async def send_to_users(
    services: Services,
    tx: Tx,
    message: Row,
    planned: Planned,
    content: mail.MailContent,
) -> None:
    """Adds the deliveries of a message to users: to their addresses through the first mail channel,
    or through the instance's own mail server when there is none; and one post to the first team
    chat.
    """
    tenant_id, deliveries = message["tenant_id"], []
    types = [name for name, users in planned.items() if users]
    first: dict[str, Row] = {}
    for channel in await channel_queries.list_active(tx, tenant_id, types):
        first.setdefault(channel["type"], channel)
    if "email" in first:
        deliveries += [
            Outgoing(first["email"]["id"], address, run_at) for address, run_at in planned["email"]
        ]
    elif planned.get("email"):
        for run_at in {time for _, time in planned["email"]}:
            addresses = [address for address, time in planned["email"] if time == run_at]
            await mail.queue_many(
                tx,
                services.keyring,
                tenant_id=tenant_id,
                mails=[(address, content) for address in addresses],
                cause_event_id=_event_of(message),
                run_at=run_at,
            )
    if "team_chat" in first:
        times = [run_at for _, run_at in planned["team_chat"]]
        # As early as the first of the users wants it.
        run_at = None if None in times else min(time for time in times if time is not None)
        recipients = list_recipients(services.keyring, first["team_chat"])
        deliveries += [
            Outgoing(first["team_chat"]["id"], recipient, run_at) for recipient in recipients
        ]
    await add_deliveries(tx, message, deliveries)


def list_recipients(keyring: Keyring, channel: Row) -> list[str]:
    """Returns the recipients of a channel's config. Where it is unusable, one whose delivery fails
    and says why.
    """
    try:
        return PROVIDERS[channel["provider"]].recipients(_open_config(keyring, channel))
    except UnusableConfig:
        return [""]


async def add_deliveries(
    tx: Tx, message: Row, deliveries: list[Outgoing], *, is_test: bool = False
) -> list[Row]:
    """Returns the work of each delivery that did not exist yet; wakes workers for each channel."""
    if not deliveries:
        return []
    ids = [new_id("ntd") for _ in deliveries]
    added = await message_queries.add_deliveries(
        tx,
        message["tenant_id"],
        message["id"],
        message["occasion"],
        message["correlation_id"],
        _event_of(message),
        ids,
        [item.channel_id for item in deliveries],
        [item.recipient for item in deliveries],
        [item.first_id or id_ for item, id_ in zip(deliveries, ids, strict=True)],
        [new_id("wrk") for _ in deliveries],
        [item.run_at for item in deliveries],
        [new_id("ntl") for _ in deliveries],
        is_test,
    )
    first_of_lane: dict[str, Any] = {}
    for row in added:
        first_of_lane.setdefault(row["lane"], row["id"])
    for work_id in first_of_lane.values():
        tx.wake(SEND.name, work_id)
    return added


def _event_of(message: Row) -> str | None:
    occasion: str = message["occasion"]
    return occasion if occasion.startswith("evt_") else None


def _open_config(keyring: Keyring, channel: Row) -> Any:
    provider = PROVIDERS[channel["provider"]]
    return open_config(keyring, channel["tenant_id"], channel["id"], provider, channel["config"])
