"""Jobs that fail: retries, the end of attempts, time limits."""

import asyncio

import msgspec
import pytest

from app.domain.job import GiveUp, Job, Postpone, Retry
from app.kit import clock, logs
from app.services import Services
from db import ledger
from db.session import ALL_TENANTS
from tests.database import run_sql
from tests.workers.factories import BRIEF, QUICK, accept, create_runner, read_row


async def test_a_job_that_raises_is_retried_and_then_dead_with_an_event(
    services: Services, tenant: str
) -> None:
    async def fail(_job: Job) -> None:
        raise RuntimeError("a secret: hunter2")

    work_id = await accept(services, tenant, ref_id="thing_1")
    runner = create_runner(services, fail)
    for _ in range(QUICK.max_attempts):
        await runner.run(work_id)
    row = await read_row(services, work_id)
    assert (row["state"], row["attempt"]) == ("dead", 3)
    assert row["last_error"] == "unexpected RuntimeError"
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        event = await (await tx.raw()).fetchrow(
            "SELECT type, data::text AS data FROM event_log WHERE tenant_id = $1", tenant
        )
    assert event["type"] == "system.work.dead"
    assert msgspec.json.decode(event["data"])["work_id"] == work_id
    assert "hunter2" not in event["data"]


async def test_the_text_of_an_unexpected_error_is_not_logged(
    services: Services, tenant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(_job: Job) -> None:
        raise RuntimeError("a secret: " + "hunter2".upper())

    work_id = await accept(services, tenant)
    logs.configure("warning", "json")
    await create_runner(services, fail).run(work_id)
    lines = [msgspec.json.decode(line) for line in capsys.readouterr().err.splitlines()]
    (line,) = [line for line in lines if line["event"] == "work raised"]
    assert line["work_id"] == work_id
    assert "in fail" in line["exception"]
    assert "RuntimeError" in line["exception"]
    assert "HUNTER2" not in str(lines)


async def test_work_that_gives_up_is_dead_at_once(services: Services, tenant: str) -> None:
    async def give_up(_job: Job) -> None:
        raise GiveUp("pointless")

    work_id = await accept(services, tenant)
    await create_runner(services, give_up).run(work_id)
    assert (await read_row(services, work_id))["state"] == "dead"


async def test_a_job_may_set_the_time_of_its_retry(services: Services, tenant: str) -> None:
    async def later(_job: Job) -> None:
        raise Retry("busy", after_seconds=3600)

    work_id = await accept(services, tenant)
    await create_runner(services, later).run(work_id)
    row = await read_row(services, work_id)
    assert row["state"] == "pending"
    assert 3500 < (row["run_at"] - row["created_at"]).total_seconds() < 3700


async def test_work_that_is_postponed_keeps_its_attempts(services: Services, tenant: str) -> None:
    async def postpone(_job: Job) -> None:
        raise Postpone

    work_id = await accept(services, tenant)
    runner = create_runner(services, postpone)
    for _ in range(QUICK.max_attempts + 1):
        await runner.run(work_id)
        row = await read_row(services, work_id)
        assert (row["state"], row["attempt"]) == ("pending", 0)
        assert (row["run_at"] - clock.now()).total_seconds() < 2
        await run_sql(services, "UPDATE work SET run_at = now() WHERE id = $1", work_id)


async def test_a_job_over_its_time_limit_is_cancelled(services: Services, tenant: str) -> None:
    ended = asyncio.Event()

    async def forever(_job: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    work_id = await accept(services, tenant, BRIEF)
    await create_runner(services, forever).run(work_id)
    assert ended.is_set()
    row = await read_row(services, work_id)
    assert (row["state"], row["last_error"]) == ("dead", "took more than 0.1 s")


async def test_work_that_kills_its_worker_every_time_becomes_dead(
    services: Services, tenant: str
) -> None:
    async def never(_job: Job) -> None:
        pytest.fail("ran once too often")

    work_id = await accept(services, tenant)
    for number in range(QUICK.max_attempts):
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            assert await ledger.claim(await tx.raw(), work_id, f"killed-{number}", 0.0)
    await create_runner(services, never).run(work_id)
    assert (await read_row(services, work_id))["state"] == "dead"
