"""Approvals that nobody decides in time."""

import asyncio

from app.domain.area import FinishedCall
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused, wait_until
from tests.automation.approvals.factories import (
    CALLER_PREFIX,
    PATH,
    cancel,
    read_approval,
    read_timer,
    request,
)
from tests.database import fetch_rows, run_sql
from tests.platform.events.database import load_events
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.world import Client, World
from workers.runner import Runner


async def _let_time_pass(services: Services, approval_id: str) -> str:
    """Makes the time-out due; returns its work."""
    timer = await read_timer(services, approval_id)
    past = "now() - interval '1 second'"
    await run_sql(services, f"UPDATE approvals SET expires_at = {past} WHERE id = $1", approval_id)
    await run_sql(services, f"UPDATE work SET run_at = {past} WHERE id = $1", timer["id"])
    work_id: str = timer["id"]
    return work_id


async def test_a_worker_ends_an_approval_when_its_time_is_up(
    services: Services, stores: Stores, developer: Client
) -> None:
    await cancel_earlier_work(stores)
    async with run_worker(stores.settings, "default", slots=1) as worker:
        approval_id = await request(services, developer.tenant_id, timeout_seconds=0.05)

        async def has_run() -> bool:
            await worker.sweeper.poll()
            return bool((await read_timer(services, approval_id))["state"] == "done")

        await wait_until(has_run)
    approval = await read_approval(developer, approval_id)
    assert approval["status"] == "timed_out"
    assert approval["decided_at"] >= approval["expires_at"]
    assert (approval["decided_by"], approval["comment"]) == (None, None)


async def test_a_time_out_is_emitted_and_reported_to_the_caller(
    services: Services, world: World, runner: Runner, calls: list[FinishedCall]
) -> None:
    user, caller_id = await world.user("agent_user"), new_id(CALLER_PREFIX)
    approval_id = await request(services, user.tenant_id, caller_id=caller_id, timeout_seconds=60.0)
    await runner.run(await _let_time_pass(services, approval_id))
    approval = await read_approval(user, approval_id)
    assert approval["status"] == "timed_out"
    (event,) = await load_events(services, user.tenant_id, "approval.timeout")
    assert event["data"] == {
        "approval_id": approval_id,
        "workflow_execution_id": "wfx_1",
        "node_id": "review",
        "title": "Refund order 4711",
        "expires_at": approval["expires_at"],
    }
    (call,) = calls
    assert (call.tenant_id, call.caller_id) == (user.tenant_id, caller_id)
    assert call.output == {"status": "timed_out", "approved": False, "comment": None}
    error = refused(await user.post(f"{PATH}/{approval_id}/approve"), 409, "already_decided")
    assert error["details"] == {
        "status": "timed_out",
        "decided_by": None,
        "decided_at": approval["decided_at"],
    }


async def test_a_decision_after_the_time_is_refused_before_the_timer_has_run(
    services: Services, world: World, calls: list[FinishedCall]
) -> None:
    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id, timeout_seconds=60.0)
    await _let_time_pass(services, approval_id)
    error = refused(await user.post(f"{PATH}/{approval_id}/approve"), 409, "approval_expired")
    approval = await read_approval(user, approval_id)
    assert approval["status"] == "pending"
    assert error["details"] == {"expires_at": approval["expires_at"]}
    assert calls == []


async def test_a_decision_cancels_the_timer(services: Services, world: World) -> None:
    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id, timeout_seconds=60.0)
    assert (await user.post(f"{PATH}/{approval_id}/reject")).status_code == 200
    assert (await read_timer(services, approval_id))["state"] == "cancelled"


async def test_a_timer_that_runs_after_a_decision_changes_nothing(
    services: Services, world: World, runner: Runner, calls: list[FinishedCall]
) -> None:
    user = await world.user("agent_user")
    approval_id = await request(services, user.tenant_id, timeout_seconds=60.0)
    approval = (await user.post(f"{PATH}/{approval_id}/reject")).json()["data"]
    work_id = (await read_timer(services, approval_id))["id"]
    due = "UPDATE work SET state = 'pending', run_at = now() WHERE id = $1"
    await run_sql(services, due, work_id)
    await runner.run(work_id)
    assert (await read_timer(services, approval_id))["state"] == "done"
    assert await read_approval(user, approval_id) == approval
    assert len(calls) == 1
    assert await load_events(services, user.tenant_id, "approval.timeout") == []


async def test_a_timer_that_waits_for_a_cancellation_does_not_stop_it(
    services: Services, world: World, runner: Runner, calls: list[FinishedCall]
) -> None:
    """The timer has locked its work; the cancellation has locked the approval."""
    user, caller_id = await world.user("agent_user"), new_id(CALLER_PREFIX)
    tenant_id = user.tenant_id
    approval_id = await request(services, tenant_id, caller_id=caller_id, timeout_seconds=60.0)
    work_id = await _let_time_pass(services, approval_id)
    async with services.db.tx(tenant_id) as tx:
        raw = await tx.raw()
        await raw.execute("SELECT 1 FROM approvals WHERE id = $1 FOR UPDATE", approval_id)
        timer = asyncio.create_task(runner.run(work_id))
        await wait_until(lambda: raw.fetchval("SELECT 1 FROM pg_locks WHERE NOT granted LIMIT 1"))
        await cancel(tx, services, tenant_id, caller_id)
    await timer
    assert (await read_timer(services, approval_id))["state"] == "done"
    assert (await read_approval(user, approval_id))["status"] == "cancelled"
    assert calls == []


async def test_a_timer_that_is_given_up_ends_the_approval_all_the_same(
    services: Services, developer: Client
) -> None:
    approval_id = await request(services, developer.tenant_id, timeout_seconds=60)
    work_id = await _let_time_pass(services, approval_id)
    await run_sql(services, "UPDATE work SET attempt = max_attempts WHERE id = $1", work_id)
    await Runner(services).run(work_id)
    (row,) = await fetch_rows(services, "SELECT state FROM work WHERE id = $1", work_id)
    assert row["state"] == "dead"
    (row,) = await fetch_rows(services, "SELECT status FROM approvals WHERE id = $1", approval_id)
    assert row["status"] == "timed_out"
