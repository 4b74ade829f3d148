"""Lanes of a courier whose limit comes with their work."""

import asyncio
from operator import itemgetter

from app.domain.area import CourierOptions
from app.domain.job import Job
from app.services import Services
from db.session import Tx
from tests.assertions import until
from tests.workers.factories import SHARED, accept, create_runner
from tests.world import World
from workers.courier import Courier

_PER_LANE = 2


class _Courier:
    """A courier whose jobs end when `may_end` is set. The payload of work is the limit of its lane,
    which is its tenant.
    """

    def __init__(self, services: Services, limit: int) -> None:
        self.limit = limit
        self.may_end = asyncio.Event()
        self.runner = create_runner(services, self._run)
        options = CourierOptions(
            self._load,
            total=40,
            per_tenant=20,
            per_lane=_PER_LANE,
            read_lane_limit=itemgetter("limit"),
        )
        self.courier = Courier(services, self.runner, SHARED.name, options)

    async def _load(self, _tx: Tx, ref_ids: list[str]) -> dict[str, dict[str, int]]:
        return {ref_id: {"limit": self.limit} for ref_id in ref_ids}

    async def _run(self, _job: Job) -> None:
        await self.may_end.wait()

    async def scan_until_full(self) -> int:
        while await self.courier.scan():
            pass
        return self.runner.running_count

    async def close(self) -> None:
        self.may_end.set()
        await self.runner.drain(5)


async def _accept_many(services: Services, tenant: str, count: int) -> None:
    for number in range(count):
        await accept(services, tenant, SHARED, ref_id=f"ref-{number}")


async def test_a_lane_has_as_many_slots_as_its_work_allows(services: Services, tenant: str) -> None:
    await _accept_many(services, tenant, 10)
    couriers = _Courier(services, 5)
    # Until the first work is loaded, its lane has the limit of all.
    assert await couriers.courier.scan() == _PER_LANE
    assert await couriers.scan_until_full() == 5
    await couriers.close()


async def test_a_lane_whose_work_allows_no_more_keeps_the_limit_of_all(
    services: Services, tenant: str, world: World
) -> None:
    await _accept_many(services, tenant, 10)
    await _accept_many(services, await world.tenant(), 10)
    couriers = _Courier(services, _PER_LANE)
    assert await couriers.scan_until_full() == 2 * _PER_LANE
    await couriers.close()


async def test_a_lower_limit_holds_from_the_next_claim_on(services: Services, tenant: str) -> None:
    await _accept_many(services, tenant, 10)
    couriers = _Courier(services, 3)
    assert await couriers.scan_until_full() == 3
    couriers.limit = _PER_LANE
    couriers.may_end.set()
    await until(lambda: not couriers.runner.running_count)
    couriers.may_end.clear()
    assert await couriers.courier.scan() == 3
    couriers.may_end.set()
    await until(lambda: not couriers.runner.running_count)
    couriers.may_end.clear()
    assert await couriers.scan_until_full() == _PER_LANE
    await couriers.close()


async def test_a_paused_lane_claims_nothing_whatever_its_limit(
    services: Services, tenant: str
) -> None:
    await _accept_many(services, tenant, 10)
    couriers = _Courier(services, 5)
    assert await couriers.courier.scan() == _PER_LANE
    couriers.courier.pause(tenant, 60)
    assert await couriers.scan_until_full() == _PER_LANE
    await couriers.close()
