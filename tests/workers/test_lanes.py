"""Work that is claimed by the lanes of tenants, within their shares."""

import asyncio
import time
from collections import Counter
from typing import Any

import asyncpg
import pytest

from app.areas import AREAS
from app.domain.job import Job
from app.jobs import work
from app.services import Services
from db import lanes, ledger
from db.ledger import Scan, WorkRow
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.database import Row, fetch_rows
from tests.workers.factories import SHARED, accept, create_runner, execute
from tests.world import World
from workers import lane_scanner
from workers.lane_scanner import LaneScanner
from workers.sweep import Sweeper

_SHARE = SHARED.per_tenant or 0
# An update changes `xmin` and `ctid`, a lock changes `xmax`.
_VERSIONS = "SELECT id, ctid, xmin, xmax FROM work WHERE state = 'pending' ORDER BY id"


class _Jobs:
    """Jobs of SHARED that end when `may_end` is set, or their tenant is in `ended_tenants`."""

    def __init__(self, services: Services, slots: int = 16) -> None:
        self.tenants: Counter[str] = Counter()
        self.work_ids: list[str] = []
        self.may_end = asyncio.Event()
        self.ended_tenants: set[str] = set()
        self.runner = create_runner(services, self._run)
        self.scanner = LaneScanner(services, self.runner, SHARED.name, slots=slots, share=_SHARE)

    async def _run(self, job: Job) -> None:
        self.tenants[job.tenant_id] += 1
        self.work_ids.append(job.row.id)
        await until(lambda: self.may_end.is_set() or job.tenant_id in self.ended_tenants)


async def _accept_many(services: Services, tenant: str, count: int) -> None:
    for _ in range(count):
        await accept(services, tenant, SHARED)


async def _load_versions(services: Services) -> list[Row]:
    return await fetch_rows(services, _VERSIONS)


async def test_work_beyond_the_share_of_a_tenant_is_not_touched(
    services: Services, tenant: str
) -> None:
    await _accept_many(services, tenant, 20)
    # As if no worker had been woken for it.
    await execute(services, "UPDATE work SET dispatched_at = NULL")
    jobs = _Jobs(services)
    sweeper = Sweeper(services, jobs.runner, [SHARED.queue])
    assert await jobs.scanner.scan() == _SHARE
    before = await _load_versions(services)
    assert len(before) == 20 - _SHARE
    for _ in range(3):
        assert await jobs.scanner.scan() == 0
        await sweeper.poll()
    assert await _load_versions(services) == before
    jobs.may_end.set()
    await jobs.runner.drain(5)


async def test_work_beyond_the_limit_of_a_scan_is_not_touched(
    services: Services, tenant: str, world: World
) -> None:
    tenants = [tenant, *[await world.tenant() for _ in range(5)]]
    for name in tenants:
        await _accept_many(services, name, 4)
    before = await _load_versions(services)
    jobs = _Jobs(services, slots=3)
    assert await jobs.scanner.scan() == 3
    remaining = await _load_versions(services)
    assert len(remaining) == 21
    assert [row for row in before if row in remaining] == remaining
    jobs.may_end.set()
    await jobs.runner.drain(5)


async def test_a_tenant_with_little_work_does_not_wait_for_one_with_much(
    services: Services, tenant: str, world: World
) -> None:
    await _accept_many(services, tenant, 30)
    other = await world.tenant()
    await _accept_many(services, other, 1)
    jobs = _Jobs(services, slots=2)
    assert await jobs.scanner.scan() == 2
    await until(lambda: len(jobs.work_ids) == 2)
    assert jobs.tenants == {tenant: 1, other: 1}
    jobs.may_end.set()
    await jobs.runner.drain(5)


