"""The ledger within one process: accepting, claiming, leases, waiting, correlation."""

import asyncio

import msgspec
import pytest

from app.domain.job import Job, LeaseLost, Retry
from app.jobs import work
from app.kit import trace
from app.kit.trace import Trace
from app.services import Services
from db import ledger
from db.session import ALL_TENANTS
from tests.workers.factories import QUICK, accept, create_runner, execute, read_row, wait_until
from tests.world import World


async def test_work_is_accepted_in_the_transaction_of_the_caller(
    services: Services, tenant: str
) -> None:
    tx = services.db.begin(tenant)
    work_id = await work.accept(tx, QUICK, tenant_id=tenant)
    await tx.rollback()
    async with services.db.tx(tenant, autocommit=True) as tx:
        assert await ledger.state_of(tx, tenant, work_id) is None


async def test_the_same_dedupe_key_is_accepted_once(services: Services, tenant: str) -> None:
    await accept(services, tenant, dedupe_key="a")
    await accept(services, tenant, dedupe_key="a")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT count(*) FROM work WHERE tenant_id = $1"
        assert await (await tx.raw()).fetchval(sql, tenant) == 1


async def test_twenty_claims_of_one_row_run_it_once(services: Services, tenant: str) -> None:
    work_ids: list[str] = []

    async def record(job: Job) -> None:
        work_ids.append(job.row.id)

    work_id = await accept(services, tenant)
    runner = create_runner(services, record)
    await asyncio.gather(*(runner.run(work_id) for _ in range(20)))
    assert work_ids == [work_id]
    assert (await read_row(services, work_id))["state"] == "done"


async def test_work_that_is_not_due_is_not_run(services: Services, tenant: str) -> None:
    async def never(_job: Job) -> None:
        pytest.fail("ran early")

    work_id = await accept(services, tenant)
    await execute(
        services, "UPDATE work SET run_at = now() + interval '1 hour' WHERE id = $1", work_id
    )
    await create_runner(services, never).run(work_id)
    assert (await read_row(services, work_id))["state"] == "pending"


async def test_results_and_outcome_are_one_transaction(services: Services, tenant: str) -> None:
    async def write_and_lose(job: Job) -> None:
        async with job.finish() as tx:
            raw = await tx.raw()
            await raw.execute("UPDATE tenants SET name = 'written' WHERE id = $1", tenant)
            # Another worker gets the lease meanwhile.
            await execute(
                services, "UPDATE work SET lease_token = 'other' WHERE id = $1", job.row.id
            )

    work_id = await accept(services, tenant)
    await create_runner(services, write_and_lose).run(work_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        assert await raw.fetchval("SELECT name FROM tenants WHERE id = $1", tenant) != "written"
    assert (await read_row(services, work_id))["lease_token"] == "other"


async def test_a_worker_that_lost_its_lease_cannot_write(services: Services, tenant: str) -> None:
    async def lose(job: Job) -> None:
        await execute(services, "UPDATE work SET lease_token = 'other' WHERE id = $1", job.row.id)
        with pytest.raises(LeaseLost):
            async with job.finish():
                pass
        raise Retry("should change nothing")

    work_id = await accept(services, tenant)
    await create_runner(services, lose).run(work_id)
    row = await read_row(services, work_id)
    assert (row["state"], row["lease_token"], row["last_error"]) == ("leased", "other", None)


async def test_an_expired_lease_is_claimed_again(services: Services, tenant: str) -> None:
    work_id = await accept(services, tenant)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        first = await ledger.claim(await tx.raw(), work_id, "dead-worker", 0.0)
    assert first is not None
    attempts: list[int] = []

    async def record(job: Job) -> None:
        attempts.append(job.row.attempt)

    await create_runner(services, record).run(work_id)
    assert attempts == [2]


async def test_leases_are_renewed_while_a_job_runs(services: Services, tenant: str) -> None:
    proceed = asyncio.Event()

    async def wait(_job: Job) -> None:
        await proceed.wait()

    short_lease = msgspec.structs.replace(
        services, settings=msgspec.structs.replace(services.settings, lease_seconds=0.3)
    )
    runner = create_runner(short_lease, wait)
    work_id = await accept(services, tenant)
    run = asyncio.create_task(runner.run(work_id))
    renewal = asyncio.create_task(runner.renew_forever())

    async def is_leased() -> bool:
        return (await read_row(services, work_id))["lease_until"] is not None

    await wait_until(is_leased)
    first = (await read_row(services, work_id))["lease_until"]

    async def is_renewed() -> bool:
        return bool((await read_row(services, work_id))["lease_until"] > first)

    await wait_until(is_renewed)
    proceed.set()
    await run
    renewal.cancel()
    assert (await read_row(services, work_id))["state"] == "done"


async def test_a_locked_row_does_not_stop_the_renewal_of_others(
    services: Services, tenant: str
) -> None:
    work_ids = [await accept(services, tenant) for _ in range(3)]
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        for work_id in work_ids:
            await ledger.claim(raw, work_id, f"lease-{work_id}", 30)
        locked, renewed, lost = work_ids
        await raw.execute("UPDATE work SET lease_token = 'other' WHERE id = $1", lost)
        before = {work_id: (await read_row(services, work_id)) for work_id in work_ids}
        async with services.db.tx(ALL_TENANTS) as other:
            await (await other.raw()).execute("SELECT 1 FROM work WHERE id = $1 FOR UPDATE", locked)
            tokens = [f"lease-{work_id}" for work_id in work_ids]
            valid = await asyncio.wait_for(ledger.renew(raw, tokens, 60), 5)
    assert valid == {f"lease-{locked}", f"lease-{renewed}"}
    after = {work_id: (await read_row(services, work_id)) for work_id in work_ids}
    assert [
        work_id
        for work_id in work_ids
        if after[work_id]["lease_until"] > before[work_id]["lease_until"]
    ] == [renewed]


async def test_waiting_returns_as_soon_as_the_work_is_done(services: Services, tenant: str) -> None:
    async def quick(_job: Job) -> None:
        return

    work_id = await accept(services, tenant)
    wait = asyncio.create_task(work.wait(services.db, services.doorbell, tenant, work_id, 20))
    await create_runner(services, quick).run(work_id)
    assert await asyncio.wait_for(wait, 5) == "done"


async def test_waiting_returns_the_current_state_after_its_time_limit(
    services: Services, tenant: str
) -> None:
    work_id = await accept(services, tenant)
    assert await work.wait(services.db, services.doorbell, tenant, work_id, 0.1) == "pending"


async def test_waiting_for_the_work_of_another_tenant_returns_nothing(
    services: Services, tenant: str, world: World
) -> None:
    work_id = await accept(services, tenant)
    other = await world.tenant()
    assert await work.wait(services.db, services.doorbell, other, work_id, 0.1) is None


async def test_a_job_has_the_correlation_id_and_cause_of_its_work(
    services: Services, tenant: str
) -> None:
    traces: list[Trace] = []

    async def record(_job: Job) -> None:
        traces.append(trace.current())

    async def request() -> str:
        trace.begin(Trace(correlation_id="cor_chain", request_id="req_1"))
        return await accept(services, tenant, cause_event_id="evt_cause")

    work_id = await asyncio.create_task(request())
    await asyncio.create_task(create_runner(services, record).run(work_id))
    assert [(t.correlation_id, t.cause_event_id) for t in traces] == [("cor_chain", "evt_cause")]
