"""The ledger within one process: claims, leases, retries, cancels, waiting, correlation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from app.areas import AREAS
from app.domain.events.service import emit_dead
from app.kit import trace, work
from app.kit.trace import Trace
from app.kit.work import WorkKind
from app.services import Services
from db import ledger
from db.session import ALL_TENANTS
from tests.world import World
from workers.runner import GiveUp, Job, JobFunction, LeaseLost, Retry, Runner
from workers.sweep import Sweeper, clean_up

QUICK = WorkKind("test.quick", timeout_seconds=5, retry_delays=(0, 0), awaited=True)
BRIEF = WorkKind("test.brief", timeout_seconds=0.1, retry_delays=())


@pytest.fixture(autouse=True, scope="module")
def _kinds() -> Any:
    for kind in (QUICK, BRIEF):
        AREAS.work_kinds[kind.name] = kind
    yield
    for kind in (QUICK, BRIEF):
        del AREAS.work_kinds[kind.name]


@pytest.fixture
async def tenant(world: World, services: Services) -> AsyncIterator[str]:
    yield await world.tenant()
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM work")


async def _accept(services: Services, tenant: str, kind: WorkKind = QUICK, **more: Any) -> str:
    async with services.db.tx(tenant) as tx:
        return await work.accept(tx, services.doorbell, kind, tenant_id=tenant, **more)


async def _row(services: Services, work_id: str) -> dict[str, Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        found = await (await tx.raw()).fetchrow("SELECT * FROM work WHERE id = $1", work_id)
    return dict(found)


async def _sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


def _runner(services: Services, function: JobFunction) -> Runner:
    functions = {QUICK.name: function, BRIEF.name: function}
    return Runner(services, functions, on_any_dead=emit_dead)


async def _eventually(condition: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110  # the condition is in the database
            await asyncio.sleep(0.01)


async def test_work_exists_exactly_if_the_callers_transaction_does(
    services: Services, tenant: str
) -> None:
    tx = services.db.begin(tenant)
    work_id = await work.accept(tx, services.doorbell, QUICK, tenant_id=tenant)
    await tx.rollback()
    async with services.db.tx(tenant, autocommit=True) as check:
        assert await ledger.state_of(check, tenant, work_id) is None


async def test_the_same_key_is_accepted_once(services: Services, tenant: str) -> None:
    await _accept(services, tenant, dedupe_key="a")
    await _accept(services, tenant, dedupe_key="a")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        assert await (await tx.raw()).fetchval("SELECT count(*) FROM work") == 1


async def test_twenty_claims_of_one_row_run_it_once(services: Services, tenant: str) -> None:
    ran: list[str] = []

    async def note(job: Job) -> None:
        ran.append(job.row.id)

    work_id = await _accept(services, tenant)
    runner = _runner(services, note)
    await asyncio.gather(*(runner.run(work_id) for _ in range(20)))
    assert ran == [work_id]
    assert (await _row(services, work_id))["state"] == "done"


async def test_work_that_is_not_due_is_not_run(services: Services, tenant: str) -> None:
    async def never(_job: Job) -> None:
        pytest.fail("ran early")

    work_id = await _accept(services, tenant)
    await _sql(
        services, "UPDATE work SET run_at = now() + interval '1 hour' WHERE id = $1", work_id
    )
    await _runner(services, never).run(work_id)
    assert (await _row(services, work_id))["state"] == "pending"


async def test_results_and_outcome_are_one_transaction(services: Services, tenant: str) -> None:
    async def write_and_lose(job: Job) -> None:
        async with job.finish() as tx:
            raw = await tx.raw()
            await raw.execute("UPDATE tenants SET name = 'written' WHERE id = $1", tenant)
            # Meanwhile the lease went to another worker.
            await _sql(services, "UPDATE work SET lease_token = 'other' WHERE id = $1", job.row.id)

    work_id = await _accept(services, tenant)
    await _runner(services, write_and_lose).run(work_id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        assert await raw.fetchval("SELECT name FROM tenants WHERE id = $1", tenant) != "written"
    assert (await _row(services, work_id))["lease_token"] == "other"


async def test_a_worker_that_lost_its_lease_cannot_write(services: Services, tenant: str) -> None:
    async def lose(job: Job) -> None:
        await _sql(services, "UPDATE work SET lease_token = 'other' WHERE id = $1", job.row.id)
        with pytest.raises(LeaseLost):
            async with job.finish():
                pass
        raise Retry("should change nothing")

    work_id = await _accept(services, tenant)
    await _runner(services, lose).run(work_id)
    row = await _row(services, work_id)
    assert (row["state"], row["lease_token"], row["last_error"]) == ("leased", "other", None)


async def test_an_expired_lease_is_claimed_again(services: Services, tenant: str) -> None:
    work_id = await _accept(services, tenant)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        first = await ledger.claim(await tx.raw(), work_id, "dead-worker", 0.0)
    assert first is not None
    attempts: list[int] = []

    async def note(job: Job) -> None:
        attempts.append(job.row.attempt)

    await _runner(services, note).run(work_id)
    assert attempts == [2]


async def test_leases_are_renewed_while_a_job_runs(services: Services, tenant: str) -> None:
    proceed = asyncio.Event()

    async def wait(_job: Job) -> None:
        await proceed.wait()

    quick = msgspec.structs.replace(
        services, settings=msgspec.structs.replace(services.settings, lease_seconds=0.3)
    )
    runner = _runner(quick, wait)
    work_id = await _accept(services, tenant)
    running = asyncio.create_task(runner.run(work_id))
    renewing = asyncio.create_task(runner.renew_forever())

    async def leased() -> bool:
        return (await _row(services, work_id))["lease_until"] is not None

    await _eventually(leased)
    first = (await _row(services, work_id))["lease_until"]

    async def renewed() -> bool:
        return bool((await _row(services, work_id))["lease_until"] > first)

    await _eventually(renewed)
    proceed.set()
    await running
    renewing.cancel()
    assert (await _row(services, work_id))["state"] == "done"


async def test_a_raising_job_is_tried_again_and_then_dead_with_an_event(
    services: Services, tenant: str
) -> None:
    async def fail(_job: Job) -> None:
        raise RuntimeError("a secret: hunter2")

    work_id = await _accept(services, tenant, ref_id="thing_1")
    runner = _runner(services, fail)
    for _ in range(QUICK.max_attempts):
        await runner.run(work_id)
    row = await _row(services, work_id)
    assert (row["state"], row["attempt"]) == ("dead", 3)
    assert row["last_error"] == "unexpected RuntimeError"
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        event = await (await tx.raw()).fetchrow(
            "SELECT type, data::text AS data FROM event_log WHERE tenant_id = $1", tenant
        )
    assert event["type"] == "system.work.dead"
    assert msgspec.json.decode(event["data"])["work_id"] == work_id
    assert "hunter2" not in event["data"]


async def test_giving_up_is_final_at_once(services: Services, tenant: str) -> None:
    async def give_up(_job: Job) -> None:
        raise GiveUp("pointless")

    work_id = await _accept(services, tenant)
    await _runner(services, give_up).run(work_id)
    assert (await _row(services, work_id))["state"] == "dead"


async def test_a_job_may_say_when_to_try_again(services: Services, tenant: str) -> None:
    async def later(_job: Job) -> None:
        raise Retry("busy", after_seconds=3600)

    work_id = await _accept(services, tenant)
    await _runner(services, later).run(work_id)
    row = await _row(services, work_id)
    assert row["state"] == "pending"
    assert 3500 < (row["run_at"] - row["created_at"]).total_seconds() < 3700


async def test_a_job_over_its_time_is_ended(services: Services, tenant: str) -> None:
    ended = asyncio.Event()

    async def forever(_job: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    work_id = await _accept(services, tenant, BRIEF)
    await _runner(services, forever).run(work_id)
    assert ended.is_set()
    row = await _row(services, work_id)
    assert (row["state"], row["last_error"]) == ("dead", "took more than 0.1 s")


async def test_work_that_kills_its_worker_every_time_ends_as_dead(
    services: Services, tenant: str
) -> None:
    async def never(_job: Job) -> None:
        pytest.fail("ran once too often")

    work_id = await _accept(services, tenant)
    for number in range(QUICK.max_attempts):
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            assert await ledger.claim(await tx.raw(), work_id, f"killed-{number}", 0.0)
    await _runner(services, never).run(work_id)
    assert (await _row(services, work_id))["state"] == "dead"


async def test_cancelled_pending_work_never_runs(services: Services, tenant: str) -> None:
    async def never(_job: Job) -> None:
        pytest.fail("ran")

    work_id = await _accept(services, tenant)
    async with services.db.tx(tenant) as tx:
        assert await work.cancel(tx, services.doorbell, tenant, work_id)
    await _runner(services, never).run(work_id)
    assert (await _row(services, work_id))["state"] == "cancelled"


async def test_another_tenant_cannot_cancel(services: Services, tenant: str, world: World) -> None:
    work_id = await _accept(services, tenant)
    stranger = await world.tenant()
    async with services.db.tx(stranger) as tx:
        assert not await work.cancel(tx, services.doorbell, stranger, work_id)
    assert (await _row(services, work_id))["state"] == "pending"


async def test_cancelling_running_work_interrupts_it_and_it_writes_nothing(
    services: Services, tenant: str
) -> None:
    started = asyncio.Event()

    async def wait(_job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    work_id = await _accept(services, tenant)
    runner = _runner(services, wait)
    running = asyncio.create_task(runner.run(work_id))
    await started.wait()
    async with services.db.tx(tenant) as tx:
        assert await work.cancel(tx, services.doorbell, tenant, work_id)
    runner.cancel(work_id)
    await running
    row = await _row(services, work_id)
    assert (row["state"], row["last_error"]) == ("cancelled", None)


async def test_draining_releases_what_does_not_finish_without_counting_the_attempt(
    services: Services, tenant: str
) -> None:
    started = asyncio.Event()

    async def wait(_job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    work_id = await _accept(services, tenant)
    runner = _runner(services, wait)
    running = asyncio.create_task(runner.run(work_id))
    await started.wait()
    await runner.drain(0.05)
    await running
    row = await _row(services, work_id)
    assert (row["state"], row["attempt"]) == ("pending", 0)


async def test_draining_waits_for_a_claim_that_is_under_way(
    services: Services, tenant: str
) -> None:
    async def quick(_job: Job) -> None:
        return

    work_id = await _accept(services, tenant)
    runner = _runner(services, quick)

    async def claiming() -> bool:
        return runner._claiming == 1

    async with services.db.tx(ALL_TENANTS) as holding:
        raw = await holding.raw()
        await raw.execute("SELECT 1 FROM work WHERE id = $1 FOR UPDATE", work_id)
        running = asyncio.create_task(runner.run(work_id))
        await _eventually(claiming)
        draining = asyncio.create_task(runner.drain(10))
        _, still_draining = await asyncio.wait([draining], timeout=0.1)
        assert still_draining
    await draining
    await running
    assert (await _row(services, work_id))["state"] == "done"


async def test_waiting_returns_as_soon_as_the_work_is_done(services: Services, tenant: str) -> None:
    async def quick(_job: Job) -> None:
        return

    work_id = await _accept(services, tenant)
    waiting = asyncio.create_task(work.wait(services.db, services.doorbell, tenant, work_id, 20))
    await _runner(services, quick).run(work_id)
    assert await asyncio.wait_for(waiting, 5) == "done"


async def test_waiting_gives_the_state_when_the_time_is_up(services: Services, tenant: str) -> None:
    work_id = await _accept(services, tenant)
    assert await work.wait(services.db, services.doorbell, tenant, work_id, 0.1) == "pending"


async def test_waiting_for_another_tenants_work_finds_nothing(
    services: Services, tenant: str, world: World
) -> None:
    work_id = await _accept(services, tenant)
    stranger = await world.tenant()
    assert await work.wait(services.db, services.doorbell, stranger, work_id, 0.1) is None


async def test_correlation_and_cause_go_with_the_work(services: Services, tenant: str) -> None:
    seen: list[Trace] = []

    async def note(_job: Job) -> None:
        seen.append(trace.current())

    async def request() -> str:
        trace.begin(Trace(correlation_id="cor_chain", request_id="req_1"))
        return await _accept(services, tenant, cause_event_id="evt_cause")

    work_id = await asyncio.create_task(request())
    await asyncio.create_task(_runner(services, note).run(work_id))
    assert [(t.correlation_id, t.cause_event_id) for t in seen] == [("cor_chain", "evt_cause")]


# The poller


async def test_the_poller_leaves_alone_what_was_just_dispatched(
    services: Services, tenant: str
) -> None:
    await _accept(services, tenant)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        assert await ledger.dispatch_due(await tx.raw(), [QUICK.name], 30, 10) == []


async def test_the_poller_dispatches_a_lost_wake_up_under_a_new_number(
    services: Services, tenant: str
) -> None:
    work_id = await _accept(services, tenant)
    await _sql(services, "UPDATE work SET dispatched_at = now() - interval '31 seconds'")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        found = await ledger.dispatch_due(await tx.raw(), [QUICK.name], 30, 10)
    assert [(item.id, item.dispatch_no) for item in found] == [(work_id, 1)]


async def test_pollers_never_take_the_same_row(services: Services, tenant: str) -> None:
    for _ in range(40):
        await _accept(services, tenant)
    await _sql(services, "UPDATE work SET dispatched_at = NULL")

    async def poll() -> list[str]:
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return [
                row.id for row in await ledger.dispatch_due(await tx.raw(), [QUICK.name], 30, 15)
            ]

    taken = [
        work_id for batch in await asyncio.gather(*(poll() for _ in range(6))) for work_id in batch
    ]
    assert len(taken) == len(set(taken)) == 40


async def test_with_redis_away_the_poller_runs_the_work_itself(
    services: Services, tenant: str
) -> None:
    done = asyncio.Event()

    async def note(_job: Job) -> None:
        done.set()

    deaf = msgspec.structs.replace(
        services, doorbell=work.Doorbell("unix:///nowhere/redis.sock", AREAS.work_kinds)
    )
    await _accept(deaf, tenant)
    await _sql(services, "UPDATE work SET dispatched_at = NULL")
    sweeper = Sweeper(deaf, _runner(services, note), ["default"])
    await sweeper.poll()
    await asyncio.wait_for(done.wait(), 5)


async def test_accepting_work_with_redis_away_still_answers(
    services: Services, tenant: str
) -> None:
    deaf = msgspec.structs.replace(
        services, doorbell=work.Doorbell("unix:///nowhere/redis.sock", AREAS.work_kinds)
    )
    work_id = await asyncio.wait_for(_accept(deaf, tenant), 2)
    assert (await _row(services, work_id))["state"] == "pending"


async def test_finished_work_is_forgotten_after_its_time(services: Services, tenant: str) -> None:
    async def quick(_job: Job) -> None:
        return

    old, young = await _accept(services, tenant), await _accept(services, tenant)
    runner = _runner(services, quick)
    await runner.run(old)
    await runner.run(young)
    await _sql(
        services, "UPDATE work SET finished_at = now() - interval '8 days' WHERE id = $1", old
    )
    await clean_up(services)
    async with services.db.tx(tenant, autocommit=True) as tx:
        assert await ledger.state_of(tx, tenant, old) is None
        assert await ledger.state_of(tx, tenant, young) == "done"
