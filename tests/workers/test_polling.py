"""The poller of the sweeper, and the deletion of finished work."""

import asyncio
from contextlib import suppress

import msgspec
import pytest

from app.areas import AREAS
from app.domain.area import PeriodicTask
from app.domain.job import Job
from app.jobs import work
from app.services import Services
from db import ledger
from db.session import ALL_TENANTS
from tests.database import fetch_rows
from tests.workers.factories import QUICK, accept, create_runner, execute, read_row
from workers import sweep
from workers.sweep import Sweeper, clean_up, clean_up_when_due


def _disconnect_redis(services: Services) -> Services:
    doorbell = work.Doorbell("unix:///nowhere/redis.sock", AREAS.work_kinds)
    return msgspec.structs.replace(services, doorbell=doorbell)


async def test_the_poller_skips_work_that_was_just_dispatched(
    services: Services, tenant: str
) -> None:
    await accept(services, tenant)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        assert await ledger.dispatch_due(await tx.raw(), [QUICK.name], 30, 10) == []


async def test_the_poller_dispatches_a_lost_wake_up_under_a_new_number(
    services: Services, tenant: str
) -> None:
    work_id = await accept(services, tenant)
    await execute(services, "UPDATE work SET dispatched_at = now() - interval '31 seconds'")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        due = await ledger.dispatch_due(await tx.raw(), [QUICK.name], 30, 10)
    assert [(item.id, item.dispatch_no) for item in due] == [(work_id, 1)]


async def test_pollers_never_dispatch_the_same_row(services: Services, tenant: str) -> None:
    for _ in range(40):
        await accept(services, tenant)
    await execute(services, "UPDATE work SET dispatched_at = NULL")

    async def poll() -> list[str]:
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return [
                row.id for row in await ledger.dispatch_due(await tx.raw(), [QUICK.name], 30, 15)
            ]

    batches = await asyncio.gather(*(poll() for _ in range(6)))
    work_ids = [work_id for batch in batches for work_id in batch]
    assert len(work_ids) == len(set(work_ids)) == 40


async def test_the_poller_runs_work_itself_while_redis_is_unavailable(
    services: Services, tenant: str
) -> None:
    was_run = asyncio.Event()

    async def record(_job: Job) -> None:
        was_run.set()

    without_redis = _disconnect_redis(services)
    await accept(without_redis, tenant)
    await execute(services, "UPDATE work SET dispatched_at = NULL")
    sweeper = Sweeper(without_redis, create_runner(services, record), ["default"])
    await sweeper.poll()
    await asyncio.wait_for(was_run.wait(), 5)


