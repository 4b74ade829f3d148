"""Heartbeats: each worker and model process writes one to Redis every ten seconds."""

import asyncio
import os
import socket
from collections.abc import Iterable
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.kit.work import WorkKind

_PREFIX = "parley:alive:"
_INTERVAL_SECONDS = 10
_EXPIRY_SECONDS = 30


class Beat(msgspec.Struct):
    part: str
    name: str
    queues: list[str] = msgspec.field(default_factory=list)
    sandbox: str = "unknown"
    address: str = ""


def find_unserved_queues(workers: list[Beat], kinds: Iterable[WorkKind]) -> list[str]:
    """Returns the queues of the given kinds of work that no worker serves."""
    served = {queue for beat in workers for queue in beat.queues}
    return sorted({kind.queue for kind in kinds} - served)


def name_of(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}"


def own_name() -> str:
    return name_of(os.getpid())


async def send_forever(redis: Redis, beat: Beat) -> None:
    key = f"{_PREFIX}{beat.part}:{beat.name}"
    while True:
        try:
            await redis.set(key, msgspec.json.encode(beat), ex=_EXPIRY_SECONDS)
            pause = float(_INTERVAL_SECONDS)
        except (RedisError, OSError, TimeoutError):
            pause = 1.0
        await asyncio.sleep(pause)


async def stop(redis: Redis, beat: Beat) -> None:
    try:
        await redis.delete(f"{_PREFIX}{beat.part}:{beat.name}")
    except (RedisError, OSError, TimeoutError):
        return


async def read(redis: Redis) -> list[Beat]:
    try:
        keys: list[Any] = [key async for key in redis.scan_iter(match=f"{_PREFIX}*", count=1000)]
        values = await redis.mget(keys) if keys else []
    except (RedisError, OSError, TimeoutError):
        return []
    return [msgspec.json.decode(value, type=Beat) for value in values if value]
