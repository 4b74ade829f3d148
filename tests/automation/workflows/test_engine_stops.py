"""What nodes wait for in other areas: it ends with the execution, by a timeout or by its owner."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.automation.workflows.factories import (
    EXECUTIONS,
    create_published,
    create_workflow,
    read,
    start,
    statuses,
)
from tests.automation.workflows.manual_worker import Hand
from tests.scripted_agents import Talker

# Another test's worker may run it.
_SLOW = "import time\n\n\ndef main(input):\n    time.sleep(60)\n"


@pytest.fixture
def hand(services: Services, talk: Talker) -> Hand:
    return Hand(services, talk.client.tenant_id)


async def _list_waits(talk: Talker) -> list[dict[str, Any]]:
    """Returns a node of each type that waits for another area."""
    tool = {
        "name": "Tool",
        "category": "custom",
        "tool_type": "function",
        "auth_type": "none",
        "config": {"runtime": "python", "code": _SLOW},
    }
    answer = await talk.client.post("/v1/tools", tool)
    child = await create_published(
        talk.client, [{"id": "pause", "type": "delay", "config": {"seconds": 3600}}]
    )
    configs: dict[str, dict[str, Any]] = {
        "agent": {"agent_id": talk.agent_id, "message": "Hi"},
        "tool": {"tool_id": answer.json()["data"]["id"], "input": {}},
        "approval": {"title": "Go on?", "user_ids": [talk.client.user_id]},
        "workflow": {"workflow_id": child, "input": {}},
    }
    return [{"id": name, "type": name, "config": config} for name, config in configs.items()]


async def _find_states(hand: Hand) -> dict[str, str]:
    """Returns the states of what the nodes wait for."""
    [row] = await hand.fetch(
        "SELECT (SELECT status FROM chat_jobs WHERE tenant_id = $1) AS agent,"
        " (SELECT status FROM tool_executions WHERE tenant_id = $1) AS tool,"
        " (SELECT status FROM approvals WHERE tenant_id = $1) AS approval,"
        " (SELECT status FROM workflow_executions WHERE tenant_id = $1 AND depth = 1) AS workflow",
        hand.tenant_id,
    )
    return dict(row)


STOPPED = {
    "agent": "cancelled",
    "tool": "failed",
    "approval": "cancelled",
    "workflow": "cancelled",
}


async def test_cancelling_an_execution_stops_all_that_its_nodes_wait_for(
    talk: Talker, hand: Hand
) -> None:
    nodes = await _list_waits(talk)
    workflow = await create_workflow(talk.client, nodes)
    execution_id = await start(talk.client, workflow["id"])
    await hand.run_due()
    record = await read(talk.client, execution_id)
    assert record["status"] == "running"
    assert statuses(record) == {
        "agent": "running",
        "tool": "running",
        "approval": "waiting",
        "workflow": "waiting",
    }
    await talk.client.post(f"{EXECUTIONS}/{execution_id}/cancel")
    await hand.run_due()
    assert await _find_states(hand) == STOPPED
    assert set(statuses(await read(talk.client, execution_id)).values()) == {"cancelled"}
    [row] = await hand.fetch(
        "SELECT count(*) AS count FROM work WHERE tenant_id = $1 AND state = 'pending'"
        " AND kind IN ('chat.turn', 'tools.run')",
        hand.tenant_id,
    )
    assert row["count"] == 0


async def test_a_node_that_takes_too_long_is_stopped_and_fails(talk: Talker, hand: Hand) -> None:
    nodes = [{**node, "timeout_seconds": 60} for node in await _list_waits(talk)]
    executions = []
    for node in nodes:
        workflow = await create_workflow(talk.client, [node])
        executions.append(await start(talk.client, workflow["id"]))
    await hand.run_due()
    # Not the delay of the child, which ends by its own time.
    await hand.sql(
        "UPDATE work w SET run_at = now() FROM workflow_nodes n WHERE w.tenant_id = $1"
        " AND w.ref_id = n.id || ':1:timer' AND n.type <> 'delay'",
        hand.tenant_id,
    )
    await hand.run_due()
    for execution_id in executions:
        record = await read(talk.client, execution_id)
        assert record["status"] == "failed"
        assert record["error"]["code"] == "timeout"
        assert "0:01:00" in record["error"]["message"]
    assert await _find_states(hand) == STOPPED


async def test_an_agent_that_is_deleted_while_it_answers_twice_does_not_deadlock(
    talk: Talker, hand: Hand, services: Services
) -> None:
    """A worker that ends one of the jobs locks its work before the execution."""
    config = {"agent_id": talk.agent_id, "message": "Hi"}
    nodes = [{"id": name, "type": "agent", "config": config} for name in ("a", "b")]
    workflow = await create_workflow(talk.client, nodes)
    execution_id = await start(talk.client, workflow["id"])
    await hand.run_due()
    rows = await hand.fetch(
        "SELECT id FROM work WHERE tenant_id = $1 AND kind = 'chat.turn' ORDER BY id DESC",
        hand.tenant_id,
    )
    async with services.db.tx(hand.tenant_id) as tx:
        raw = await tx.raw()
        await raw.execute("SELECT 1 FROM work WHERE id = $1 FOR UPDATE", rows[0]["id"])
        deletion = asyncio.create_task(talk.client.delete(talk.path))
        await _wait_for_lock(hand)
        await raw.execute(
            "SELECT 1 FROM workflow_executions WHERE id = $1 FOR UPDATE", execution_id
        )
    assert (await deletion).status_code == 204
    await hand.run_due()
    record = await read(talk.client, execution_id)
    assert (record["status"], record["error"]["code"]) == ("failed", "cancelled")


async def _wait_for_lock(hand: Hand) -> None:
    """Waits until another transaction waits for a lock."""
    async with asyncio.timeout(10):
        while not await hand.fetch(  # noqa: ASYNC110  # the lock is in the database
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        ):
            await asyncio.sleep(0.01)
