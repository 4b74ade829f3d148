"""A tenant is told once when 80 and 100 percent of its quota are used."""

import pytest

from app.domain.platform.storage import service as storage
from app.services import Services
from tests.database import fetch_rows
from tests.platform.events.database import load_events
from tests.platform.files.api import MEGABYTE
from tests.platform.storage.counting import set_file_bytes
from tests.world import World

_WARNING = "system.storage.warning"


_LEVELS: list[tuple[list[int], list[int]]] = [
    ([79], []),
    ([80], [80]),
    ([80, 85, 99], [80]),
    ([80, 100, 120], [80, 100]),
    ([120], [100]),
    # A level ends when a tenth of the quota is free again.
    ([80, 75, 81], [80]),
    ([80, 69, 81], [80, 80]),
    ([100, 95, 100], [100]),
    ([100, 85, 100], [100, 100]),
    ([100, 75, 85, 100], [100, 100]),
]


async def test_a_level_is_told_once(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for percents, levels in _LEVELS:
        with subtests.test(percents=percents, levels=levels):
            tenant_id = await world.tenant("enterprise", {"storage_mb": 1})
            for percent in percents:
                await set_file_bytes(services, tenant_id, MEGABYTE * percent // 100 + 1)
                await storage.warn(services)
                await storage.warn(services)
            events = await load_events(services, tenant_id, _WARNING)
            assert [event["data"]["percent"] for event in events] == levels


async def test_the_warning_has_the_figures(world: World, services: Services) -> None:
    tenant_id = await world.tenant("enterprise", {"storage_mb": 1})
    await set_file_bytes(services, tenant_id, 900_000)
    await storage.warn(services)
    (event,) = await load_events(services, tenant_id, _WARNING)
    expected = {"percent": 80, "used_bytes": 900_000, "limit_bytes": MEGABYTE, "largest": "files"}
    assert event["data"] == expected


async def test_tenants_that_are_warned_together_share_no_trace(
    world: World, services: Services
) -> None:
    tenant_ids = [await world.tenant("enterprise", {"storage_mb": 1}) for _ in range(2)]
    for tenant_id in tenant_ids:
        await set_file_bytes(services, tenant_id, MEGABYTE)
    await storage.warn(services)
    sql = "SELECT correlation_id FROM event_log WHERE tenant_id = ANY($1) AND type = $2"
    rows = await fetch_rows(services, sql, tenant_ids, _WARNING)
    assert len({row["correlation_id"] for row in rows}) == 2
