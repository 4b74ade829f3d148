"""Heartbeats: processes that run are listed, without a search through all keys of Redis."""

from app.kit import heartbeat
from app.kit.heartbeat import Beat
from app.kit.ids import new_id
from app.services import Services


async def _read_names(services: Services) -> set[str]:
    return {beat.name for beat in await heartbeat.read(services.redis)}


async def test_a_process_is_listed_until_it_stops(services: Services) -> None:
    beat = Beat("worker", new_id("host"))
    await heartbeat.send(services.redis, beat)
    assert beat.name in await _read_names(services)
    await heartbeat.stop(services.redis, beat)
    assert beat.name not in await _read_names(services)


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
