"""The engine step by step: late and repeated work, retries, timers, failures of the code itself."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.automation.workflows.nodes.protocol import Done, NodeCall, Outcome
from app.domain.automation.workflows.nodes.registry import NODE_TYPES
from app.domain.automation.workflows.nodes.transform import TransformNode
from app.services import Services
from tests.assertions import wait_until
from tests.automation.workflows.factories import (
    EXECUTIONS,
    by_node,
    chain,
    condition,
    create_workflow,
    edge,
    read,
    start,
    statuses,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.world import Client


@pytest.fixture
def hand(services: Services, developer: Client) -> Hand:
    return Hand(services, developer.tenant_id)


async def _post(client: Client, execution_id: str, action: str) -> dict[str, Any]:
    answer = await client.post(f"{EXECUTIONS}/{execution_id}/{action}")
    assert answer.is_success, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def _start(
    client: Client, nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None = None
) -> str:
    workflow = await create_workflow(client, nodes, edges)
    return await start(client, workflow["id"])


def approval(client: Client, node_id: str, **fields: Any) -> dict[str, Any]:
    config = {"title": "Go on?", "user_ids": [client.user_id]}
    return {"id": node_id, "type": "approval", "config": config, **fields}


def delay(node_id: str, seconds: float = 60) -> dict[str, Any]:
    return {"id": node_id, "type": "delay", "config": {"seconds": seconds}}


async def _decide(client: Client, record: dict[str, Any], node_id: str, answer: str) -> int:
    ref_id = by_node(record)[node_id]["ref_id"]
    path = f"/api/v1/approvals/{ref_id}/{answer}"
    return (await client.post(path, {})).status_code


async def test_an_execution_that_was_cancelled_while_a_node_was_queued_can_be_retried(
    developer: Client, hand: Hand
) -> None:
    execution_id = await _start(developer, [transform("a", 1), transform("b", 2)], chain("a", "b"))
    await _post(developer, execution_id, "cancel")
    assert statuses(await _post(developer, execution_id, "retry")) == {
        "a": "pending",
        "b": "pending",
    }
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["status"], record["output"]) == ("completed", 2)
    # The work from before and the new work are about the same attempt.
    assert [node["attempt"] for node in record["nodes"]] == [1, 1]
    assert await hand.count_events(execution_id) == {
        "started": 2,
        "cancelled": 1,
        "node_completed": 2,
        "completed": 1,
    }


async def test_older_work_of_a_retried_execution_does_not_end_the_wait_of_the_node(
    developer: Client, hand: Hand
) -> None:
    execution_id = await _start(developer, [delay("a")])
    await _post(developer, execution_id, "cancel")
    await _post(developer, execution_id, "retry")
    first, second = await hand.list_due()
    await hand.run(second)
    await hand.run(first)
    assert statuses(await read(developer, execution_id)) == {"a": "waiting"}
    await hand.make_due()
    await hand.run_due()
    assert (await read(developer, execution_id))["status"] == "completed"


async def test_a_cancelled_execution_that_had_not_started_starts_by_a_retry(
    developer: Client, hand: Hand
) -> None:
    await hand.sql(
        """UPDATE tenants SET limits = limits || '{"concurrent_executions": 1}' WHERE id = $1""",
        developer.tenant_id,
    )
    first = await _start(developer, [transform("a", 1)])
    second = await _start(developer, [transform("a", 2)])
    record = await _post(developer, second, "cancel")
    assert (record["status"], record["nodes"]) == ("cancelled", [])
    [row] = await hand.fetch("SELECT started_at FROM workflow_executions WHERE id = $1", second)
    assert row["started_at"] is None
    await _post(developer, second, "retry")

    async def is_completed() -> bool:
        # A worker of other tests may be about to start it.
        await hand.run_due()
        return bool((await read(developer, second))["status"] == "completed")

    await wait_until(is_completed)
    assert (await read(developer, first))["output"] == 1
    assert (await read(developer, second))["output"] == 2


async def test_repeated_deliveries_of_all_work_change_nothing(
    developer: Client, hand: Hand
) -> None:
    nodes = [transform("a", 1), delay("b"), approval(developer, "c"), transform("d", 4)]
    execution_id = await _start(developer, nodes, chain("a", "b", "c", "d"))
    await hand.run_due()
    await hand.repeat()
    before = await read(developer, execution_id)
    assert statuses(before) == {"a": "completed", "b": "waiting", "c": "pending", "d": "pending"}
    await hand.make_due()
    await hand.run_due()
    assert await hand.repeat() == 4
    record = await read(developer, execution_id)
    assert await _decide(developer, record, "c", "approve") == 200
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["status"], record["output"]) == ("completed", 4)
    assert await hand.repeat() == 5
    assert await read(developer, execution_id) == record
    assert (await hand.count_events(execution_id))["node_completed"] == 4


async def test_a_failing_node_waits_longer_before_each_attempt(
    developer: Client, hand: Hand
) -> None:
    retry = {"max_attempts": 10, "delay_seconds": 60, "backoff": 10}
    node = {"id": "a", "type": "data_table", "retry": retry}
    node["config"] = await _create_failing_config(developer)
    execution_id = await _start(developer, [node])
    waits = []
    for _ in range(10):
        await hand.run_due()
        rows = await hand.fetch(
            "SELECT run_at FROM work WHERE tenant_id = $1 AND state = 'pending'"
            " AND kind = 'workflows.node'",
            developer.tenant_id,
        )
        waits += [(row["run_at"] - datetime.now(UTC)).total_seconds() for row in rows]
        await hand.make_due(timers=False)
    expected = [60, 600, 6000, 60_000, *[86400] * 5]
    assert waits == [pytest.approx(seconds, abs=20) for seconds in expected]
    record = await read(developer, execution_id)
    assert record["status"] == "failed"
    assert by_node(record)["a"]["attempt"] == 10


async def _create_failing_config(client: Client) -> dict[str, Any]:
    columns = [{"name": "n", "type": "number"}]
    answer = await client.post("/api/v1/data-tables", {"name": "T", "columns": columns})
    table_id = answer.json()["data"]["id"]
    # The node fails: the value is no number.
    return {"table_id": table_id, "operation": "insert", "values": {"n": "many"}}


async def test_a_retried_execution_has_all_attempts_of_the_node_again(
    developer: Client, hand: Hand
) -> None:
    retry = {"max_attempts": 2, "delay_seconds": 0}
    node = {"id": "a", "type": "data_table", "retry": retry}
    node["config"] = await _create_failing_config(developer)
    execution_id = await _start(developer, [node])
    await hand.run_due()
    assert by_node(await read(developer, execution_id))["a"]["attempt"] == 2
    await _post(developer, execution_id, "retry")
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["status"], by_node(record)["a"]["attempt"]) == ("failed", 4)


async def test_a_node_that_raises_unexpectedly_fails_once_its_work_is_given_up(
    developer: Client, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(_self: object, call: NodeCall, _config: object) -> Outcome:
        await (await call.tx.raw()).execute(
            "UPDATE tenants SET name = 'broken' WHERE id = $1", call.tenant_id
        )
        raise RuntimeError("a secret")

    execution_id = await _start(developer, [transform("a", 1), transform("b", 1)], chain("a", "b"))
    monkeypatch.setattr(TransformNode, "run", break_down)
    for _ in range(7):
        await hand.run_due()
        await hand.make_due(timers=False)
    record = await read(developer, execution_id)
    assert record["error"] == {
        "code": "internal_error",
        "message": "unexpected RuntimeError",
        "node_id": "a",
    }
    assert statuses(record) == {"a": "failed", "b": "cancelled"}
    assert by_node(record)["a"]["attempt"] == 1
    assert (await hand.count_events(execution_id))["failed"] == 1
    [row] = await hand.fetch("SELECT name FROM tenants WHERE id = $1", developer.tenant_id)
    assert row["name"] != "broken"
    monkeypatch.undo()
    await _post(developer, execution_id, "retry")
    await hand.run_due()
    assert (await read(developer, execution_id))["status"] == "completed"


@pytest.fixture
def node_types() -> Iterator[dict[str, Any]]:
    """The types of nodes, which have their order again after the test."""
    before = dict(NODE_TYPES)
    yield NODE_TYPES
    NODE_TYPES.clear()
    NODE_TYPES.update(before)


async def test_a_node_whose_type_is_gone_fails_the_execution(
    developer: Client, hand: Hand, node_types: dict[str, Any]
) -> None:
    queued = await _start(developer, [transform("a", 1)])
    del node_types["transform"]
    await hand.run_due()
    assert (await read(developer, queued))["error"]["code"] == "unknown_node_type"
    timed = await _start(developer, [delay("a")])
    asked = await _start(developer, [approval(developer, "a")])
    stopped = await _start(developer, [approval(developer, "a")])
    await hand.run_due()
    records = {key: await read(developer, key) for key in (timed, asked, stopped)}
    del node_types["delay"], node_types["approval"]
    await hand.make_due()
    await hand.run_due()
    assert (await read(developer, timed))["error"]["code"] == "unknown_node_type"
    assert await _decide(developer, records[asked], "a", "approve") == 200
    assert (await read(developer, asked))["error"]["code"] == "unknown_node_type"
    await _post(developer, stopped, "cancel")
    await hand.run_due()
    assert await hand.list_due() == []


ODD_OUTPUTS = {
    "NUL": ("a\0b", "ab"),
    "a NUL in a key": ({"a\0": [1]}, {"a": [1]}),
    "no number": (float("nan"), None),
    "infinity": (float("inf"), None),
    "a large integer": (2**70, 2**70),
    "a time": (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    "nothing": (None, None),
    "half a character": ("\ud800", None),
    "no JSON": (object(), None),
}


async def test_any_output_is_stored_or_fails_the_node(
    developer: Client, hand: Hand, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    output: Any = None

    async def return_output(_self: object, _call: NodeCall, _config: object) -> Outcome:
        return Done(output)

    monkeypatch.setattr(TransformNode, "run", return_output)
    nodes = [transform("a", 1), transform("b", 1)]
    for name, (value, expected) in ODD_OUTPUTS.items():
        with subtests.test(name):
            output = value
            execution_id = await _start(developer, nodes, chain("a", "b"))
            await hand.run_due()
            record = await read(developer, execution_id)
            if name in {"half a character", "no JSON"}:
                assert record["error"]["code"] == "invalid_output"
            else:
                assert (record["status"], record["output"]) == ("completed", expected)


async def test_a_timeout_after_the_answer_and_an_answer_after_the_timeout_change_nothing(
    developer: Client, hand: Hand
) -> None:
    nodes = [approval(developer, "a", timeout_seconds=60), transform("b", 1)]
    execution_id = await _start(developer, nodes, chain("a", "b"))
    await hand.run_due()
    waiting = await read(developer, execution_id)
    assert await _decide(developer, waiting, "a", "approve") == 200
    await hand.make_due()
    await hand.run_due()
    assert (await read(developer, execution_id))["output"] == 1
    execution_id = await _start(developer, nodes, chain("a", "b"))
    await hand.run_due()
    waiting = await read(developer, execution_id)
    await hand.make_due()
    [timer] = await hand.list_due()
    await hand.run(timer)
    # Not yet cancelled: the work that does so has not run.
    assert await _decide(developer, waiting, "a", "approve") == 200
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["status"], record["error"]["code"]) == ("failed", "timeout")
    assert (await hand.count_events(execution_id)).get("node_completed") is None


async def test_an_answer_to_an_earlier_attempt_is_ignored(developer: Client, hand: Hand) -> None:
    nodes = [approval(developer, "a", timeout_seconds=60, retry={"delay_seconds": 0})]
    execution_id = await _start(developer, nodes)
    await hand.run_due()
    first = await read(developer, execution_id)
    await hand.make_due()
    for work_id in await hand.list_due():
        await hand.run(work_id)
    [*_, attempt] = [
        row["id"]
        for row in await hand.fetch(
            "SELECT id FROM work WHERE tenant_id = $1 AND kind = 'workflows.node'"
            " AND state = 'pending'",
            developer.tenant_id,
        )
    ]
    await hand.run(attempt)
    second = await read(developer, execution_id)
    assert by_node(second)["a"]["attempt"] == 2
    assert await _decide(developer, first, "a", "reject") == 200
    assert (await read(developer, execution_id))["status"] == "waiting"
    assert await _decide(developer, second, "a", "approve") == 200
    record = await read(developer, execution_id)
    assert record["output"] == {"approved": True, "comment": None}


async def test_the_failure_of_one_branch_stops_the_others(developer: Client, hand: Hand) -> None:
    nodes = [
        transform("a", 1),
        approval(developer, "b"),
        delay("c"),
        condition("d", "input.missing > 1"),
    ]
    edges = [edge("a", "b"), edge("a", "c"), edge("a", "d")]
    execution_id = await _start(developer, nodes, edges)
    first = await hand.list_due()
    await hand.run(first[0])
    for work_id in await hand.list_due():
        await hand.run(work_id)
    record = await read(developer, execution_id)
    assert statuses(record) == {"a": "completed", "b": "cancelled", "c": "cancelled", "d": "failed"}
    await hand.run_due()
    [row] = await hand.fetch(
        "SELECT status FROM approvals WHERE workflow_execution_id = $1", execution_id
    )
    assert row["status"] == "cancelled"


async def test_large_outputs_are_read_by_many_nodes_up_to_a_limit(
    developer: Client, hand: Hand
) -> None:
    names = ["a", "b", "c", "d", "e"]
    nodes = [transform(name, "{{ 'x' * 900000 }}") for name in names]
    nodes += [
        transform(f"{name}_size", f"{{{{ nodes.{name}.output | length }}}}") for name in names
    ]
    edges = [edge(name, f"{name}_size") for name in names]
    execution_id = await _start(developer, nodes, edges)
    await hand.run_due()
    record = await read(developer, execution_id)
    assert record["output"] == {f"{name}_size": 900000 for name in names}
    text = "".join(f"{{{{ nodes.{name}.output }}}}" for name in names)
    nodes = [*nodes[:5], transform("all", text)]
    execution_id = await _start(developer, nodes, [edge(name, "all") for name in names])
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["error"]["code"], record["error"]["node_id"]) == ("expression_limit", "all")