async def test_a_free_slot_is_used_at_once(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    await _accept_many(services, tenant, 10)
    jobs = _Jobs(services)
    jobs.may_end.set()
    run = asyncio.create_task(jobs.scanner.run())
    await until(lambda: len(jobs.work_ids) == 10)
    jobs.scanner.stop()
    await run
    assert len(set(jobs.work_ids)) == 10


async def test_work_that_waits_is_found_although_jobs_end_during_the_claim(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim uses all free slots, and yet some are free after it."""
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    jobs = _Jobs(services)
    await _accept_many(services, tenant, 1)
    assert await jobs.scanner.scan() == 1
    await _accept_many(services, tenant, 5)
    claim_lanes = ledger.claim_lanes

    async def claim_while_jobs_end(*args: Any) -> Scan:
        scan = await claim_lanes(*args)
        jobs.may_end.set()
        await until(lambda: not jobs.runner.running_count)
        return scan

    monkeypatch.setattr(ledger, "claim_lanes", claim_while_jobs_end)
    jobs.scanner.wake()
    run = asyncio.create_task(jobs.scanner.run())
    await until(lambda: len(jobs.work_ids) == 6)
    jobs.scanner.stop()
    await run


async def test_new_work_runs_without_a_scan_within_the_share(
    services: Services, tenant: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    jobs = _Jobs(services)
    assert await jobs.scanner.scan() == 0
    accepted = [await accept(services, tenant, SHARED) for _ in range(_SHARE)]
    other = await accept(services, await world.tenant(), SHARED)
    runs = [asyncio.create_task(jobs.scanner.run_new(id_)) for id_ in (*accepted, other)]
    await until(lambda: set(jobs.work_ids) == {*accepted, other})
    assert jobs.scanner._scan_at > 0.0
    # Beyond the share a scan decides, when a job has ended.
    await jobs.scanner.run_new(await accept(services, tenant, SHARED))
    assert jobs.scanner._scan_at == 0.0
    assert jobs.runner.running_count == _SHARE + 1
    jobs.may_end.set()
    await asyncio.gather(*runs)


async def test_new_work_waits_for_a_slot_of_its_process(services: Services, world: World) -> None:
    jobs = _Jobs(services, slots=2)
    accepted = [await accept(services, await world.tenant(), SHARED) for _ in range(5)]
    runs = [asyncio.create_task(jobs.scanner.run_new(work_id)) for work_id in accepted]
    await until(lambda: jobs.runner.running_count == 2)
    assert await jobs.scanner.scan() == 0
    assert jobs.runner.running_count == 2
    jobs.may_end.set()
    await asyncio.gather(*runs)


async def test_new_work_and_a_scan_share_the_slots(
    services: Services, tenant: str, world: World
) -> None:
    await _accept_many(services, await world.tenant(), 1)
    newest = await accept(services, tenant, SHARED)
    jobs = _Jobs(services, slots=1)
    run = asyncio.create_task(jobs.scanner.run_new(newest))
    await asyncio.sleep(0)
    assert jobs.scanner._claiming.locked()
    assert await jobs.scanner.scan() == 0
    assert jobs.runner.running_count == 1
    jobs.may_end.set()
    await run


async def test_new_work_does_not_overtake_work_that_waits(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    await _accept_many(services, tenant, _SHARE + 1)
    jobs = _Jobs(services)
    assert await jobs.scanner.scan() == _SHARE
    jobs.may_end.set()
    await until(lambda: jobs.runner.running_count == 0)
    newest = await accept(services, tenant, SHARED)
    await jobs.scanner.run_new(newest)
    assert jobs.runner.running_count == 0
    assert await jobs.scanner.scan() == 2
    await until(lambda: len(jobs.work_ids) == _SHARE + 2)
    assert jobs.work_ids[-1] == newest
    await jobs.runner.drain(5)


async def test_only_a_slot_that_work_may_wait_for_starts_a_scan(
    services: Services, tenant: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    other = await world.tenant()
    await _accept_many(services, tenant, _SHARE + 1)
    await _accept_many(services, other, 1)
    jobs = _Jobs(services)
    assert await jobs.scanner.scan() == _SHARE + 1
    jobs.ended_tenants.add(other)
    await until(lambda: jobs.runner.running_count == _SHARE)
    assert jobs.scanner._scan_at > time.monotonic() + 300
    jobs.ended_tenants.add(tenant)
    await until(lambda: jobs.scanner._scan_at < time.monotonic() + 300)
    assert await jobs.scanner.scan() == 1
    await jobs.runner.drain(5)


async def test_a_finished_job_starts_a_scan_when_all_slots_were_used(
    services: Services, tenant: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    other = await world.tenant()
    await _accept_many(services, tenant, 1)
    jobs = _Jobs(services, slots=1)
    assert await jobs.scanner.scan() == 1
    await _accept_many(services, other, 1)
    assert await jobs.scanner.scan() == 0
    jobs.may_end.set()
    await until(lambda: jobs.scanner._scan_at < time.monotonic() + 300)
    assert await jobs.scanner.scan() == 1
    await jobs.runner.drain(5)


async def test_a_scan_of_all_lanes_without_a_claim_is_followed_by_a_pause(
    services: Services, tenant: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_scanner, "_SCAN_SECONDS", 600.0)
    monkeypatch.setattr(lanes, "LANES_PER_SCAN", 2)
    await _accept_many(services, tenant, _SHARE + 1)
    jobs = _Jobs(services)
    assert await jobs.scanner.scan() == _SHARE
    for _ in range(3):
        await _accept_many(services, await world.tenant(), 1)
    await execute(
        services,
        "UPDATE work SET run_at = now() + interval '1 hour' WHERE tenant_id <> $1",
        tenant,
    )
    pauses = []
    for _ in range(6):
        assert await jobs.scanner.scan() == 0
        pauses.append(jobs.scanner._scan_at > time.monotonic() + 300)
    # Two scans with two lanes each, and one that finds the end.
    assert pauses == [False, False, True] * 2
    jobs.may_end.set()
    await jobs.runner.drain(5)


async def test_workers_never_claim_the_same_row(
    services: Services, tenant: str, world: World
) -> None:
    for name in (tenant, *[await world.tenant() for _ in range(9)]):
        await _accept_many(services, name, 4)
    workers = [_Jobs(services) for _ in range(4)]
    runs = [asyncio.create_task(jobs.scanner.run()) for jobs in workers]
    for jobs in workers:
        jobs.may_end.set()
    await until(lambda: sum(len(jobs.work_ids) for jobs in workers) == 40)
    for jobs in workers:
        jobs.scanner.stop()
    await asyncio.gather(*runs)
    assert len({work_id for jobs in workers for work_id in jobs.work_ids}) == 40


def test_a_kind_with_shares_is_alone_on_its_queue() -> None:
    """The queue only wakes its scanner, which claims no other kind."""
    kinds = [job.kind for area in AREAS for job in area.jobs]
    queues = Counter(kind.queue for kind in kinds)
    shared = [kind.queue for kind in kinds if kind.per_tenant is not None]
    assert shared
    assert {queues[queue] for queue in shared} == {1}


async def test_work_whose_lease_expired_runs_after_what_was_due_before(
    services: Services, tenant: str
) -> None:
    lost_id = await accept(services, tenant, SHARED)
    await execute(
        services,
        "UPDATE work SET state = 'leased', lease_token = 'lost', attempt = 1,"
        " lease_until = now() - interval '1 second'",
    )
    for minutes in (2, 1):
        await _accept_many(services, tenant, 1)
        await execute(
            services,
            "UPDATE work SET run_at = now() - $1 * interval '1 minute' WHERE run_at > now() - "
            "interval '30 seconds' AND state = 'pending'",
            minutes,
        )
    jobs = _Jobs(services)
    jobs.may_end.set()
    for count in (_SHARE, 1):
        assert await jobs.scanner.scan() == count
        await until(lambda: not jobs.runner.running_count)
    assert jobs.work_ids[-1] == lost_id


# Rows that are claimed and cannot be started

_STATES = "SELECT state, attempt FROM work ORDER BY id"


async def test_work_that_was_claimed_and_not_started_has_no_attempt(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _accept_many(services, tenant, _SHARE)
    jobs = _Jobs(services)

    async def fail(*_args: object) -> None:
        raise ConnectionError("Postgres restarts")

    with monkeypatch.context() as patched:
        patched.setattr(jobs.scanner, "_load_payloads", fail)
        patched.setattr(jobs.runner, "put_back", fail)
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await jobs.scanner.scan()
    assert await fetch_rows(services, _STATES) == [{"state": "leased", "attempt": 1}] * _SHARE
    await jobs.scanner.scan()
    assert await fetch_rows(services, _STATES) == [{"state": "pending", "attempt": 0}] * _SHARE


async def test_a_row_that_cannot_be_put_back_does_not_stop_scans(
    services: Services, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _accept_many(services, tenant, _SHARE)
    jobs = _Jobs(services)
    jobs.may_end.set()

    async def refuse(row: WorkRow) -> None:
        raise asyncpg.LockNotAvailableError(row.id)

    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await ledger.claim(await tx.raw(), await accept(services, tenant), "lease", 30)
    assert row is not None
    jobs.scanner._unstarted.append(row)
    monkeypatch.setattr(jobs.runner, "put_back", refuse)
    with pytest.raises(asyncpg.LockNotAvailableError):
        await jobs.scanner.scan()
    assert await jobs.scanner.scan() == _SHARE
    await jobs.runner.drain(5)


async def test_a_kind_with_shares_is_not_accepted_without_a_tenant(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        with pytest.raises(ValueError, match="needs a tenant"):
            await work.accept(tx, SHARED, tenant_id=None)
