"""Nodes that run another workflow."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import (
    PATH,
    create_published,
    create_workflow,
    publish,
    read,
    run,
    start,
    transform,
)
from tests.automation.workflows.nodes.single_node import (
    build_node,
    cancel,
    read_end,
    run_single,
    start_single,
    wait_for_row,
)
from tests.database import fetch_rows
from tests.world import Client, World
from workers.main import WorkerProcess

_CHILDREN = "SELECT id, status, error FROM workflow_executions WHERE trigger_id = $1"
_RETRY = {"max_attempts": 3, "delay_seconds": 0}


def _call(workflow_id: str, **values: Any) -> dict[str, Any]:
    return build_node("workflow", {"workflow_id": workflow_id, "input": values}, retry=_RETRY)


async def test_input_and_output_pass_between_workflows(
    developer: Client, worker: WorkerProcess
) -> None:
    child = await create_published(developer, [transform("sum", "{{ input.a + input.b }}")])
    config = {"workflow_id": child, "input": {"a": "{{ input.a }}", "b": 2}}
    node = await run_single(developer, "workflow", config, {"a": 40})
    assert node["output"] == 42
    execution = await read(developer, node["ref_id"])
    assert execution["input"] == {"a": 40, "b": 2}
    assert execution["trigger"]["type"] == "workflow"
    assert execution["status"] == "completed"


async def test_a_failure_is_the_parent_s_with_its_reason(
    developer: Client, worker: WorkerProcess
) -> None:
    child = await create_published(developer, [transform("bad", "{{ input.a / 0 }}")])
    parent = await create_workflow(developer, [_call(child, a=1)])
    record = await run(developer, parent["id"])
    assert record["error"]["code"] == "workflow_failed"
    inner = await read(developer, record["nodes"][0]["ref_id"] or "")
    assert inner["error"]["message"] in record["error"]["message"]
    assert record["nodes"][0]["attempt"] == 3


async def test_a_draft_and_a_deleted_workflow_fail_the_node(
    developer: Client, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    draft = (await create_workflow(developer, [transform("x", 1)]))["id"]
    parent = (await create_workflow(developer, [_call(draft)]))["id"]
    with subtests.test("a draft"):
        record = await run(developer, parent)
        assert record["error"]["code"] == "workflow_not_published"
    with subtests.test("a deleted one"):
        assert (await developer.delete(f"{PATH}/{draft}")).status_code == 204
        record = await run(developer, parent)
        assert record["error"]["code"] == "workflow_not_found"
    with subtests.test("one of another tenant"):
        nodes = [_call("wfl_other")]
        answer = await developer.post(PATH, {"name": "Orders", "nodes": nodes})
        refused(answer, 422, "validation_error")


async def test_a_cancelled_parent_cancels_its_child(
    developer: Client, worker: WorkerProcess, services: Services
) -> None:
    child = await create_published(developer, [build_node("delay", {"seconds": 3600})])
    execution_id = await start_single(developer, "workflow", {"workflow_id": child})
    await wait_for_row(services, f"{_CHILDREN} AND status = 'waiting'", execution_id)
    assert (await cancel(developer, execution_id))["status"] == "cancelled"
    await wait_for_row(services, f"{_CHILDREN} AND status = 'cancelled'", execution_id)


async def test_a_cancelled_child_fails_its_parent(
    developer: Client, worker: WorkerProcess, services: Services
) -> None:
    child = await create_published(developer, [build_node("delay", {"seconds": 3600})])
    execution_id = await start_single(developer, "workflow", {"workflow_id": child})
    row = await wait_for_row(services, f"{_CHILDREN} AND status = 'waiting'", execution_id)
    await cancel(developer, row["id"])
    record = await read_end(developer, execution_id)
    assert record["error"]["code"] == "workflow_cancelled"


async def test_workflows_that_call_each_other_end_at_the_limit(
    world: World, worker: WorkerProcess, services: Services, subtests: pytest.Subtests
) -> None:
    for number in (1, 2):
        with subtests.test(f"a loop of {number}"):
            client = await world.user("agent_developer")
            ids = [
                (await create_workflow(client, [transform("x", 1)]))["id"] for _ in range(number)
            ]
            for index, workflow_id in enumerate(ids):
                body = {"nodes": [_call(ids[(index + 1) % number])]}
                answer = await client.put(f"{PATH}/{workflow_id}", body)
                assert answer.status_code == 200, answer.text
                await publish(client, workflow_id)
            record = await run(client, ids[0])
            assert record["status"] == "failed"
            assert record["error"]["code"] == "workflow_depth_exceeded"
            sql = "SELECT status, depth FROM workflow_executions WHERE tenant_id = $1"
            rows = await fetch_rows(services, sql, client.tenant_id)
            # No level is repeated, although each node may be.
            assert sorted(row["depth"] for row in rows) == [0, 1, 2, 3, 4, 5]
            assert {row["status"] for row in rows} == {"failed"}


async def test_called_workflows_start_before_others_that_wait(
    world: World, worker: WorkerProcess, services: Services
) -> None:
    """Else workflows that call each other several times each would grow for hours."""
    limits = {"requests_per_minute": 100_000, "concurrent_executions": 1}
    client = await world.user("tenant_admin", await world.tenant(limits=limits))
    child = await create_published(client, [transform("x", 1)])
    parent = (await create_workflow(client, [_call(child)]))["id"]
    ids = [await start(client, parent) for _ in range(3)]
    for execution_id in ids:
        assert (await read_end(client, execution_id))["status"] == "completed"
    sql = "SELECT depth FROM workflow_executions WHERE tenant_id = $1 ORDER BY started_at"
    rows = await fetch_rows(services, sql, client.tenant_id)
    assert [row["depth"] for row in rows] == [0, 1, 0, 1, 0, 1]


async def test_a_child_runs_when_the_plan_allows_one_execution_at_a_time(
    world: World, worker: WorkerProcess
) -> None:
    limits = {"requests_per_minute": 100_000, "concurrent_executions": 1}
    client = await world.user("tenant_admin", await world.tenant(limits=limits))
    child = await create_published(client, [transform("x", "{{ input.n }}")])
    nodes = [{**_call(child, n=number), "id": f"call{number}"} for number in range(3)]
    parent = await create_workflow(client, nodes)
    ids = [await start(client, parent["id"]) for _ in range(3)]
    for execution_id in ids:
        record = await read_end(client, execution_id)
        assert record["output"] == {"call0": 0, "call1": 1, "call2": 2}


async def test_a_child_that_waits_for_a_slot_is_cancelled_with_its_parent(
    world: World, worker: WorkerProcess, services: Services
) -> None:
    limits = {"requests_per_minute": 100_000, "workflow_executions_per_minute": 1}
    client = await world.user("tenant_admin", await world.tenant(limits=limits))
    child = await create_published(client, [transform("x", 1)])
    execution_id = await start_single(client, "workflow", {"workflow_id": child})
    await wait_for_row(services, f"{_CHILDREN} AND status = 'pending'", execution_id)
    await cancel(client, execution_id)
    await wait_for_row(services, f"{_CHILDREN} AND status = 'cancelled'", execution_id)


async def test_a_timeout_of_the_node_cancels_the_child(
    developer: Client, worker: WorkerProcess, services: Services
) -> None:
    child = await create_published(developer, [build_node("delay", {"seconds": 3600})])
    config = {"workflow_id": child}
    execution_id = await start_single(developer, "workflow", config, timeout_seconds=0.3)
    assert (await read_end(developer, execution_id))["error"]["code"] == "timeout"
    await wait_for_row(services, f"{_CHILDREN} AND status = 'cancelled'", execution_id)
