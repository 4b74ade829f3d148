"""Tests of channels: sends one message for real, through a worker, and waits for its outcome."""

from typing import Any, Final

import msgspec

from app.domain.accounts import service as accounts
from app.domain.mail import service as mail
from app.domain.notifications import (
    channel_queries,
    channels,
    messages,
    outgoing,
    rate_limits,
)
from app.domain.notifications.channel_schemas import ChannelTest, LogEntryView
from app.domain.notifications.errors import (
    ChannelInactive,
    ChannelNotFound,
    ChannelRateLimited,
    DeliveryFailed,
    UnusableConfig,
)
from app.domain.notifications.feed import Feed
from app.domain.notifications.messages import NewMessage
from app.domain.notifications.outgoing import Outgoing
from app.domain.notifications.providers.registry import PROVIDERS
from app.domain.notifications.recipients import Recipients
from app.domain.notifications.schemas import TestNotification
from app.domain.notifications.sealed_configs import open_config
from app.domain.notifications.sending import TIMEOUT_SECONDS
from app.kit import work
from app.kit.errors import Invalid, ProviderError
from app.security.principal import Principal
from app.services import Services
from db.models import NotificationChannel
from db.session import Tx

# How long a test may wait for a worker, besides the timeout of its attempt.
_QUEUE_SECONDS: Final = 10.0
_NO_RECIPIENT = "The channel has no recipient: set `to` in its config"
_TITLE = "Test notification"


class _Test(msgspec.Struct, frozen=True):
    """A test that is on its way."""

    tenant_id: str
    delivery_id: str
    work_id: str
    recipient: str


async def run(services: Services, principal: Principal, channel_id: str) -> ChannelTest:
    """Sends to the first recipient of the channel, or to the caller's own address."""
    async with services.db.tx(principal.scope) as tx:
        channel = await channels.find(tx, channel_id)
        _check_active(channel)
        text = f"The notification channel {channel.name} works."
        if channel.type == "in_app":
            await _notify_caller(services, tx, channel.tenant_id, principal, text)
            return ChannelTest(True, "Added to your notifications", 0)  # noqa: FBT003  # a field
        recipient = await _find_recipient(services, tx, principal, channel)
        if recipient is None:
            return ChannelTest(False, _NO_RECIPIENT, None)  # noqa: FBT003  # a field
        await _count_send(services, channel)
        test = await _add(tx, channel, recipient, text)
    return _build_result(test, await _wait(services, test))


async def run_for_caller(
    services: Services, principal: Principal, data: TestNotification
) -> ChannelTest:
    """Sends to the caller's own account, through the channel that a notification would take."""
    if data.channel_type in {"sms", "webhook"}:
        raise Invalid.field(
            "channel_type", "your account has no such address; test the channel itself instead"
        )
    tenant_id = principal.home
    async with services.db.tx(tenant_id) as tx:
        if data.channel_type == "in_app":
            await _notify_caller(services, tx, tenant_id, principal, data.message)
            return ChannelTest(True, "Added to your notifications", 0)  # noqa: FBT003  # a field
        channel = await _find_first_active(tx, data.channel_type)
        if channel is None:
            return await _mail_caller(services, tx, principal, data.message)
        recipient = await _find_own_recipient(services, tx, principal, channel)
        await _count_send(services, channel)
        test = await _add(tx, channel, recipient, data.message)
    result = _build_result(test, entry := await _wait(services, test))
    if not result.success:
        is_refused = entry is not None and entry.error_code == "provider_error"
        raise (ProviderError if is_refused else DeliveryFailed)(result.message)
    return result


def _check_active(channel: NotificationChannel) -> None:
    if not channel.active:
        raise ChannelInactive("This channel is not active; set `active` to true first")


async def _find_first_active(tx: Tx, channel_type: str) -> NotificationChannel | None:
    """Returns None when mails go out through the instance's own mail server."""
    found = await channel_queries.list_all(tx, channel_type, active=None, limit=1000)
    active = [item for item in found if item.active]
    if active:
        return await channels.find(tx, active[0].id)
    if found:
        raise ChannelInactive(f"No channel of the type {channel_type} is active")
    if channel_type == "email":
        return None
    raise ChannelNotFound(f"There is no channel of the type {channel_type}; create one first")