async def test_a_long_backlog_without_redis_is_run_in_bounded_parts(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_BATCH", 20)
    # All work that was dispatched is due again at the next poll.
    monkeypatch.setattr(sweep, "_POLL_SECONDS", 0.0)
    may_end, work_ids = asyncio.Event(), list[str]()

    async def wait(job: Job) -> None:
        work_ids.append(job.row.id)
        await may_end.wait()

    without_redis = _disconnect_redis(services)
    for _ in range(45):
        await accept(without_redis, tenant)
    await execute(services, "UPDATE work SET dispatched_at = NULL")
    sweeper = Sweeper(without_redis, create_runner(services, wait), ["default"])
    for _ in range(4):
        await sweeper.poll()
        assert len(sweeper._tasks) == 20
    may_end.set()
    while len(work_ids) < 45:
        await asyncio.gather(*sweeper._tasks)
        await sweeper.poll()
    assert len(set(work_ids)) == 45


class _SwallowingDoorbell(work.Doorbell):
    """Returns as if it had failed when it is cancelled, as the Redis client may while it
    connects.
    """

    rings = 0
    started = asyncio.Event()

    async def ring(self, *_args: object) -> bool:
        self.rings += 1
        self.started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return False


async def test_a_poller_ends_although_the_redis_client_swallowed_its_cancellation(
    services: Services, tenant: str
) -> None:
    doorbell = _SwallowingDoorbell("unix:///nowhere/redis.sock", AREAS.work_kinds)
    await accept(services, tenant)
    await execute(services, "UPDATE work SET dispatched_at = NULL")
    swallowing = msgspec.structs.replace(services, doorbell=doorbell)

    async def run(_job: Job) -> None:
        await asyncio.Event().wait()

    sweeper = Sweeper(swallowing, create_runner(services, run), ["default"])
    polling = asyncio.create_task(sweeper.poll_forever())
    await asyncio.wait_for(doorbell.started.wait(), 20)
    polling.cancel()
    done, _ = await asyncio.wait([polling], timeout=20)
    assert done
    assert doorbell.rings == 1
    # The work that it began to run itself, and the periodic tasks.
    assert sweeper._tasks
    await sweeper.stop(20)
    assert not sweeper._tasks


async def test_work_is_accepted_while_redis_is_unavailable(services: Services, tenant: str) -> None:
    without_redis = _disconnect_redis(services)
    work_id = await asyncio.wait_for(accept(without_redis, tenant), 2)
    assert (await read_row(services, work_id))["state"] == "pending"


async def test_finished_work_is_deleted_after_its_retention_time(
    services: Services, tenant: str
) -> None:
    async def quick(_job: Job) -> None:
        return

    old, young = await accept(services, tenant), await accept(services, tenant)
    runner = create_runner(services, quick)
    await runner.run(old)
    await runner.run(young)
    await execute(
        services, "UPDATE work SET finished_at = now() - interval '8 days' WHERE id = $1", old
    )
    await clean_up(services)
    async with services.db.tx(tenant, autocommit=True) as tx:
        assert await ledger.state_of(tx, tenant, old) is None
        assert await ledger.state_of(tx, tenant, young) == "done"


_FINISHED_ROWS = """
INSERT INTO work (id, tenant_id, kind, state, max_attempts, correlation_id, finished_at)
SELECT 'wrk_old_' || n, $1, 'test.quick', 'done', 1, 'cor', now() - interval '8 days'
FROM generate_series(1, $2::int) n
"""


async def test_finished_work_of_many_batches_is_deleted_in_one_round(
    services: Services, tenant: str
) -> None:
    await execute(services, _FINISHED_ROWS, tenant, 6001)
    assert not await clean_up(services)
    sql = "SELECT count(*) AS count FROM work WHERE tenant_id = $1"
    assert await fetch_rows(services, sql, tenant) == [{"count": 0}]


async def test_workers_together_complete_one_round_of_the_clean_up_per_period(
    services: Services, tenant: str
) -> None:
    count_rows = "SELECT count(*) AS count FROM work WHERE tenant_id = $1"
    await clean_up(services)
    await execute(services, _FINISHED_ROWS, tenant, 1)
    assert not await clean_up_when_due(services)
    assert await fetch_rows(services, count_rows, tenant) == [{"count": 1}]
    await execute(
        services, "UPDATE instance_state SET number = number - 300 WHERE key = 'clean_up'"
    )
    assert not await clean_up_when_due(services)
    assert await fetch_rows(services, count_rows, tenant) == [{"count": 0}]


async def test_a_round_that_ran_out_of_time_is_continued_by_any_worker(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_RULE_SECONDS", 0.0)
    await execute(services, "DELETE FROM instance_state WHERE key = 'clean_up'")
    await execute(services, _FINISHED_ROWS, tenant, 1500)
    assert await clean_up_when_due(services)
    assert not await clean_up_when_due(services)
    sql = "SELECT count(*) AS count FROM work WHERE tenant_id = $1"
    assert await fetch_rows(services, sql, tenant) == [{"count": 0}]


class _Clock:
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


async def test_a_periodic_task_that_has_more_to_do_runs_again_at_the_next_poll(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, outcomes = _Clock(), [True, False, False]

    async def delete_batch(_services: Services) -> bool:
        return outcomes.pop(0)

    monkeypatch.setattr(sweep, "time", clock)
    monkeypatch.setattr(sweep, "PERIODIC_TASKS", (PeriodicTask(20.0, delete_batch),))
    sweeper = Sweeper(services, create_runner(services, lambda _job: asyncio.sleep(0)), [])
    remaining = []
    for seconds in (19.0, 20.0, 20.0, 39.0, 40.0):
        clock.seconds = seconds
        sweeper._start_periodic_tasks()
        await asyncio.gather(*sweeper._tasks)
        remaining.append(len(outcomes))
    assert remaining == [3, 2, 1, 1, 0]
