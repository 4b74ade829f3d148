"""Retries, timeouts and limits of nodes."""

import asyncio
from datetime import datetime, timedelta

import pytest

from app.domain.automation.workflows.definitions import Retry
from tests.agents.tools.execution_requests import FAILING
from tests.agents.tools.factories import ToolClient
from tests.automation.workflows.factories import create_workflow, run, transform, wait_for_status
from tests.automation.workflows.nodes.single_node import (
    build_node,
    cancel,
    fail_single,
    start_single,
)
from tests.lengths import IS_LONG
from tests.world import Client, World
from workers.main import WorkerProcess

_CEL_BOMB = "input.items.map(a, input.items.map(b, input.items.map(c, a + b + c))).size() > 0"
_TEMPLATE_BOMB = "{{ 'x' * 10000000000 }}"
_REPEATED_BOMB = (
    "{% for a in input.items %}{% for b in input.items %}{{ 'x' * 1000 }}{% endfor %}{% endfor %}"
)


async def test_a_retry_waits_longer_each_time(admin: Client, worker: WorkerProcess) -> None:
    tool_id = await ToolClient(admin).create("function", FAILING)
    retry = {"max_attempts": 3, "delay_seconds": 0.2, "backoff": 3}
    workflow = await create_workflow(admin, [build_node("tool", {"tool_id": tool_id}, retry=retry)])
    record = await run(admin, workflow["id"])
    (node,) = record["nodes"]
    assert (node["status"], node["attempt"]) == ("failed", 3)
    took = datetime.fromisoformat(record["finished_at"]) - datetime.fromisoformat(
        record["started_at"]
    )
    assert took >= timedelta(seconds=0.8)


def test_the_delay_of_a_retry_grows_up_to_a_day() -> None:
    retry = Retry(max_attempts=10, delay_seconds=3600, backoff=10)
    assert [retry.find_delay(attempt) for attempt in (1, 2, 3, 9)] == [3600, 36000, 86400, 86400]


async def test_a_node_that_waits_for_its_retry_holds_no_slot(
    world: World, worker: WorkerProcess
) -> None:
    limits = {"requests_per_minute": 100_000, "concurrent_executions": 1}
    client = await world.user("tenant_admin", await world.tenant(limits=limits))
    tool_id = await ToolClient(client).create("function", FAILING)
    retry = {"max_attempts": 2, "delay_seconds": 3600}
    execution_id = await start_single(client, "tool", {"tool_id": tool_id}, retry=retry)
    record = await wait_for_status(client, execution_id, "waiting")
    (node,) = record["nodes"]
    assert (node["status"], node["attempt"]) == ("pending", 1)
    assert node["error"]["code"] == "runtime_error"
    other = await create_workflow(client, [transform("other", 1)])
    assert (await run(client, other["id"]))["status"] == "completed"
    assert (await cancel(client, execution_id))["status"] == "cancelled"


async def test_an_expression_without_bounds_fails_its_node_alone(
    world: World, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    villain, neighbour = await world.user("agent_developer"), await world.user("agent_developer")
    calm = await create_workflow(neighbour, [transform("fine", "{{ input.n + 1 }}")])
    items = {"items": list(range(300))}
    bombs = {
        "condition": ("condition", {"expression": _CEL_BOMB}),
        "template": ("transform", {"output": _TEMPLATE_BOMB}),
    }
    if IS_LONG:
        bombs["loop"] = ("transform", {"output": _REPEATED_BOMB})
    for name, (node_type, config) in bombs.items():
        with subtests.test(name):
            failing = asyncio.create_task(fail_single(villain, node_type, config, items))
            record = await run(neighbour, calm["id"], n=1)
            assert record["output"] == 2
            assert await failing == "expression_limit"