async def _mail_caller(services: Services, tx: Tx, principal: Principal, text: str) -> ChannelTest:
    address = await accounts.find_email(tx, principal.tenant_id, principal.user_id) or ""
    content = mail.render("notification", title=_TITLE, message=text, url=None)
    await mail.queue(
        tx, services.keyring, tenant_id=principal.home, recipient=address, content=content
    )
    return ChannelTest(True, f"A mail to {address} is on its way", None)  # noqa: FBT003  # a field


async def _notify_caller(
    services: Services, tx: Tx, tenant_id: str, principal: Principal, text: str
) -> None:
    new = NewMessage(
        type="message",
        title=_TITLE,
        message=text,
        recipients=Recipients(user_ids=[principal.user_id]),
        data={"test": True},
        created_by=principal.user_id,
    )
    message = await messages.accept_undispatched(tx, tenant_id, new)
    user_ids = [principal.user_id]
    await outgoing.add_to_center(tx, tenant_id, message["id"], message["type"], user_ids)
    feed = services.get(Feed)
    tx.after_commit.append(lambda: feed.announce([principal.user_id]))


async def _find_recipient(
    services: Services, tx: Tx, principal: Principal, channel: NotificationChannel
) -> str | None:
    recipients = _list_recipients(services, channel)
    if recipients:
        return recipients[0]
    if channel.type == "email":
        return await accounts.find_email(tx, principal.tenant_id, principal.user_id)
    return None


async def _find_own_recipient(
    services: Services, tx: Tx, principal: Principal, channel: NotificationChannel
) -> str:
    if channel.type == "email":
        return await accounts.find_email(tx, principal.tenant_id, principal.user_id) or ""
    return next(iter(_list_recipients(services, channel)), "")


def _list_recipients(services: Services, channel: NotificationChannel) -> list[str]:
    provider = PROVIDERS[channel.provider]
    try:
        config: Any = open_config(
            services.keyring, channel.tenant_id, channel.id, provider, channel.config
        )
    except UnusableConfig:
        # The attempt fails and says why.
        return ["unknown"]
    return provider.recipients(config)


async def _count_send(services: Services, channel: NotificationChannel) -> None:
    limit = channel.rate_limit_per_minute or PROVIDERS[channel.provider].rate_per_minute
    wait = await rate_limits.count_send(services.redis, channel.id, limit)
    if wait is not None:
        raise ChannelRateLimited(
            f"This channel sends at most {limit} messages a minute; try again later",
            details={
                "limit": limit,
                "window": rate_limits.WINDOW_SECONDS,
                "retry_after": round(wait) + 1,
            },
            headers={"Retry-After": str(round(wait) + 1)},
        )


async def _add(tx: Tx, channel: NotificationChannel, recipient: str, text: str) -> _Test:
    new = NewMessage(
        type="message",
        title=_TITLE,
        message=text,
        recipients=Recipients(channel_id=channel.id),
        data={"test": True},
    )
    tenant_id = channel.tenant_id
    message = await messages.accept_undispatched(tx, tenant_id, new)
    deliveries = [Outgoing(channel.id, recipient)]
    (added,) = await outgoing.add_deliveries(tx, message, deliveries, is_test=True)
    return _Test(tenant_id, added["ref_id"], added["id"], recipient)


async def _wait(services: Services, test: _Test) -> LogEntryView | None:
    """Returns the finished attempt, or None when no worker made it in time."""
    seconds = TIMEOUT_SECONDS + _QUEUE_SECONDS
    await work.wait(services.db, services.doorbell, test.tenant_id, test.work_id, seconds)
    async with services.db.tx(test.tenant_id, autocommit=True) as tx:
        entry = await channel_queries.find_last_entry(tx, test.tenant_id, test.delivery_id)
    return entry if entry is not None and entry.status != "pending" else None


def _build_result(test: _Test, entry: LogEntryView | None) -> ChannelTest:
    if entry is None:
        return ChannelTest(False, "No worker has sent it yet; is one running?", None)  # noqa: FBT003
    if entry.status == "delivered":
        return ChannelTest(True, f"Delivered to {test.recipient}", entry.delivery_time_ms)  # noqa: FBT003
    return ChannelTest(False, entry.error or "It was not delivered", entry.delivery_time_ms)  # noqa: FBT003
