"""The limit of each channel: how many messages it sends within a minute, over all workers."""

import asyncio
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

WINDOW_SECONDS: Final = 60
_REPLY_SECONDS = 1.0


async def count_send(redis: Redis, channel_id: str, per_minute: int) -> float | None:
    """Counts one send. Returns None when the channel may send now, or else the seconds to wait.
    While Redis is unavailable there is no limit: a message must not be lost for it.
    """
    key = f"parley:channel_rate:{channel_id}"
    try:
        async with asyncio.timeout(_REPLY_SECONDS):
            pipe = redis.pipeline(transaction=True)
            pipe.incr(key)
            pipe.expire(key, WINDOW_SECONDS, nx=True)
            pipe.pttl(key)
            count, _, milliseconds = await pipe.execute()
    except (RedisError, OSError, TimeoutError):
        return None
    return None if count <= per_minute else max(0.05, milliseconds / 1000)
