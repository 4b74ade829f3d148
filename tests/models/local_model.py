"""The heartbeat of a local model that the scripted server plays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.kit import heartbeat
from app.kit.heartbeat import Beat
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
