"""The limit of each channel: how many messages it sends within a minute, over all workers."""

import asyncio
from collections import Counter
from typing import Final, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError

WINDOW_SECONDS: Final = 60
_REPLY_SECONDS = 1.0


class ChannelSend(NamedTuple):
    channel_id: str
    per_minute: int


async def count_send(redis: Redis, channel_id: str, per_minute: int) -> float | None:
    """Counts one send. Returns None when the channel may send now, or else the seconds to wait."""
    (wait,) = await count_sends(redis, [ChannelSend(channel_id, per_minute)])
    return wait


async def count_sends(redis: Redis, sends: list[ChannelSend]) -> list[float | None]:
    """Counts many sends in one round trip; returns for each what `count_send` returns.
    While Redis is unavailable there is no limit: a message must not be lost for it.
    """
    by_channel = Counter(send.channel_id for send in sends)
    try:
        async with asyncio.timeout(_REPLY_SECONDS):
            replies = await _add_to_windows(redis, by_channel)
    except (RedisError, OSError, TimeoutError):
        return [None] * len(sends)
    waits: list[float | None] = []
    for channel_id, per_minute in sends:
        count, milliseconds = replies[channel_id]
        # The sends of a channel have the last numbers of its window, in their order.
        by_channel[channel_id] -= 1
        number = count - by_channel[channel_id]
        waits.append(None if number <= per_minute else max(0.05, milliseconds / 1000))
    return waits


async def _add_to_windows(redis: Redis, counts: Counter[str]) -> dict[str, tuple[int, int]]:
    """Returns the count of each channel's window, and the milliseconds until it ends."""
    pipe = redis.pipeline(transaction=True)
    for channel_id, count in counts.items():
        key = f"parley:channel_rate:{channel_id}"
        pipe.incrby(key, count)
        pipe.expire(key, WINDOW_SECONDS, nx=True)
        pipe.pttl(key)
    replies = await pipe.execute()
    return {
        channel_id: (replies[3 * index], replies[3 * index + 2])
        for index, channel_id in enumerate(counts)
    }
