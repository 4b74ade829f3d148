"""Heartbeats: processes that run are listed, without a search through all keys of Redis."""

import asyncio

import pytest

from app.kit.ids import new_id
from app.observe import heartbeat
from app.observe.heartbeat import Beat
from app.services import Services


async def _read_names(services: Services) -> set[str]:
    return {beat.name for beat in await heartbeat.read(services.redis)}


async def test_a_process_is_listed_until_it_stops(services: Services) -> None:
    beat = Beat("worker", new_id("host"))
    await heartbeat.send(services.redis, beat)
    assert beat.name in await _read_names(services)
    await heartbeat.stop(services.redis, beat)
    assert beat.name not in await _read_names(services)


async def test_sending_ends_although_the_client_replaces_the_cancellation(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the Redis client does while it connects; otherwise a worker takes seconds to stop."""
    is_sending = asyncio.Event()

    async def send(*_: object) -> None:
        is_sending.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise TimeoutError from None

    monkeypatch.setattr(heartbeat, "send", send)
    sender = asyncio.create_task(heartbeat.send_forever(services.redis, Beat("worker", "host")))
    await is_sending.wait()
    sender.cancel()
    _, still_running = await asyncio.wait([sender], timeout=5)
    assert not still_running


async def test_a_process_that_died_leaves_nothing_behind(services: Services) -> None:
    beat = Beat("worker", new_id("host"))
    await heartbeat.send(services.redis, beat)
    await services.redis.delete(f"parley:alive:worker:{beat.name}")
    assert beat.name not in await _read_names(services)
    members = await services.redis.smembers("parley:alive")
    assert f"parley:alive:worker:{beat.name}".encode() not in members


async def test_the_keys_of_redis_are_not_scanned(services: Services) -> None:
    async def count_scans() -> int:
        stats = await services.redis.info("commandstats")
        return int(stats.get("cmdstat_scan", {}).get("calls", 0))

    before = await count_scans()
    await heartbeat.read(services.redis)
    assert await count_scans() == before
