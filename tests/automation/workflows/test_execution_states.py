"""Executions that no worker runs: those that are pending or running stay so."""

from datetime import datetime
from typing import Any

from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    create_published,
    create_workflow,
    read,
    start,
    statuses,
    transform,
)
from tests.database import run_sql
from tests.world import Client, World

SUMMARY = {
    "id",
    "workflow_id",
    "version",
    "status",
    "trigger",
    "started_by",
    "error",
    "correlation_id",
    "created_at",
    "started_at",
    "finished_at",
}


async def _post(client: Client, execution_id: str, action: str) -> Any:
    return await client.post(f"{EXECUTIONS}/{execution_id}/{action}")


async def test_executions_are_filtered_sorted_and_paged(
    developer: Client, services: Services
) -> None:
    workflow_id = await create_published(developer, [transform("a", 1)])
    other_id = await create_published(developer, [transform("a", 1)])
    ids = [await start(developer, workflow_id) for _ in range(3)]
    other = await start(developer, other_id)
    await _post(developer, ids[1], "cancel")
    for days, execution_id in enumerate(ids):
        sql = "UPDATE workflow_executions SET created_at = $2, trigger_type = $3 WHERE id = $1"
        moment = datetime.fromisoformat(f"2026-01-0{days + 1}T12:00:00+00:00")
        await run_sql(services, sql, execution_id, moment, ("manual", "event", "form")[days])
    path = f"{PATH}/{workflow_id}/executions"

    async def list_ids(path: str = path, **params: Any) -> list[str]:
        answer = await developer.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["data"]]

    assert await list_ids() == ids[::-1]
    assert await list_ids(sort="created_at") == ids
    assert await list_ids(status="cancelled") == [ids[1]]
    assert await list_ids(trigger="event") == [ids[1]]
    assert await list_ids(trigger="manual", status="running") == [ids[0]]
    assert await list_ids(**{"from": "2026-01-02T00:00:00Z"}) == ids[:0:-1]
    assert await list_ids(to="2026-01-02T00:00:00Z") == [ids[0]]
    assert await list_ids(per_page=2, page=2) == [ids[0]]
    assert await list_ids(EXECUTIONS) == [other, *ids[::-1]]
    answer = await developer.get(EXECUTIONS, params={"per_page": 1})
    assert set(answer.json()["data"][0]) == SUMMARY
    for params in ({"status": "x"}, {"trigger": "x"}, {"from": "x"}, {"sort": "input"}):
        refused(await developer.get(path, params=params), 422, "validation_error")


async def test_an_execution_that_runs_or_is_pending_is_cancelled(world: World) -> None:
    """No worker runs, so that the first one keeps its slot and the second one waits for it."""
    owner = await world.user("agent_developer", await world.tenant("free"))
    workflow = await create_workflow(owner, [transform("a", 1)])
    running, pending = [await start(owner, workflow["id"]) for _ in range(2)]
    assert (await read(owner, running))["status"] == "running"
    assert (await read(owner, pending))["status"] == "pending"
    for execution_id in (pending, running):
        record = (await _post(owner, execution_id, "cancel")).json()["data"]
        assert record["status"] == "cancelled"
        refused(await _post(owner, execution_id, "cancel"), 409, "invalid_state")
    assert (await read(owner, pending))["started_at"] is None
    assert (await read(owner, pending))["nodes"] == []


async def test_a_pending_execution_that_was_cancelled_can_be_retried(world: World) -> None:
    owner = await world.user("agent_developer", await world.tenant("free"))
    workflow = await create_workflow(owner, [transform("a", 1)])
    running, pending = [await start(owner, workflow["id"]) for _ in range(2)]
    for execution_id in (running, pending):
        await _post(owner, execution_id, "cancel")
    record = (await _post(owner, pending, "retry")).json()["data"]
    assert (record["status"], statuses(record)) == ("running", {"a": "pending"})
