"""Dispatches a message to its recipients: to users as their preferences say, or to a channel."""

from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from app.domain.accounts import service as accounts
from app.domain.mail import service as mail
from app.domain.notifications import channel_queries, message_queries, outgoing, preferences
from app.domain.notifications.outgoing import Addressee, Outgoing
from app.domain.notifications.preferences import Timing
from app.domain.notifications.recipients import Recipients
from app.kit import clock, logs
from app.kit.ids import new_id
from app.services import Services
from db.fast import Row
from db.session import Tx

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
    is_in_center_only = False
    if recipients.channel_id is not None:
        channel = await channel_queries.find_row(tx, recipients.channel_id)
        if channel is None:
            log.warning("message to a deleted channel", message_id=message_id)
            return _NOTHING
        if channel["type"] != "in_app":
            await _dispatch_to_channel(services, tx, message, channel)
            return _NOTHING
        # The users that the channel names, or else all users of the tenant.
        user_ids = outgoing.list_recipients(services.keyring, channel)
        recipients, is_in_center_only = Recipients(user_ids=user_ids or None), True
    contacts = await _list_contacts(tx, tenant_id, recipients, message["dispatched_to"])
    if not contacts:
        return _NOTHING
    await message_queries.set_dispatched_to(tx, tenant_id, message_id, contacts[-1]["id"])
    if is_in_center_only:
        plan = _Plan(in_app=[row["id"] for row in contacts])
    else:
        plan = await _plan(tx, message, contacts)
    notified = await _dispatch_to_users(services, tx, message, plan)
    return Batch(notified, len(contacts) == BATCH)


async def _dispatch_to_channel(services: Services, tx: Tx, message: Row, channel: Row) -> None:
    """To the recipients of its config. Without any, or with an unusable config, one delivery fails
    and says why.
    """
    recipients = outgoing.list_recipients(services.keyring, channel) or [""]
    deliveries = [Outgoing(channel["id"], recipient) for recipient in recipients]
    await outgoing.add_deliveries(tx, message, deliveries)


async def _list_contacts(tx: Tx, tenant_id: str, recipients: Recipients, after: str) -> list[Row]:
    return await accounts.list_contacts(
        tx,
        tenant_id,
        user_ids=recipients.user_ids,
        role=recipients.role,
        after=after,
        limit=BATCH,
    )


async def _plan(tx: Tx, message: Row, contacts: list[Row]) -> _Plan:
    stored = await message_queries.list_preferences(
        tx, [row["id"] for row in contacts], [row["tenant_id"] for row in contacts]
    )
    now, type_name, plan = clock.now(), message["type"], _Plan()
    for contact in contacts:
        changed = msgspec.json.decode(stored.get(contact["id"], "{}"))
        preference = preferences.resolve(type_name, changed)
        timing = preferences.time_of(type_name, preference, ZoneInfo(contact["timezone"]), now)
        if preference.in_app:
            plan.in_app.append(contact["id"])
        if preference.email and not message["is_mailed"]:
            plan.mails.append((contact, timing))
        if preference.team_chat:
            plan.posts.append(timing)
    return plan


async def _dispatch_to_users(services: Services, tx: Tx, message: Row, plan: _Plan) -> list[str]:
    """Returns the users who got it in their center."""
    ids = (message["tenant_id"], message["id"], message["type"])
    notified = await outgoing.add_to_center(tx, *ids, plan.in_app)
    held = [(row["id"], timing) for row, timing in plan.mails if timing.is_digest]
    await _add_to_digests(tx, message, "email", held)
    mails = [
        Addressee(row["email"], timing.at) for row, timing in plan.mails if not timing.is_digest
    ]
    if mails:
        content = mail.render(
            "notification", title=message["title"], message=message["message"], url=None
        )
        await outgoing.send_mails(services, tx, message, mails, content)
    if plan.posts:
        # All of them share the chat: one post, as early as one of them wants it.
        first = min(plan.posts, key=lambda timing: timing.at or message["created_at"])
        if first.is_digest:
            await _add_to_digests(tx, message, "team_chat", [(None, first)])
        else:
            await outgoing.post_to_team_chat(services, tx, message, first.at)
    return notified


async def _add_to_digests(
    tx: Tx, message: Row, channel_type: str, held: list[tuple[str | None, Timing]]
) -> None:
    if held:
        await message_queries.add_to_digests(
            tx,
            message["tenant_id"],
            message["id"],
            message["type"],
            [new_id("ntg") for _ in held],
            [user_id for user_id, _ in held],
            [channel_type for _ in held],
            [timing.at for _, timing in held],
            message["correlation_id"],
            outgoing.event_of(message),
        )
