"""The sends of channels are counted together, and each gets its own answer."""

from redis.asyncio import Redis

from app.domain.messaging.notifications.rate_limits import (
    WINDOW_SECONDS,
    ChannelSend,
    count_send,
    count_sends,
)
from app.kit.ids import new_id
from app.services import Services


async def test_sends_that_are_counted_together_have_the_limit_of_their_channel(
    services: Services,
) -> None:
    first, second = new_id("nch"), new_id("nch")
    sends = [ChannelSend(first, 2), ChannelSend(second, 1)] * 3
    waits = await count_sends(services.redis, sends)
    assert [wait is None for wait in waits] == [True, True, True, False, False, False]
    assert all(0 < wait <= WINDOW_SECONDS for wait in waits if wait is not None)


async def test_sends_count_with_those_before_them(services: Services) -> None:
    channel_id = new_id("nch")
    assert await count_send(services.redis, channel_id, 3) is None
    waits = await count_sends(services.redis, [ChannelSend(channel_id, 3)] * 4)
    assert [wait is None for wait in waits] == [True, True, False, False]
    assert await count_send(services.redis, channel_id, 3) is not None


async def test_without_redis_there_is_no_limit() -> None:
    redis = Redis(host="127.0.0.1", port=9)
    assert await count_sends(redis, [ChannelSend("nch_1", 1)] * 3) == [None] * 3
    await redis.aclose()
