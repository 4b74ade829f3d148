"""Listens to a channel of Redis for as long as the process runs. Messages are hints only: they are
lost while Redis is unavailable.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from app.jobs import background

# How long Redis may take for a reply; then the connection is replaced.
_REPLY_SECONDS = 5
_RECONNECT_SECONDS = 1


async def listen_forever(redis: Redis, channel: str, on_message: Callable[[bytes], None]) -> None:
    """`redis` is a client without a limit on the wait for replies."""
    while True:
        with suppress(RedisError, OSError, TimeoutError):
            async with redis.pubsub() as subscription:
                async with asyncio.timeout(_REPLY_SECONDS):
                    await subscription.subscribe(channel)
                await _receive(subscription, on_message)
        if background.is_cancelled():
            return
        await asyncio.sleep(_RECONNECT_SECONDS)


async def _receive(subscription: PubSub, on_message: Callable[[bytes], None]) -> None:
    """Returns when Redis does not reply to a ping."""
    was_pinged = False
    while True:
        message = await subscription.get_message(timeout=_REPLY_SECONDS)
        if message is not None:
            was_pinged = False
            if message["type"] == "message":
                on_message(message["data"])
        elif was_pinged:
            return
        else:
            await subscription.ping()
            was_pinged = True
