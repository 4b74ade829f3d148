"""Nodes that wait for some time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.services import Services
from tests.automation.workflows.factories import (
    create_workflow,
    run,
    start,
    transform,
    wait_for_status,
)
from tests.automation.workflows.nodes.single_node import (
    cancel,
    fail_single,
    run_single,
    start_single,
)
from tests.database import fetch_rows
from tests.world import Client, World
from workers.main import WorkerProcess

_DAYS = 3 * 86400
_TIMER = """
SELECT state, run_at FROM work
WHERE tenant_id = $1 AND kind = 'workflows.node' AND run_at > now()
"""


async def test_a_node_waits_as_long_as_it_says(
    developer: Client, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    started = datetime.now(UTC)
    soon = (started + timedelta(seconds=0.2)).isoformat()
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"seconds": 0.2}, {}),
        ({"seconds": "{{ input.seconds }}"}, {"seconds": 0.2}),
        ({"until": "{{ input.soon }}"}, {"soon": soon}),
        ({"seconds": 0}, {}),
        ({"until": "2020-01-01"}, {}),
        ({"until": "2020-01-01T10:00:00+02:00"}, {}),
    ]
    for config, values in cases:
        with subtests.test(str(config)):
            node = await run_single(developer, "delay", config, values)
            assert node["status"] == "completed", node["error"]
            until = datetime.fromisoformat(node["output"]["until"])
            took = until - datetime.fromisoformat(node["started_at"])
            assert took.total_seconds() >= (0.15 if "2" in str(config.get("seconds")) else -1e9)


async def test_a_time_that_is_none_fails_the_node(
    developer: Client, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    cases = [
        ("until", "tomorrow", "validation_error"),
        ("until", "", "validation_error"),
        ("until", "9999-01-01", "validation_error"),
        ("until", "0001-01-01T00:00:00+14:00", "validation_error"),
        ("seconds", -1, "invalid_config"),
        ("seconds", "5", "invalid_config"),
        ("seconds", 1e12, "invalid_config"),
        ("seconds", None, "invalid_config"),
    ]
    for name, value, code in cases:
        with subtests.test(f"{name} {value}"):
            config = {name: "{{ input.value }}"}
            assert await fail_single(developer, "delay", config, {"value": value}) == code


async def test_a_long_delay_is_a_row_and_holds_no_slot(
    world: World, worker: WorkerProcess, services: Services
) -> None:
    limits = {"requests_per_minute": 100_000, "concurrent_executions": 1}
    tenant_id = await world.tenant(limits=limits)
    client = await world.user("tenant_admin", tenant_id)
    execution_id = await start_single(client, "delay", {"seconds": _DAYS})
    record = await wait_for_status(client, execution_id, "waiting")
    assert record["nodes"][0]["status"] == "waiting"
    (timer,) = await fetch_rows(services, _TIMER, tenant_id)
    assert timer["state"] == "pending"
    wait = timer["run_at"] - datetime.now(UTC)
    assert timedelta(seconds=_DAYS - 60) < wait <= timedelta(seconds=_DAYS)
    workflow = await create_workflow(client, [transform("other", 1)])
    assert (await run(client, workflow["id"]))["status"] == "completed"
    assert (await cancel(client, execution_id))["status"] == "cancelled"
    await start(client, workflow["id"])
