"""Cancelling work, and stopping a runner while it has work."""

import asyncio

import pytest

from app.domain.job import Job
from app.jobs import work
from app.services import Services
from db.session import ALL_TENANTS
from tests.database import run_sql
from tests.workers.factories import WaitingJob, accept, create_runner, read_row, wait_until
from tests.world import World


async def test_cancelled_pending_work_never_runs(services: Services, tenant: str) -> None:
    async def never(_job: Job) -> None:
        pytest.fail("ran")

    work_id = await accept(services, tenant)
    async with services.db.tx(tenant) as tx:
        assert await work.cancel(tx, services.doorbell, tenant, work_id)
    await create_runner(services, never).run(work_id)
    assert (await read_row(services, work_id))["state"] == "cancelled"


async def test_many_rows_are_cancelled_together_and_only_running_ones_are_announced(
    services: Services, tenant: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced: list[str] = []

    async def announce(work_id: str) -> None:
        announced.append(work_id)

    monkeypatch.setattr(services.doorbell, "announce_cancel", announce)
    pending, running, finished = [await accept(services, tenant) for _ in range(3)]
    foreign = await accept(services, (await world.user()).tenant_id)
    await run_sql(services, "UPDATE work SET state = 'leased' WHERE id = $1", running)
    await run_sql(services, "UPDATE work SET state = 'done' WHERE id = $1", finished)
    work_ids = [pending, running, finished, foreign]
    async with services.db.tx(tenant) as tx:
        await work.cancel_many(tx, services.doorbell, tenant, work_ids)
    states = [(await read_row(services, work_id))["state"] for work_id in work_ids]
    assert states == ["cancelled", "cancelled", "done", "pending"]
    assert announced == [running]


async def test_another_tenant_cannot_cancel(services: Services, tenant: str, world: World) -> None:
    work_id = await accept(services, tenant)
    other = await world.tenant()
    async with services.db.tx(other) as tx:
        assert not await work.cancel(tx, services.doorbell, other, work_id)
    assert (await read_row(services, work_id))["state"] == "pending"


async def test_cancelling_running_work_interrupts_it_and_it_writes_nothing(
    services: Services, tenant: str
) -> None:
    job = WaitingJob(services)
    work_id, run = await job.start(tenant)
    async with services.db.tx(tenant) as tx:
        assert await work.cancel(tx, services.doorbell, tenant, work_id)
    job.runner.cancel(work_id)
    await run
    row = await read_row(services, work_id)
    assert (row["state"], row["last_error"]) == ("cancelled", None)


async def test_draining_releases_unfinished_work_without_counting_the_attempt(
    services: Services, tenant: str
) -> None:
    job = WaitingJob(services)
    work_id, run = await job.start(tenant)
    await job.runner.drain(0.05)
    await run
    row = await read_row(services, work_id)
    assert (row["state"], row["attempt"]) == ("pending", 0)


async def test_draining_waits_for_a_claim_in_progress(services: Services, tenant: str) -> None:
    async def quick(_job: Job) -> None:
        return

    work_id = await accept(services, tenant)
    runner = create_runner(services, quick)

    async def is_claiming() -> bool:
        return runner._claiming == 1

    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("SELECT 1 FROM work WHERE id = $1 FOR UPDATE", work_id)
        run = asyncio.create_task(runner.run(work_id))
        await wait_until(is_claiming)
        drain = asyncio.create_task(runner.drain(10))
        _, unfinished = await asyncio.wait([drain], timeout=0.1)
        assert unfinished
    await drain
    await run
    assert (await read_row(services, work_id))["state"] == "done"
