"""Steps of one execution at the same moment: nothing is lost, repeated or blocked for ever."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.automation.workflows.factories import (
    EXECUTIONS,
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
from tests.lengths import rounds
from tests.world import Client

ROUNDS = rounds(6, 50)
FEW_ROUNDS = rounds(3, 8)


@pytest.fixture
def hand(services: Services, developer: Client) -> Hand:
    return Hand(services, developer.tenant_id)


def _approval(client: Client, node_id: str, **fields: Any) -> dict[str, Any]:
    config = {"title": "Go on?", "user_ids": [client.user_id]}
    return {"id": node_id, "type": "approval", "config": config, **fields}


async def _approve(client: Client, record: dict[str, Any], node_id: str) -> int:
    path = f"/api/v1/approvals/{by_node(record)[node_id]['ref_id']}/approve"
    return (await client.post(path, {})).status_code


async def _cancel(client: Client, execution_id: str) -> int:
    return (await client.post(f"{EXECUTIONS}/{execution_id}/cancel")).status_code


async def test_a_join_runs_once_when_the_nodes_before_it_complete_at_the_same_moment(
    developer: Client, hand: Hand
) -> None:
    nodes = [transform("a", 1), transform("b", 2), transform("c", 3), transform("join", "done")]
    edges = [edge(name, "join") for name in ("a", "b", "c")]
    workflow = await create_workflow(developer, nodes, edges)
    for _ in range(ROUNDS):
        execution_id = await start(developer, workflow["id"])
        due = await hand.list_due()
        assert len(due) == 3
        # Each is delivered twice.
        await asyncio.gather(*map(hand.run, due * 2))
        [join] = await hand.list_due()
        await asyncio.gather(hand.run(join), hand.run(join))
        record = await read(developer, execution_id)
        assert (record["status"], record["output"]) == ("completed", "done")
        events = await hand.count_events(execution_id)
        assert events == {"started": 1, "node_completed": 4, "completed": 1}


async def test_a_decision_while_the_execution_is_cancelled_ends_in_one_of_both(
    developer: Client, hand: Hand
) -> None:
    nodes = [_approval(developer, "a"), _approval(developer, "b"), transform("join", 1)]
    workflow = await create_workflow(developer, nodes, [edge("a", "join"), edge("b", "join")])
    for _ in range(FEW_ROUNDS):
        execution_id = await start(developer, workflow["id"])
        await hand.run_due()
        record = await read(developer, execution_id)
        results = await asyncio.gather(
            _approve(developer, record, "a"),
            _cancel(developer, execution_id),
            _approve(developer, record, "b"),
        )
        assert results[1] in {200, 202}
        assert {results[0], results[2]} <= {200, 409}
        await hand.run_due()
        record = await read(developer, execution_id)
        assert record["status"] == "cancelled"
        assert set(statuses(record).values()) <= {"completed", "cancelled"}
        [row] = await hand.fetch(
            "SELECT count(*) AS count FROM approvals WHERE workflow_execution_id = $1"
            " AND status = 'pending'",
            execution_id,
        )
        assert row["count"] == 0


async def test_a_timer_and_an_answer_at_the_same_moment_have_one_outcome(
    developer: Client, hand: Hand
) -> None:
    nodes = [_approval(developer, "a", timeout_seconds=60), transform("b", 1)]
    workflow = await create_workflow(developer, nodes, [edge("a", "b")])
    outcomes = set()
    for _ in range(FEW_ROUNDS):
        execution_id = await start(developer, workflow["id"])
        await hand.run_due()
        record = await read(developer, execution_id)
        await hand.make_due()
        [timer] = await hand.list_due()
        await asyncio.gather(hand.run(timer), _approve(developer, record, "a"))
        await hand.run_due()
        record = await read(developer, execution_id)
        outcomes.add(record["status"])
        events = await hand.count_events(execution_id)
        assert events.get("completed", 0) + events.get("failed", 0) == 1
    assert outcomes <= {"completed", "failed"}


async def test_children_that_end_together_complete_their_parent_or_its_cancellation_stops_them(
    developer: Client, hand: Hand, subtests: pytest.Subtests
) -> None:
    child = await create_published(developer, [transform("x", "child")])
    config = {"workflow_id": child, "input": {}}
    names = ("a", "b", "c")
    nodes = [{"id": name, "type": "workflow", "config": config} for name in names]
    nodes.append(transform("join", "{{ nodes.a.output }} {{ nodes.c.output }}"))
    workflow = await create_workflow(developer, nodes, [edge(name, "join") for name in names])
    for cancels in (False, True):
        with subtests.test(cancels=cancels):
            for _ in range(FEW_ROUNDS):
                await _end_children_at_once(developer, hand, workflow["id"], cancels=cancels)


async def _end_children_at_once(
    client: Client, hand: Hand, workflow_id: str, *, cancels: bool
) -> None:
    execution_id = await start(client, workflow_id)
    await asyncio.gather(*map(hand.run, await hand.list_due()))
    due = await hand.list_due()
    # A node that finds the queue of the tenant locked leaves the start of its child to other work.
    assert len(due) >= 3
    calls = [hand.run(work_id) for work_id in due]
    if cancels:
        await asyncio.gather(*calls, _cancel(client, execution_id))
    else:
        await asyncio.gather(*calls)
    await hand.run_due()
    record = await read(client, execution_id)
    assert record["status"] == ("cancelled" if cancels else "completed")
    rows = await hand.fetch(
        "SELECT status FROM workflow_executions WHERE trigger_id = $1", execution_id
    )
    assert {row["status"] for row in rows} <= {"completed", "cancelled"}
    [row] = await hand.fetch(
        "SELECT count(*) AS count FROM work WHERE tenant_id = $1 AND attempt > 1", client.tenant_id
    )
    assert row["count"] == 0, "a step was refused because of a deadlock"
