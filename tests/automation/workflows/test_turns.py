"""Nodes that one worker runs in turn, the size of an execution, and timers that are not needed."""

import itertools

import msgspec
import pytest

from app.domain.automation.workflows import engine
from app.domain.automation.workflows.errors import WorkflowVersionNotFound
from app.domain.automation.workflows.graph import Graph
from app.domain.automation.workflows.versions import Graphs
from app.domain.platform.events.service import emit_dead
from app.services import Services
from db.session import Tx
from tests.automation.workflows.factories import (
    by_node,
    create_published,
    create_workflow,
    edge,
    read,
    start,
    statuses,
    transform,
)
from tests.automation.workflows.manual_worker import Hand
from tests.world import Client
from workers.runner import Runner

_WORK = "SELECT state, ref_id, attempt FROM work WHERE tenant_id = $1 AND kind = 'workflows.node'"


@pytest.fixture
def hand(services: Services, developer: Client) -> Hand:
    return Hand(services, developer.tenant_id)


def _create_runner(services: Services, max_consecutive: int) -> Runner:
    return Runner(services, on_any_dead=emit_dead, max_consecutive=max_consecutive)


async def _start_row(client: Client, hand: Hand, length: int) -> tuple[str, str]:
    """Starts an execution of nodes in a row; returns its id and its first work."""
    names = [f"n{number}" for number in range(length)]
    edges = [edge(*pair) for pair in itertools.pairwise(names)]
    workflow = await create_workflow(client, [transform(name, 1) for name in names], edges)
    execution_id = await start(client, workflow["id"])
    [work_id] = await hand.list_due()
    return execution_id, work_id


async def test_a_worker_goes_on_with_the_next_nodes_without_the_queue(
    developer: Client, hand: Hand, services: Services
) -> None:
    execution_id, work_id = await _start_row(developer, hand, 5)
    await _create_runner(services, 16).run(work_id)
    assert (await read(developer, execution_id))["status"] == "completed"
    rows = await hand.fetch(_WORK, developer.tenant_id)
    assert [(row["state"], row["attempt"]) for row in rows] == [("done", 1)] * 5


async def test_other_work_gets_its_turn_after_some_nodes(
    developer: Client, hand: Hand, services: Services
) -> None:
    execution_id, work_id = await _start_row(developer, hand, 5)
    await _create_runner(services, 3).run(work_id)
    record = await read(developer, execution_id)
    assert list(statuses(record).values()) == ["completed"] * 3 + ["pending"] * 2
    assert len(await hand.list_due()) == 1


async def test_a_stopping_worker_leaves_the_next_node_to_others(
    developer: Client, hand: Hand, services: Services
) -> None:
    execution_id, work_id = await _start_row(developer, hand, 3)
    runner = _create_runner(services, 16)
    [row] = [await runner._claim(work_id)]
    assert row is not None
    runner.accepting = False
    await runner.run_claimed(row)
    assert list(statuses(await read(developer, execution_id)).values())[:2] == [
        "completed",
        "pending",
    ]
    await hand.run_due()
    assert (await read(developer, execution_id))["status"] == "completed"


async def test_a_node_whose_worker_was_killed_runs_when_its_lease_expires(
    developer: Client, hand: Hand, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id, work_id = await _start_row(developer, hand, 2)
    runner = _create_runner(services, 2)
    attempt, count = runner.attempt, 0

    async def attempt_once(*args: object, **options: bool) -> object:
        nonlocal count
        count += 1
        return await attempt(*args, **options) if count == 1 else None  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "attempt", attempt_once)
    await runner.run(work_id)
    assert (count, await hand.list_due()) == (2, [])
    await hand.sql(
        "UPDATE work SET lease_until = now() WHERE tenant_id = $1 AND state = 'leased'",
        developer.tenant_id,
    )
    await hand.run_due()
    assert (await read(developer, execution_id))["status"] == "completed"


async def test_an_execution_whose_nodes_store_too_much_fails(
    developer: Client, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_MAX_STORED_BYTES", 1000)
    nodes = [transform(name, "x" * 400) for name in ("a", "b", "c")]
    workflow = await create_workflow(developer, nodes, [edge("a", "b"), edge("b", "c")])
    execution_id = await start(developer, workflow["id"])
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["status"], record["error"]["code"]) == ("failed", "output_too_large")
    assert statuses(record) == {"a": "completed", "b": "failed", "c": "cancelled"}


async def test_the_timer_of_a_node_is_cancelled_when_its_wait_ends(
    developer: Client, hand: Hand
) -> None:
    config = {"title": "Go on?", "user_ids": [developer.user_id]}
    node = {"id": "ask", "type": "approval", "config": config, "timeout_seconds": 3600}
    workflow = await create_workflow(developer, [node, transform("last", 1)], [edge("ask", "last")])
    execution_id = await start(developer, workflow["id"])
    await hand.run_due()
    [timer] = await hand.fetch(_WORK + " AND ref_id LIKE '%:timer'", developer.tenant_id)
    assert timer["state"] == "pending"
    approval_id = by_node(await read(developer, execution_id))["ask"]["ref_id"]
    answer = await developer.post(f"/api/v1/approvals/{approval_id}/approve", {})
    assert answer.status_code == 200
    [timer] = await hand.fetch(_WORK + " AND ref_id LIKE '%:timer'", developer.tenant_id)
    assert timer["state"] == "cancelled"


async def test_a_node_that_fails_before_it_runs_has_times(developer: Client, hand: Hand) -> None:
    workflow = await create_workflow(developer, [transform("a", "{{ 1 / 0 }}")])
    execution_id = await start(developer, workflow["id"])
    await hand.run_due()
    node = by_node(await read(developer, execution_id))["a"]
    assert node["status"] == "failed"
    assert node["started_at"] is not None
    assert node["finished_at"] is not None


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored definitions cannot be read, as after a step back to an earlier release."""

    async def refuse(*_: object) -> None:
        raise msgspec.ValidationError("unknown field")

    monkeypatch.setattr(Graphs, "load", refuse)


async def test_an_execution_with_an_unreadable_definition_can_be_cancelled(
    developer: Client, hand: Hand, request: pytest.FixtureRequest
) -> None:
    execution_id, _ = await _start_row(developer, hand, 2)
    request.getfixturevalue("unreadable")
    answer = await developer.post(f"/api/v1/workflow-executions/{execution_id}/cancel")
    assert answer.status_code == 200, answer.text
    assert (await read(developer, execution_id))["status"] == "cancelled"


async def test_a_called_workflow_that_cannot_begin_fails_its_caller(
    developer: Client, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    child_id = await create_published(developer, [transform("only", 1)])
    node = {"id": "call", "type": "workflow", "config": {"workflow_id": child_id}}
    workflow = await create_workflow(developer, [node])
    execution_id = await start(developer, workflow["id"])
    load = Graphs.load

    async def load_others(self: Graphs, tx: Tx, tenant_id: str, name: str, version: int) -> Graph:
        if name == child_id:
            raise WorkflowVersionNotFound("The workflow has no version 1")
        return await load(self, tx, tenant_id, name, version)

    monkeypatch.setattr(Graphs, "load", load_others)
    await hand.run_due()
    record = await read(developer, execution_id)
    assert (record["status"], record["error"]["code"]) == ("failed", "workflow_failed")
