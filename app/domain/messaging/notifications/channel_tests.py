"""Tests of channels: sends one message for real, through a worker, and waits for its outcome."""

from typing import Final

import msgspec

from app.domain.identity.accounts import api as accounts
from app.domain.platform.mail import api as mail
from app.jobs import work
from app.kit.errors import Conflict, Invalid, ProviderError
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import channel_queries, channels, messages, outgoing, rate_limits
from .channel_schemas import ChannelTest, LogEntryView
from .errors import ChannelInactive, ChannelNotFound, ChannelRateLimited, DeliveryFailed
from .feed import Feed
from .messages import NewMessage
from .outgoing import Outgoing
from .providers.registry import PROVIDERS
from .schemas import TestNotification
from .sending import TIMEOUT_SECONDS
from .types import Recipients

# How long a test may wait for a worker, besides the timeout of its attempt.
_QUEUE_SECONDS: Final = 10.0
_NO_RECIPIENT = "The channel has no recipient: set `to` in its config"
_TITLE = "Test notification"
_TESTS_PER_MINUTE: Final = 10


class _Test(msgspec.Struct, frozen=True):
    """A test that is on its way."""

    tenant_id: str
    delivery_id: str
    work_id: str
    recipient: str


async def run(services: Services, principal: Principal, channel_id: str) -> ChannelTest:
    """Sends to the first recipient of the channel, or to the caller's own address."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        channel = await channels.find_row(tx, channel_id)
        if not channel["active"]:
            raise ChannelInactive("This channel is not active; set `active` to true first")
        recipient = next(iter(outgoing.list_recipients(services.keyring, channel)), None)
        if recipient is None and channel["type"] == "email":
            recipient = await accounts.find_email(tx, principal.tenant_id, principal.user_id)
    text = f"The notification channel {channel['name']} works."
    if channel["type"] == "in_app":
        return await _notify_caller(services, channel["tenant_id"], principal, text)
    if recipient is None:
        return ChannelTest(success=False, message=_NO_RECIPIENT, delivery_time_ms=None)
    test = await _send(services, channel, recipient, text)
    return _build_result(test, await _wait(services, test))


async def run_for_caller(
    services: Services, principal: Principal, data: TestNotification
) -> ChannelTest:
    """Sends to the caller's own account, through the channel that a notification would take."""
    if data.channel_type in {"sms", "webhook"}:
        raise Invalid.field(
            "channel_type", "your account has no address for it; test the channel itself instead"
        )
    if data.channel_type == "team_chat":
        # Everybody in the chat reads it.
        principal.require("notifications:write")
    await _count(services, f"user:{principal.user_id}", _TESTS_PER_MINUTE, "You can send")
    if data.channel_type == "in_app":
        return await _notify_caller(services, principal.home, principal, data.message)
    async with services.db.tx(principal.home, autocommit=True) as tx:
        plan = await _plan_for_caller(services, tx, principal, data)
    if plan.channel is None:
        return await _mail_caller(services, principal, plan.recipient, data.message)
    test = await _send(services, plan.channel, plan.recipient, data.message)
    entry = await _wait(services, test)
    result = _build_result(test, entry)
    if not result.success:
        is_refused = entry is not None and entry.error_code == "provider_error"
        raise (ProviderError if is_refused else DeliveryFailed)(result.message)
    return result


class _Plan(msgspec.Struct, frozen=True):
    """Without a channel, the instance's own mail server sends it."""

    channel: Row | None
    recipient: str


async def _plan_for_caller(
    services: Services, tx: Tx, principal: Principal, data: TestNotification
) -> _Plan:
    all_channels = await channel_queries.list_all(
        tx, data.channel_type, active=None, limit=channel_queries.MAX_CHANNELS
    )
    active = [item for item in all_channels if item.active]
    channel = await channels.find_row(tx, active[0].id) if active else None
    if data.channel_type == "email":
        # The text is the caller's own: it must not go to anybody else's address.
        ids = (principal.tenant_id, principal.user_id)
        address = await accounts.find_email(tx, *ids, is_verified=True)
        if address is None:
            raise Conflict("Verify your e-mail address first")
        return _Plan(channel, address)
    if channel is None:
        if all_channels:
            raise ChannelInactive(f"No channel of the type {data.channel_type} is active")
        raise ChannelNotFound(
            f"There is no channel of the type {data.channel_type}; create one first"
        )
    return _Plan(channel, next(iter(outgoing.list_recipients(services.keyring, channel)), ""))


async def _mail_caller(
    services: Services, principal: Principal, address: str, text: str
) -> ChannelTest:
    content = mail.render("notification", title=_TITLE, message=text, url=None)
    async with services.db.tx(principal.home) as tx:
        await mail.queue(
            tx, services.keyring, tenant_id=principal.home, recipient=address, content=content
        )
    return ChannelTest(
        success=True, message=f"A mail to {address} is on its way", delivery_time_ms=None
    )


async def _notify_caller(
    services: Services, tenant_id: str, principal: Principal, text: str
) -> ChannelTest:
    user_ids = [principal.user_id]
    new = NewMessage(
        type="message",
        title=_TITLE,
        message=text,
        recipients=Recipients(user_ids=user_ids),
        data={"test": True},
        created_by=principal.user_id,
    )
    async with services.db.tx(tenant_id) as tx:
        message = await messages.accept_undispatched(tx, tenant_id, new)
        await outgoing.add_to_center(tx, message, user_ids)
    await services.get(Feed).announce(user_ids)
    return ChannelTest(success=True, message="Added to your notifications", delivery_time_ms=0)


async def _count(services: Services, key: str, limit: int, subject: str) -> None:
    wait = await rate_limits.count_send(services.redis, key, limit)
    if wait is not None:
        seconds = round(wait) + 1
        raise ChannelRateLimited(
            f"{subject} at most {limit} messages a minute; try again in {seconds} s",
            details={
                "limit": limit,
                "window": rate_limits.WINDOW_SECONDS,
                "retry_after": seconds,
            },
            headers={"Retry-After": str(seconds)},
        )


async def _send(services: Services, channel: Row, recipient: str, text: str) -> _Test:
    limit = channel["rate_limit_per_minute"] or PROVIDERS[channel["provider"]].rate_per_minute
    await _count(services, channel["id"], limit, "This channel sends")
    tenant_id = channel["tenant_id"]
    new = NewMessage(
        type="message",
        title=_TITLE,
        message=text,
        recipients=Recipients(channel_id=channel["id"]),
        data={"test": True},
    )
    async with services.db.tx(tenant_id) as tx:
        message = await messages.accept_undispatched(tx, tenant_id, new)
        deliveries = [Outgoing(channel["id"], recipient)]
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
        return ChannelTest(
            success=False,
            message="No worker has sent it yet, it may still arrive; is a worker running?",
            delivery_time_ms=None,
        )
    if entry.status == "delivered":
        return ChannelTest(
            success=True,
            message=f"Delivered to {test.recipient}",
            delivery_time_ms=entry.delivery_time_ms,
        )
    return ChannelTest(
        success=False,
        message=entry.error or "It was not delivered",
        delivery_time_ms=entry.delivery_time_ms,
    )
