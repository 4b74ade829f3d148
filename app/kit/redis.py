"""The Redis client: short waits, one quick retry for a connection that a restart left dead."""

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def connect(url: str, *, wait_seconds: float | None = 1.0) -> Redis:
    """`wait_seconds` None is for clients that block on purpose, like a queue's."""
    return Redis.from_url(
        url,
        socket_timeout=wait_seconds,
        socket_connect_timeout=0.5,
        retry=Retry(NoBackoff(), 1),
        health_check_interval=0,
    )
