"""Limits of channels: sends within a minute, one send per event, and no channel delays another."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from app.domain.messaging.notifications.message_queries import SEND
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.kit.ids import new_id
from tests.assertions import until, wait_until
from tests.messaging.notifications.factories import PATH, list_log
from tests.messaging.notifications.sender import ChannelSender
from tests.peer import answering
from tests.world import World

pytestmark = pytest.mark.usefixtures("slow_retries")

_MAX_CONCURRENT = PROVIDERS["webhook"].max_concurrent
_FIVE = [f"user{n}@example.com" for n in range(5)]


# Sends within a minute


async def test_sends_beyond_the_limit_wait_for_the_next_minute(sender: ChannelSender) -> None:
    channel_id = await sender.create(rate_limit_per_minute=2, to=_FIVE)
    await sender.send(channel_id)

    async def is_limited() -> bool:
        outline = await sender.outline(channel_id)
        return [item[2] for item in outline] == [None, None, *["rate_limited"] * 3]

    await wait_until(is_limited, 10)
    assert [item[1] for item in await sender.outline(channel_id)] == [
        *["delivered"] * 2,
        *["pending"] * 3,
    ]
    waiting = [row for row in await sender.list_work(channel_id) if row["state"] == "pending"]
    # A wait uses up no attempt.
    assert [row["attempt"] for row in waiting] == [0, 0, 0]
    await sender.end_rate_window(channel_id)
    await until(lambda: len(sender.providers.accepted) == 4)
    await sender.end_rate_window(channel_id)
    outline = await sender.wait_for(channel_id, *["delivered"] * 5)
    assert outline == [(1, "delivered", None)] * 5
    assert len(sender.providers.calls) == 5


async def test_a_limit_of_one_channel_delays_no_other(sender: ChannelSender) -> None:
    limited = await sender.create("sendgrid", rate_limit_per_minute=1, to=_FIVE)
    other = await sender.create("resend", to=_FIVE)
    await sender.send(limited)
    await until(lambda: len(sender.list_calls("/v3/mail/send")) == 1)
    await sender.send(other)
    await sender.wait_for(other, *["delivered"] * 5)
    assert await sender.count_deliveries(limited, "status = 'delivered'") == 1


async def test_a_channel_at_its_limit_is_left_alone_until_the_minute_ends(
    sender: ChannelSender,
) -> None:
    addresses = [f"user{n}@example.com" for n in range(50)]
    channel_id = await sender.create(rate_limit_per_minute=1, to=addresses)
    await sender.send(channel_id)
    await sender.wait_for_limit(channel_id)
    courier = sender.process.couriers[SEND.name]
    for _ in range(5):
        assert await courier.scan() == 0
    await until(lambda: sender.process.runner.running_count == 0)
    waiting = [row for row in await sender.list_work(channel_id) if row["state"] == "pending"]
    assert len(waiting) == 49
    postponed = [row for row in waiting if row["last_error"] == "rate_limited"]
    assert 0 < len(postponed) <= _MAX_CONCURRENT


async def test_a_retry_counts_as_a_send(sender: ChannelSender) -> None:
    sender.script(500, 200)
    channel_id = await sender.create(rate_limit_per_minute=1)
    await sender.send(channel_id)
    await sender.wait_for_retry(channel_id, 2)

    async def is_limited() -> bool:
        return (2, "pending", "rate_limited") in await sender.outline(channel_id)

    await wait_until(is_limited, 10)
    await sender.end_rate_window(channel_id)
    outline = await sender.wait_for(channel_id, "failed", "delivered")
    assert outline == [(1, "failed", "provider_error"), (2, "delivered", None)]


# One send for each event, channel and recipient


async def test_a_message_that_is_dispatched_twice_is_sent_once(sender: ChannelSender) -> None:
    channel_id = await sender.create(to=_FIVE)
    message_id = await sender.send(channel_id)
    await sender.wait_for_finished(channel_id, 5)
    await sender.wait_until_idle()
    sql = """
    UPDATE work SET state = 'pending', finished_at = NULL, run_at = now()
    WHERE kind = 'notifications.dispatch' AND ref_id = $1 RETURNING id
    """
    (work,) = await sender.fetch(sql, message_id)
    await sender.process.runner.run(work["id"])
    await sender.wait_until_idle()
    assert len(await list_log(sender.client, channel_id)) == 5
    assert len(sender.providers.calls) == 5


async def test_two_subscriptions_to_one_event_send_once_through_a_channel(
    sender: ChannelSender,
) -> None:
    channel_id, event_id = await sender.create(), new_id("evt")
    for source in ("sub_1", "sub_2"):
        assert await sender.send(channel_id, event_id=event_id, source=source)
    assert await sender.send(channel_id, event_id=event_id, source="sub_2") is None
    await sender.wait_until_idle()
    assert await sender.outline(channel_id) == [(1, "delivered", None)]
    await sender.send(channel_id, event_id=new_id("evt"), source="sub_1")
    await sender.wait_for(channel_id, "delivered", "delivered")
    assert len(sender.providers.calls) == 2


# Channels that hang


class HangingServer:
    def __init__(self) -> None:
        self.url = ""
        self.count = 0
        self.may_respond = asyncio.Event()

    async def respond(self, _request: web.Request) -> web.Response:
        self.count += 1
        await self.may_respond.wait()
        return web.Response()


@pytest.fixture
async def hanging() -> AsyncIterator[HangingServer]:
    server = HangingServer()
    async with answering(server.respond) as server.url:
        yield server
        server.may_respond.set()


async def test_a_channel_that_hangs_delays_no_other_channel_and_no_other_tenant(
    sender: ChannelSender, world: World, hanging: HangingServer
) -> None:
    slow = await sender.create("webhook", url=hanging.url)
    for _ in range(_MAX_CONCURRENT + 4):
        await sender.send(slow)
    await until(lambda: hanging.count == _MAX_CONCURRENT, 70)
    neighbour = ChannelSender(await world.user(), sender.services, sender.process, sender.providers)
    for other in (sender, neighbour):
        channel_id = await other.create(to=_FIVE)
        await other.send(channel_id)
        await other.wait_for(channel_id, *["delivered"] * 5)
    assert await sender.count_deliveries(slow, "status = 'pending'") == _MAX_CONCURRENT + 4
    assert hanging.count == _MAX_CONCURRENT
    hanging.may_respond.set()
    await sender.wait_for_finished(slow, _MAX_CONCURRENT + 4)


# Deleted channels


async def test_a_channel_that_is_deleted_while_it_sends_ends_its_send(
    sender: ChannelSender, hanging: HangingServer
) -> None:
    channel_id = await sender.create("webhook", url=hanging.url)
    other = await sender.create_hook("other")
    await sender.send(channel_id)
    await until(lambda: hanging.count == 1)
    assert (await sender.client.delete(f"{PATH}/{channel_id}")).status_code == 204
    hanging.may_respond.set()
    await sender.wait_for_finished(channel_id)
    assert [row["state"] for row in await sender.list_work(channel_id)] == ["done"]
    assert await sender.outline(other) == []
