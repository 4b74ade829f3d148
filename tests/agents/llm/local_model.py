"""A local model that the scripted server plays: its heartbeat and its queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.observe import heartbeat
from app.observe.heartbeat import Beat
from app.services import Services


@asynccontextmanager
async def announce_local_model(
    services: Services, address: str, name: str | None = None, slots: int = 0
) -> AsyncIterator[None]:
    """Stores the heartbeat of a local model in Redis, like its own process. Its queue is empty:
    tickets that an earlier test left are valid for some seconds.
    """
    beat = Beat("model", name or heartbeat.own_name(), address=address, slots=slots)
    await services.redis.delete(_queue_key(beat))
    await heartbeat.send(services.redis, beat)
    try:
        yield
    finally:
        await heartbeat.stop(services.redis, beat)


async def count_tickets(services: Services) -> int:
    """Returns how many requests have a slot of the local model or wait for one."""
    beats = [beat for beat in await heartbeat.read(services.redis) if beat.part == "model"]
    return sum([await services.redis.hlen(_queue_key(beat)) for beat in beats])


def _queue_key(beat: Beat) -> str:
    return f"parley:model_queue:{beat.name}"


async def wait_for_tickets(services: Services, count: int) -> None:
    async with asyncio.timeout(10):
        while await count_tickets(services) != count:  # noqa: ASYNC110  # Redis has them
            await asyncio.sleep(0.01)
