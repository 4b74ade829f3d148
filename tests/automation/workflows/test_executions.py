"""Executions over HTTP: records, lists, waiting, cancellation and retries."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from app.domain.automation.workflows import executions, queries
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.workflows.factories import (
    EXECUTIONS,
    PATH,
    by_node,
    chain,
    condition,
    create_workflow,
    edge,
    read,
    run,
    start,
    statuses,
    transform,
    wait_for_status,
)
from tests.data.tables.api import create_table, list_values
from tests.platform.events.database import load_events
from tests.world import Client, World
from workers.main import WorkerProcess

RECORD = {
    "id",
    "workflow_id",
    "version",
    "status",
    "trigger",
    "started_by",
    "input",
    "output",
    "error",
    "nodes",
    "correlation_id",
    "created_at",
    "started_at",
    "finished_at",
}
NODE = {
    "node_id",
    "type",
    "status",
    "input",
    "output",
    "error",
    "attempt",
    "ref_id",
    "started_at",
    "finished_at",
}
DELAY = {"id": "wait", "type": "delay", "config": {"seconds": 3600}}


async def _post(client: Client, execution_id: str, action: str) -> Any:
    return await client.post(f"{EXECUTIONS}/{execution_id}/{action}")


# Records


async def test_execute_answers_202_and_the_record_has_its_fields(
    developer: Client, worker: WorkerProcess
) -> None:
    workflow = await create_workflow(developer, [transform("a", "{{ input.name }}")])
    correlation_id = new_id("cor")
    answer = await developer.post(
        f"{PATH}/{workflow['id']}/execute",
        {"input": {"name": "Ada"}},
        headers={"X-Correlation-ID": correlation_id},
    )
    assert answer.status_code == 202
    accepted = answer.json()["data"]
    assert set(accepted) == {"id", "workflow_id", "status", "created_at"}
    assert (accepted["workflow_id"], accepted["status"]) == (workflow["id"], "running")
    record = await read(developer, accepted["id"], wait=20)
    assert set(record) == RECORD
    assert {name: record[name] for name in ("id", "workflow_id", "created_at")} == {
        name: accepted[name] for name in ("id", "workflow_id", "created_at")
    }
    assert (record["status"], record["output"], record["error"]) == ("completed", "Ada", None)
    assert (record["started_by"], record["version"]) == (developer.user_id, 1)
    assert record["correlation_id"] == correlation_id
    assert record["created_at"] <= record["started_at"] <= record["finished_at"]
    (node,) = record["nodes"]
    assert set(node) == NODE
    assert (node["node_id"], node["type"], node["status"]) == ("a", "transform", "completed")
    assert (node["input"], node["output"], node["attempt"]) == ({"output": "Ada"}, "Ada", 1)
    assert node["started_at"] <= node["finished_at"]


async def test_the_body_may_be_left_out(developer: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    answer = await developer("POST", f"{PATH}/{workflow['id']}/execute")
    assert answer.status_code == 202, answer.text
    assert (await read(developer, answer.json()["data"]["id"]))["input"] == {}


async def test_wrong_input_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    for body, field in (
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": {"deep": deep}}, "input"),
        ({"version": 0}, "version"),
        ({"version": "1"}, "version"),
        ({"dry_run": "yes"}, "dry_run"),
    ):
        with subtests.test(body=str(body)[:40]):
            answer = await developer.post(f"{PATH}/{workflow['id']}/execute", body)
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_the_same_idempotency_key_executes_once(developer: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    path, headers = f"{PATH}/{workflow['id']}/execute", {"Idempotency-Key": new_id("key")}
    answers = [await developer.post(path, {"input": {}}, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    listed = (await developer.get(f"{PATH}/{workflow['id']}/executions")).json()
    assert listed["pagination"]["total"] == 1


async def test_roles_need_their_permissions(world: World, developer: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    execution_id = await start(developer, workflow["id"])
    for role in ("agent_user", "viewer"):
        reader = await world.user(role, developer.tenant_id)
        assert (await reader.get(f"{EXECUTIONS}/{execution_id}")).status_code == 200
        for path in (
            f"{PATH}/{workflow['id']}/execute",
            f"{EXECUTIONS}/{execution_id}/cancel",
            f"{EXECUTIONS}/{execution_id}/retry",
        ):
            error = refused(await reader.post(path), 403, "forbidden")
            assert error["details"]["required"] == "workflows:execute"


async def test_a_reader_may_wait_for_the_end(developer: Client, worker: WorkerProcess) -> None:
    nodes = [{**DELAY, "config": {"seconds": 0.3}}, transform("b", 1)]
    workflow = await create_workflow(developer, nodes, chain("wait", "b"))
    execution_id = await start(developer, workflow["id"])
    assert (await read(developer, execution_id))["status"] in {"running", "waiting"}
    assert (await read(developer, execution_id, wait=20))["status"] == "completed"
    endless = await start(developer, (await create_workflow(developer, [DELAY]))["id"])
    started = clock.now()
    assert (await read(developer, endless, wait=1))["status"] == "waiting"
    assert timedelta(seconds=0.9) < clock.now() - started < timedelta(seconds=5)
    for wait in (-1, 31, "x"):
        answer = await developer.get(f"{EXECUTIONS}/{endless}", params={"wait": wait})
        refused(answer, 422, "validation_error")


async def test_a_wait_reads_the_record_once(
    developer: Client, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = await create_workflow(developer, [DELAY])
    execution_id = await start(developer, workflow["id"])
    reads: dict[str, int] = {}
    for name in ("find_execution", "find_execution_state"):
        monkeypatch.setattr(queries, name, _count_calls(getattr(queries, name), reads, name))
    monkeypatch.setattr(executions, "_POLL_SECONDS", 0.2)
    assert (await read(developer, execution_id, wait=1))["status"] == "waiting"
    assert reads["find_execution"] == 1
    assert reads["find_execution_state"] >= 3


def _count_calls(function: Any, counts: dict[str, int], name: str) -> Any:
    async def call(*args: Any) -> Any:
        counts[name] = counts.get(name, 0) + 1
        return await function(*args)

    return call


# Cancellation


async def test_an_execution_that_waits_is_cancelled(
    developer: Client, services: Services, worker: WorkerProcess
) -> None:
    workflow = await create_workflow(developer, [DELAY, transform("b", 1)], chain("wait", "b"))
    execution_id = await start(developer, workflow["id"])
    await wait_for_status(developer, execution_id, "waiting")
    answer = await _post(developer, execution_id, "cancel")
    assert answer.status_code == 200, answer.text
    record = answer.json()["data"]
    assert (record["status"], record["output"], record["error"]) == ("cancelled", None, None)
    assert statuses(record) == {"wait": "cancelled", "b": "cancelled"}
    assert record["finished_at"] is not None
    name = "workflow.execution.cancelled"
    (event,) = await load_events(services, developer.tenant_id, name)
    assert event["data"]["execution_id"] == execution_id
    refused(await _post(developer, execution_id, "cancel"), 409, "invalid_state")


async def test_of_many_cancellations_at_once_one_succeeds(developer: Client) -> None:
    workflow = await create_workflow(developer, [transform("a", 1)])
    execution_id = await start(developer, workflow["id"])
    answers = await asyncio.gather(*(_post(developer, execution_id, "cancel") for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]


# Retries


async def test_a_retry_continues_from_the_failed_node(
    developer: Client, worker: WorkerProcess
) -> None:
    """The row that the first node inserted is there once."""
    columns = [{"name": "n", "type": "integer"}]
    table = await create_table(developer, columns)
    insert = {
        "id": "store",
        "type": "data_table",
        "config": {"table_id": table["id"], "operation": "insert", "values": {"n": 1}},
    }
    called = await create_workflow(developer, [transform("a", 5)], name="Called")
    call = {"id": "call", "type": "workflow", "config": {"workflow_id": called["id"]}}
    nodes = [insert, call, transform("end", "{{ nodes.call.output + 1 }}")]
    workflow = await create_workflow(developer, nodes, chain("store", "call", "end"))
    record = await run(developer, workflow["id"])
    assert statuses(record) == {"store": "completed", "call": "failed", "end": "cancelled"}
    assert (record["status"], record["error"]["node_id"]) == ("failed", "call")
    assert record["error"]["code"] == "workflow_not_published"
    await developer.post(f"{PATH}/{called['id']}/publish")
    answer = await _post(developer, record["id"], "retry")
    assert answer.status_code == 202, answer.text
    assert answer.json()["data"]["error"] is None
    again = await read(developer, record["id"], wait=20)
    assert (again["status"], again["output"]) == ("completed", 6)
    assert by_node(again)["store"] == by_node(record)["store"]
    assert by_node(again)["call"]["attempt"] == 2
    assert await list_values(developer, table, "n") == [1]


async def test_a_cancelled_execution_can_be_continued(
    developer: Client, worker: WorkerProcess
) -> None:
    nodes = [transform("a", 7), {**DELAY, "config": {"seconds": "{{ input.seconds }}"}}]
    workflow = await create_workflow(developer, nodes, chain("a", "wait"))
    execution_id = await start(developer, workflow["id"], input={"seconds": 1})
    await wait_for_status(developer, execution_id, "waiting")
    await _post(developer, execution_id, "cancel")
    assert (await _post(developer, execution_id, "retry")).status_code == 202
    record = await read(developer, execution_id, wait=20)
    assert record["status"] == "completed"
    assert by_node(record)["a"]["attempt"] == 1


async def test_only_an_execution_that_failed_or_was_cancelled_is_retried(
    developer: Client, worker: WorkerProcess
) -> None:
    workflow = await create_workflow(developer, [DELAY])
    waiting = await start(developer, workflow["id"])
    await wait_for_status(developer, waiting, "waiting")
    refused(await _post(developer, waiting, "retry"), 409, "invalid_state")
    done = await run(developer, (await create_workflow(developer, [transform("a", 1)]))["id"])
    refused(await _post(developer, done["id"], "retry"), 409, "invalid_state")


async def test_of_many_retries_at_once_one_succeeds(
    developer: Client, worker: WorkerProcess
) -> None:
    nodes = [condition("a", "input.missing > 1"), transform("b", 1)]
    workflow = await create_workflow(developer, nodes, [edge("a", "b", when=True)])
    record = await run(developer, workflow["id"])
    answers = await asyncio.gather(*(_post(developer, record["id"], "retry") for _ in range(4)))
    codes = [answer.status_code for answer in answers]
    # A retry that comes after the next failure is one of its own.
    assert 202 in codes
    assert set(codes) <= {202, 409}
    again = await read(developer, record["id"], wait=20)
    assert by_node(again)["a"]["attempt"] == 1 + codes.count(202)
