"""Heartbeats: each worker and model process writes one to Redis every ten seconds."""

import asyncio
import os
import socket
from collections.abc import Iterable

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.jobs import background
from app.jobs.work import WorkKind

# The set of the heartbeats' keys, so that no reader searches all keys of Redis.
_INDEX = "parley:alive"
_INTERVAL_SECONDS = 10
_EXPIRY_SECONDS = 30
# Removes expired heartbeats from the set; as a script, so that none is removed that was just sent.
_READ = """
local beats = {}
for _, key in ipairs(redis.call('smembers', KEYS[1])) do
  local beat = redis.call('get', key)
  if beat then
    beats[#beats + 1] = beat
  else
    redis.call('srem', KEYS[1], key)
  end
end
return beats
"""


class Beat(msgspec.Struct):
    part: str
    name: str
    queues: list[str] = msgspec.field(default_factory=list)
    sandbox: str = "unknown"
    address: str = ""
    # How many answers the local model writes at a time; 0 when that is not known.
    slots: int = 0


def find_unserved_queues(workers: list[Beat], kinds: Iterable[WorkKind]) -> list[str]:
    """Returns the queues of the given kinds of work that no worker serves."""
    served = {queue for beat in workers for queue in beat.queues}
    return sorted({kind.queue for kind in kinds} - served)


def name_of(pid: int) -> str:
    return f"{socket.gethostname()}:{pid}"


def own_name() -> str:
    return name_of(os.getpid())


async def send_forever(redis: Redis, beat: Beat) -> None:
    while True:
        try:
            await send(redis, beat)
            pause = float(_INTERVAL_SECONDS)
        except (RedisError, OSError, TimeoutError):
            pause = 1.0
        if background.is_cancelled():
            return
        await asyncio.sleep(pause)


async def send(redis: Redis, beat: Beat) -> None:
    pipe = redis.pipeline(transaction=True)
    pipe.sadd(_INDEX, _key(beat))
    pipe.set(_key(beat), msgspec.json.encode(beat), ex=_EXPIRY_SECONDS)
    await pipe.execute()


async def stop(redis: Redis, beat: Beat) -> None:
    try:
        await redis.delete(_key(beat))
    except (RedisError, OSError, TimeoutError):
        return


async def read(redis: Redis) -> list[Beat]:
    try:
        values: list[bytes] = await redis.eval(_READ, 1, _INDEX)
    except (RedisError, OSError, TimeoutError):
        return []
    return [msgspec.json.decode(value, type=Beat) for value in values]


def _key(beat: Beat) -> str:
    return f"{_INDEX}:{beat.part}:{beat.name}"
