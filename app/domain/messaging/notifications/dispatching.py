"""Dispatches a message to its recipients: to users as their preferences say, or to a channel."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from app.domain.identity.accounts import api as accounts
from app.kit import clock, logs
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import channel_queries, mail_contents, message_queries, outgoing, preferences
from .mail_contents import MailedMessage
from .messages import RULE_SOURCE
from .outgoing import Addressee, Outgoing
from .preferences import Timing
from .types import TYPES, Recipients

log = logs.get("notifications")

BATCH: Final = 500


class Batch(NamedTuple):
    """`notified` are the users who got the message in their center."""

    notified: list[str]
    has_more: bool


class _Plan(msgspec.Struct):
    """Which way a message goes to the users of one batch."""

    in_app: list[str] = []
    mails: list[tuple[Row, Timing]] = []
    posts: list[Timing] = []


_NOTHING = Batch([], has_more=False)


async def dispatch_batch(services: Services, tx: Tx, tenant_id: str, message_id: str) -> Batch:
    """Dispatches the message to the next users, and records in the same transaction who the last of
    them is.
    """
    message = await message_queries.find(tx, tenant_id, message_id)
    if message is None:
        return _NOTHING
    recipients = msgspec.json.decode(message["recipients"], type=Recipients)
    if recipients.channel_id is None:
        return await _dispatch_to_users(services, tx, message, recipients)
    channel = await channel_queries.find_row(tx, recipients.channel_id)
    if channel is None or (channel["type"] == "in_app" and not channel["active"]):
        log.warning("message to a channel that is deleted or inactive", message_id=message_id)
        return _NOTHING
    if channel["type"] != "in_app":
        await _dispatch_to_channel(services, tx, message, channel)
        return _NOTHING
    # The users that the channel names, or else all users of the tenant.
    user_ids = outgoing.list_recipients(services.keyring, channel) or None
    return await _dispatch_to_center(tx, message, Recipients(user_ids=user_ids))


async def _dispatch_to_channel(services: Services, tx: Tx, message: Row, channel: Row) -> None:
    """To the recipients of its config. Without any, or with an unusable config, one delivery fails
    and says why.
    """
    recipients = outgoing.list_recipients(services.keyring, channel) or [""]
    deliveries = [Outgoing(channel["id"], recipient) for recipient in recipients]
    await outgoing.add_deliveries(tx, message, deliveries)


async def _dispatch_to_center(tx: Tx, message: Row, recipients: Recipients) -> Batch:
    contacts = await _list_contacts(tx, message, recipients)
    notified = await outgoing.add_to_center(tx, message, [row["id"] for row in contacts])
    await _record_progress(tx, message, contacts, None)
    return Batch(notified, len(contacts) == BATCH)


async def _dispatch_to_users(
    services: Services, tx: Tx, message: Row, recipients: Recipients
) -> Batch:
    contacts = await _list_contacts(tx, message, recipients)
    plan = await _plan(tx, message, contacts) if contacts else _Plan()
    notified = await outgoing.add_to_center(tx, message, plan.in_app)
    await _send_mails(services, tx, message, plan.mails)
    # All users share the chat: one post, as early as one of them wants it.
    if message["team_chat"] is not None:
        plan.posts.append(msgspec.json.decode(message["team_chat"], type=Timing))
    first = min(plan.posts, key=lambda timing: timing.at or message["created_at"], default=None)
    await _record_progress(tx, message, contacts, first)
    has_more = len(contacts) == BATCH
    if first is not None and not has_more:
        await _post(services, tx, message, first)
    return Batch(notified, has_more)


async def _list_contacts(tx: Tx, message: Row, recipients: Recipients) -> list[Row]:
    return await accounts.list_contacts(
        tx,
        message["tenant_id"],
        user_ids=recipients.user_ids,
        role=recipients.role,
        after=message["dispatched_to"],
        limit=BATCH,
        # The owner of a thing may be one; nobody else may write to them.
        super_admins=message["source"] == RULE_SOURCE,
    )


async def _record_progress(
    tx: Tx, message: Row, contacts: list[Row], team_chat: Timing | None
) -> None:
    if contacts:
        encoded = as_json(team_chat) if team_chat is not None else None
        ids = (message["tenant_id"], message["id"], contacts[-1]["id"])
        await message_queries.set_dispatched_to(tx, *ids, encoded)


async def _plan(tx: Tx, message: Row, contacts: list[Row]) -> _Plan:
    stored = await message_queries.list_preferences(tx, contacts)
    now, type_name, plan = clock.now(), message["type"], _Plan()
    for contact in contacts:
        preference = preferences.resolve(type_name, stored[contact["id"]])
        zone = preferences.find_zone(contact["timezone"])
        timing = preferences.time_of(type_name, preference, zone, now)
        if preference.in_app:
            plan.in_app.append(contact["id"])
        if preference.email and not message["is_mailed"] and _has_mailbox(type_name, contact):
            plan.mails.append((contact, timing))
        if preference.team_chat:
            plan.posts.append(timing)
    return plan


def _has_mailbox(type_name: str, contact: Row) -> bool:
    return contact["email_verified"] or not TYPES[type_name].is_for_verified


async def _send_mails(
    services: Services, tx: Tx, message: Row, mails: list[tuple[Row, Timing]]
) -> None:
    """Adds each mail to the user's digest, or sends it at its time."""
    collected = [(row["id"], timing) for row, timing in mails if timing.is_digest]
    await _add_to_digests(tx, message, "email", collected)
    addressees = [
        Addressee(row["email"], timing.at, row["id"])
        for row, timing in mails
        if not timing.is_digest
    ]
    names = ("tenant_id", "source", "title", "message", "data")
    mailed = MailedMessage(**{name: message[name] for name in names})
    write = partial(mail_contents.write, services, tx, mailed)
    is_personal = mailed.find_writer(services) is not None
    await outgoing.send_mails(services, tx, message, addressees, write, is_personal=is_personal)


async def _post(services: Services, tx: Tx, message: Row, timing: Timing) -> None:
    if timing.is_digest:
        await _add_to_digests(tx, message, "team_chat", [(None, timing)])
    else:
        await outgoing.post_to_team_chat(services, tx, message, timing.at)


async def _add_to_digests(
    tx: Tx, message: Row, channel_type: str, collected: Sequence[tuple[str | None, Timing]]
) -> None:
    if collected:
        await message_queries.add_to_digests(
            tx,
            message["tenant_id"],
            message["id"],
            message["type"],
            [new_id("ntg") for _ in collected],
            [user_id for user_id, _ in collected],
            [channel_type for _ in collected],
            [timing.at for _, timing in collected],
            message["correlation_id"],
            outgoing.event_of(message),
        )
