"""Adds what a message causes: rows of the notification center, and deliveries through channels."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from app.crypto.keyring import Keyring
from app.domain.platform.mail import api as mail
from app.kit.ids import new_id
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import channel_queries, message_queries
from .errors import UnusableConfig
from .message_queries import SEND
from .providers.registry import PROVIDERS
from .sealed_configs import open_config

# Returns the content of the mail to each user, by the ids of the users.
WriteContents = Callable[[list[str]], Awaitable[Mapping[str, mail.MailContent]]]


class Outgoing(NamedTuple):
    """A delivery to add. `first_id` names the delivery that it replaces, if any."""

    channel_id: str
    recipient: str
    run_at: datetime | None = None
    user_id: str | None = None
    first_id: str | None = None


class Addressee(NamedTuple):
    """A user's address, and when the user gets the message: at once without a time."""

    address: str
    run_at: datetime | None
    user_id: str


async def add_to_center(tx: Tx, message: Row, user_ids: list[str]) -> list[str]:
    """Returns the users who did not have the message yet."""
    if not user_ids:
        return []
    values = (message["id"], message["type"], [new_id("ntf") for _ in user_ids], user_ids)
    return await message_queries.add_notifications(tx, message["tenant_id"], *values)


async def send_mails(
    services: Services,
    tx: Tx,
    message: Row,
    addressees: list[Addressee],
    write: WriteContents,
    *,
    is_personal: bool = False,
) -> None:
    """Through the first active mail channel, or through the instance's own mail server when the
    tenant has none; only then the contents are written. Personal ones, with links that are for one
    user alone, pass no channel: whoever may change channels could read them.
    """
    if not addressees:
        return
    channel = None
    if not is_personal or not services.settings.smtp_url:
        channel = await _find_first(tx, message["tenant_id"], "email")
    if channel is not None:
        deliveries = [Outgoing(channel["id"], *addressee) for addressee in addressees]
        await add_deliveries(tx, message, deliveries)
        return
    contents = await write([addressee.user_id for addressee in addressees])
    for run_at in {addressee.run_at for addressee in addressees}:
        await mail.queue_many(
            tx,
            services.keyring,
            tenant_id=message["tenant_id"],
            mails=[
                (item.address, contents[item.user_id])
                for item in addressees
                if item.run_at == run_at
            ],
            cause_event_id=event_of(message),
            run_at=run_at,
        )


async def post_to_team_chat(
    services: Services, tx: Tx, message: Row, run_at: datetime | None
) -> None:
    """One post through the first active channel; nothing where the tenant has none."""
    channel = await _find_first(tx, message["tenant_id"], "team_chat")
    if channel is not None:
        recipients = list_recipients(services.keyring, channel)
        deliveries = [Outgoing(channel["id"], recipient, run_at) for recipient in recipients]
        await add_deliveries(tx, message, deliveries)


async def _find_first(tx: Tx, tenant_id: str, channel_type: str) -> Row | None:
    channels = await channel_queries.list_active(tx, tenant_id, [channel_type])
    return channels[0] if channels else None


def list_recipients(keyring: Keyring, channel: Row) -> list[str]:
    """Returns the recipients of a channel's config. Where it is unusable, one whose delivery fails
    and says why.
    """
    provider = PROVIDERS[channel["provider"]]
    ids = (channel["tenant_id"], channel["id"])
    try:
        config: Any = open_config(keyring, *ids, provider, channel["config"])
    except UnusableConfig:
        return [""]
    return provider.recipients(config)


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
        message["cause_id"],
        message["correlation_id"],
        event_of(message),
        ids,
        [item.channel_id for item in deliveries],
        [item.recipient for item in deliveries],
        [item.first_id or id_ for item, id_ in zip(deliveries, ids, strict=True)],
        [new_id("wrk") for _ in deliveries],
        [item.run_at for item in deliveries],
        [new_id("ntl") for _ in deliveries],
        is_test,
        [item.user_id for item in deliveries],
    )
    first_of_lane: dict[str, str] = {}
    for row in added:
        first_of_lane.setdefault(row["lane"], row["id"])
    for work_id in first_of_lane.values():
        tx.wake(SEND.name, work_id)
    return added


def event_of(message: Row) -> str | None:
    """Returns the event that caused the message, if one did."""
    cause_id: str = message["cause_id"]
    return cause_id if cause_id.startswith("evt_") else None
