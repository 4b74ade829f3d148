"""Limits of the plan: what is beyond them waits in order, or is refused when started by hand."""

import asyncio
from typing import Any

from app.domain.automation.workflows import starting
from app.domain.platform.events.service import emit_dead
from app.kit import trace
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import PATH, create_published, read, start, transform
from tests.database import Row, fetch_rows, run_sql
from tests.platform.events.database import load_work
from tests.world import Client, World
from workers.runner import Runner

DELAY = {"id": "wait", "type": "delay", "config": {"seconds": 3600}}
_EXECUTIONS = """
SELECT id, status, started_at FROM workflow_executions WHERE tenant_id = $1 ORDER BY id
"""


async def _create_owner(world: World, plan: str = "free", **limits: int) -> Client:
    return await world.user("agent_developer", await world.tenant(plan, limits or None))


async def _accept(services: Services, owner: Client, workflow_id: str) -> str:
    """Starts a workflow as triggers do."""
    trace.begin(Trace(new_id("cor"), tenant_id=owner.tenant_id))
    new = starting.NewExecution(
        tenant_id=owner.tenant_id, workflow_id=workflow_id, input={}, trigger_type="event"
    )
    async with services.db.tx(owner.tenant_id) as tx:
        return await starting.accept(tx, services, new)


async def _load(services: Services, owner: Client) -> list[Row]:
    return await fetch_rows(services, _EXECUTIONS, owner.tenant_id)


async def _read_statuses(services: Services, owner: Client) -> list[str]:
    return [row["status"] for row in await _load(services, owner)]


async def _run_work(services: Services, owner: Client, kind: str) -> int:
    """Runs what is due of one kind, as a worker does; returns how much that was."""
    runner = Runner(services, on_any_dead=emit_dead)
    rows = await load_work(services, owner.tenant_id, kind)
    due = [row["id"] for row in rows if row["state"] == "pending"]
    for work_id in due:
        await runner.run(work_id)
    return len(due)


async def test_the_sixth_start_by_hand_in_a_minute_is_refused(
    world: World, services: Services
) -> None:
    owner = await _create_owner(world)
    workflow_id = await create_published(owner, [transform("a", 1)])
    for _ in range(5):
        await start(owner, workflow_id)
    answer = await owner.post(f"{PATH}/{workflow_id}/execute", {})
    error = refused(answer, 429, "rate_limited")
    assert (error["details"]["limit"], error["details"]["window"]) == (5, 60)
    assert 1 <= error["details"]["retry_after"] <= 60
    assert answer.headers["Retry-After"] == str(error["details"]["retry_after"])
    assert len(await _load(services, owner)) == 5
    sql = (
        "UPDATE workflow_executions SET created_at = created_at - interval '1 minute'"
        " WHERE tenant_id = $1"
    )
    await run_sql(services, sql, owner.tenant_id)
    await start(owner, workflow_id)


async def test_the_limits_of_a_tenant_do_not_affect_another(
    world: World, services: Services
) -> None:
    first, second = await _create_owner(world), await _create_owner(world)
    for owner in (first, second):
        workflow_id = await create_published(owner, [transform("a", 1)])
        for _ in range(5):
            await start(owner, workflow_id)
        assert await _read_statuses(services, owner) == ["running", *["pending"] * 4]


async def test_triggered_executions_wait_and_start_in_the_order_of_acceptance(
    world: World, services: Services
) -> None:
    owner = await _create_owner(world)
    workflow_id = await create_published(owner, [transform("a", 1)])
    ids = [await _accept(services, owner, workflow_id) for _ in range(4)]
    for position in range(4):
        done, rest = ["completed"] * position, ["pending"] * (3 - position)
        assert await _read_statuses(services, owner) == [*done, "running", *rest]
        assert await _run_work(services, owner, "workflows.node") == 1
        assert await _run_work(services, owner, "workflows.start") == (1 if rest else 0)
    rows = await _load(services, owner)
    assert [row["id"] for row in rows] == ids
    assert [row["started_at"] for row in rows] == sorted(row["started_at"] for row in rows)


async def test_beyond_those_of_a_minute_they_start_in_the_next(
    world: World, services: Services
) -> None:
    owner = await _create_owner(world)
    workflow_id = await create_published(owner, [transform("a", 1)])
    for _ in range(7):
        await _accept(services, owner, workflow_id)
    while await _run_work(services, owner, "workflows.node"):
        await _run_work(services, owner, "workflows.start")
    assert await _read_statuses(services, owner) == [*["completed"] * 5, *["pending"] * 2]
    await starting.start_all_ready(services)
    assert await _read_statuses(services, owner) == [*["completed"] * 5, *["pending"] * 2]
    sql = "UPDATE workflow_executions SET started_at = started_at - interval '1 minute'"
    await run_sql(services, f"{sql} WHERE tenant_id = $1", owner.tenant_id)
    await starting.start_all_ready(services)
    assert await _read_statuses(services, owner) == [
        *["completed"] * 5,
        "running",
        "pending",
    ]


async def test_nothing_is_lost_when_the_work_that_starts_the_next_is_lost(
    world: World, services: Services
) -> None:
    owner = await _create_owner(world)
    workflow_id = await create_published(owner, [transform("a", 1)])
    for _ in range(2):
        await _accept(services, owner, workflow_id)
    await _run_work(services, owner, "workflows.node")
    sql = "DELETE FROM work WHERE tenant_id = $1 AND kind = 'workflows.start'"
    await run_sql(services, sql, owner.tenant_id)
    assert await _read_statuses(services, owner) == ["completed", "pending"]
    await starting.start_all_ready(services)
    assert await _read_statuses(services, owner) == ["completed", "running"]


async def test_an_execution_that_waits_frees_its_slot(world: World, services: Services) -> None:
    owner = await _create_owner(world)
    workflow_id = await create_published(owner, [DELAY])
    ids = [await _accept(services, owner, workflow_id) for _ in range(2)]
    assert await _read_statuses(services, owner) == ["running", "pending"]
    await _run_work(services, owner, "workflows.node")
    await _run_work(services, owner, "workflows.start")
    assert await _read_statuses(services, owner) == ["waiting", "running"]
    assert (await read(owner, ids[0]))["nodes"][0]["status"] == "waiting"


async def test_a_cancelled_execution_frees_its_slot(world: World, services: Services) -> None:
    owner = await _create_owner(world)
    workflow_id = await create_published(owner, [transform("a", 1)])
    ids = [await _accept(services, owner, workflow_id) for _ in range(2)]
    await owner.post(f"/api/v1/workflow-executions/{ids[0]}/cancel")
    assert await _run_work(services, owner, "workflows.start") == 1
    assert await _read_statuses(services, owner) == ["cancelled", "running"]


async def test_fifty_at_once_never_exceed_the_limit(world: World, services: Services) -> None:
    limits: dict[str, Any] = {"concurrent_executions": 3, "workflow_executions_per_minute": 1000}
    owner = await _create_owner(world, "enterprise", **limits)
    workflow_id = await create_published(owner, [transform("a", 1)])
    await asyncio.gather(*(_accept(services, owner, workflow_id) for _ in range(50)))
    statuses = await _read_statuses(services, owner)
    assert (statuses.count("running"), statuses.count("pending")) == (3, 47)
    await asyncio.gather(*(starting.start_all_ready(services) for _ in range(5)))
    assert (await _read_statuses(services, owner)).count("running") == 3
