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
    """Stores the heartbeat of a local model in Redis, like its own process."""
    beat = Beat("model", name or heartbeat.own_name(), address=address, slots=slots)
    await heartbeat.send(services.redis, beat)
    try:
        yield
    finally:
        await heartbeat.stop(services.redis, beat)


async def count_tickets(services: Services) -> int:
    """Returns how many requests have a slot of the local model or wait for one."""
    keys = [key async for key in services.redis.scan_iter("parley:model_queue:*")]
    return sum([await services.redis.hlen(key) for key in keys])


async def wait_for_tickets(services: Services, count: int) -> None:
    async with asyncio.timeout(10):
        while await count_tickets(services) != count:  # noqa: ASYNC110  # Redis has them
            await asyncio.sleep(0.01)
