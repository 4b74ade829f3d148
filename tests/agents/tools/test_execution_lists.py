"""Executions that are listed and read, and who sees their content."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.areas import AREAS
from app.kit.ids import new_id
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.agents.tools.execution_requests import (
    ECHO,
    EXECUTION_KEYS,
    FAILING,
    execute_sql,
    fetch_value,
    get_execution,
    get_tool,
    insert_execution,
    list_executions,
)
from tests.agents.tools.factories import ToolClient, create_tool_client
from tests.assertions import refused
from tests.world import World
from workers.main import WorkerProcess


@pytest.fixture
async def tools(world: World) -> ToolClient:
    return await create_tool_client(world)


# Lists


async def test_a_record_has_input_and_output(tools: ToolClient, worker: WorkerProcess) -> None:
    tool_id, agent_id = await tools.create("function", ECHO), await tools.create_agent()
    data = await tools.run(tool_id, {"b": 1, "a": 2}, agent_id=agent_id)
    record = await get_execution(tools, tool_id, data["execution_id"])
    assert set(record) == EXECUTION_KEYS
    assert record == {
        "id": data["execution_id"],
        "tool_id": tool_id,
        "agent_id": agent_id,
        "status": "completed",
        "input": {"b": 1, "a": 2},
        "output": {"b": 1, "a": 2},
        "error": None,
        "execution_time_ms": data["execution_time_ms"],
        "executed_at": data["executed_at"],
    }
    assert await list_executions(tools, tool_id) == [record]


async def test_a_list_leaves_large_inputs_and_outputs_out(
    tools: ToolClient, services: Services
) -> None:
    tool_id = await tools.create("function", ECHO)
    execution_id = await insert_execution(services, tools, tool_id, datetime.now(UTC))
    large, largest_listed = {"a": "x" * 32_768}, "x" * 32_766
    sql = "UPDATE tool_executions SET input = $2, output = $3 WHERE id = $1"
    await execute_sql(services, sql, execution_id, json.dumps(large), json.dumps(largest_listed))
    [listed] = await list_executions(tools, tool_id)
    assert (listed["input"], listed["output"]) == (None, largest_listed)
    await execute_sql(services, sql, execution_id, "{}", json.dumps(large))
    [listed] = await list_executions(tools, tool_id)
    assert (listed["input"], listed["output"]) == ({}, None)
    assert (await get_execution(tools, tool_id, execution_id))["output"] == large


async def test_a_record_of_a_failure_has_its_error(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", FAILING)
    data = await tools.run(tool_id)
    record = await get_execution(tools, tool_id, data["execution_id"])
    assert (record["status"], record["output"], record["agent_id"]) == ("failed", None, None)
    assert record["error"] == data["error"]


async def test_a_record_is_found_only_under_its_own_tool(
    tools: ToolClient, world: World, worker: WorkerProcess
) -> None:
    tool_id, other = [await tools.create("function", ECHO) for _ in range(2)]
    execution_id = (await tools.run(tool_id))["execution_id"]
    path = f"/v1/tools/{other}/executions/{execution_id}"
    refused(await tools.client.get(path), 404, "execution_not_found")
    path = f"/v1/tools/{tool_id}/executions"
    refused(await tools.client.get(f"{path}/exe_none"), 404, "execution_not_found")
    stranger = await world.user("tenant_admin")
    refused(await stranger.get(f"{path}/{execution_id}"), 404, "tool_not_found")
    viewer = await world.user("viewer", tools.client.tenant_id)
    assert (await viewer.get(f"{path}/{execution_id}")).status_code == 200


async def test_a_run_is_counted_when_it_ends(tools: ToolClient, worker: WorkerProcess) -> None:
    good, bad = await tools.create("function", ECHO), await tools.create("function", FAILING)
    before = await get_tool(tools, good)
    for tool_id in (good, good, bad):
        await tools.run(tool_id)
    views = [await get_tool(tools, tool_id) for tool_id in (good, bad)]
    assert [item["usage_count"] for item in views] == [2, 1]
    assert all(item["last_used_at"].endswith("Z") for item in views)
    assert views[0]["usage_stats"]["success_rate"] == 100.0
    assert views[0]["usage_stats"]["total_executions"] == 2
    assert views[1]["usage_stats"]["failed"] == 1
    assert views[0]["updated_at"] == before["updated_at"]


# Recent, because the workers of tests delete old executions.
NOON = (datetime.now(UTC) - timedelta(days=3)).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture
async def history(tools: ToolClient, services: Services) -> tuple[str, list[str]]:
    """A tool and four runs of it, an hour apart."""
    tool_id = await tools.create("function", ECHO)
    statuses = ["completed", "failed", "timeout", "completed"]
    ids = [
        await insert_execution(
            services, tools, tool_id, NOON + timedelta(hours=hour), status=status
        )
        for hour, status in enumerate(statuses)
    ]
    await insert_execution(services, tools, tool_id, NOON, status="running", finished=False)
    return tool_id, ids


_FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [3, 2, 1, 0]),
    ({"status": "completed"}, [3, 0]),
    ({"status": "failed"}, [1]),
    ({"status": "timeout"}, [2]),
    ({"after": "{day}T13:00:00Z"}, [3, 2]),
    ({"after": "{day}T12:59:59Z"}, [3, 2, 1]),
    ({"before": "{day}T13:00:00Z"}, [0]),
    ({"before": "{day}T14:30:00+01:00"}, [1, 0]),
    ({"after": "{day}T12:00:00", "before": "{day}T15:00:00"}, [2, 1]),
    ({"after": "{next_day}"}, []),
    ({"per_page": 1, "page": 2}, [2]),
    ({"status": "completed", "before": "{day}T14:00:00Z"}, [0]),
]


async def test_runs_are_listed_the_latest_first_and_filtered(
    tools: ToolClient, history: tuple[str, list[str]], subtests: pytest.Subtests
) -> None:
    tool_id, ids = history
    days = {"day": f"{NOON:%Y-%m-%d}", "next_day": f"{NOON + timedelta(days=1):%Y-%m-%d}"}
    for params, expected in _FILTERS:
        with subtests.test(params=params):
            filters = {
                name: value.format(**days) if isinstance(value, str) else value
                for name, value in params.items()
            }
            record_ids = [
                record["id"] for record in await list_executions(tools, tool_id, **filters)
            ]
            assert record_ids == [ids[index] for index in expected]


async def test_a_list_of_runs_has_pagination(
    tools: ToolClient, history: tuple[str, list[str]]
) -> None:
    params = {"per_page": 3, "page": 2}
    answer = await tools.client.get(f"/v1/tools/{history[0]}/executions", params=params)
    expected = {"page": 2, "per_page": 3, "total": 4, "total_pages": 2}
    assert answer.json()["pagination"] == expected


_WRONG_PARAMETERS: list[tuple[str, Any]] = [
    ("status", "running"),
    ("status", "x"),
    ("after", "yesterday"),
    ("before", "2026-13-01"),
    ("page", 0),
    ("per_page", 101),
]


async def test_a_wrong_parameter_of_the_list_is_named(
    tools: ToolClient, history: tuple[str, list[str]], subtests: pytest.Subtests
) -> None:
    for name, value in _WRONG_PARAMETERS:
        with subtests.test(name=name, value=value):
            answer = await tools.client.get(
                f"/v1/tools/{history[0]}/executions", params={name: value}
            )
            assert name in refused(answer, 422, "validation_error")["details"]


async def test_a_run_that_has_not_ended_is_not_shown(tools: ToolClient, services: Services) -> None:
    tool_id = await tools.create("function", ECHO)
    running = await insert_execution(
        services, tools, tool_id, NOON, status="running", finished=False
    )
    path = f"/v1/tools/{tool_id}/executions/{running}"
    refused(await tools.client.get(path), 404, "execution_not_found")


async def test_runs_within_the_days_of_the_plan_are_kept(
    tools: ToolClient, services: Services
) -> None:
    tool_id, now = await tools.create("function", ECHO), datetime.now(UTC)
    recent = await insert_execution(services, tools, tool_id, now - timedelta(days=364, hours=23))
    await insert_execution(services, tools, tool_id, now - timedelta(days=365, hours=1))
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)
    assert [record["id"] for record in await list_executions(tools, tool_id)] == [recent]


_WAITING_WORK = """
INSERT INTO work (id, kind, run_at, max_attempts, correlation_id)
VALUES ($1, 'tools.run', now() + interval '1 day', 3, 'cor')
"""


async def test_a_run_is_kept_with_its_input_until_it_is_finished(
    tools: ToolClient, services: Services
) -> None:
    """Its work may wait for a worker for longer than the agent's retention."""
    agent_id, tool_id = await tools.create_agent(), await tools.create("function", ECHO)
    await execute_sql(services, "UPDATE agents SET retention_days = 1 WHERE id = $1", agent_id)
    old, status = datetime.now(UTC) - timedelta(days=366), "pending"
    execution_id = await insert_execution(
        services, tools, tool_id, old, agent_id=agent_id, status=status, finished=False
    )
    work_id, content = f"wrk_{execution_id}", '{"text": "a"}'
    await execute_sql(services, _WAITING_WORK, work_id)
    change = "UPDATE tool_executions SET work_id = $2, input = $3::text::json WHERE id = $1"
    await execute_sql(services, change, execution_id, work_id, content)
    select = "SELECT input::text FROM tool_executions WHERE id = $1"
    for state, expected in (("pending", content), ("dead", None)):
        await execute_sql(services, "UPDATE work SET state = $2 WHERE id = $1", work_id, state)
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            await retention.delete_expired(await tx.raw(), AREAS.retention)
        assert await fetch_value(services, select, execution_id) == expected


_TURN = """
INSERT INTO work (id, tenant_id, kind, ref_id, state, run_at, lane, max_attempts, correlation_id,
                  created_at)
VALUES ($1, $2, 'chat.turn', 'job_x', $3, now() + interval '1 day', $2, 3, $4, $5)
"""


async def test_content_is_kept_until_the_turn_that_called_the_tool_is_finished(
    tools: ToolClient, services: Services, subtests: pytest.Subtests
) -> None:
    """A turn whose worker was killed reads the output again when it is resumed."""
    agent_id, tool_id = await tools.create_agent(), await tools.create("function", ECHO)
    await execute_sql(services, "UPDATE agents SET retention_days = 1 WHERE id = $1", agent_id)
    select = "SELECT output::text FROM tool_executions WHERE id = $1"
    set_correlation = "UPDATE tool_executions SET correlation_id = id WHERE id = $1"
    now, other_tenant = datetime.now(UTC), new_id("ten")
    for days, cleared in ((2, [None]), (366, [])):
        executed_at = now - timedelta(days=days)
        before, after = executed_at - timedelta(seconds=1), executed_at + timedelta(seconds=1)
        for state, tenant_id, accepted_at, is_kept in (
            ("pending", tools.client.tenant_id, before, True),
            ("leased", tools.client.tenant_id, before, True),
            ("done", tools.client.tenant_id, before, False),
            ("pending", tools.client.tenant_id, after, False),
            ("pending", other_tenant, before, False),
        ):
            with subtests.test(days=days, state=state, accepted_at=accepted_at, is_kept=is_kept):
                execution_id = await insert_execution(
                    services, tools, tool_id, executed_at, agent_id=agent_id
                )
                await execute_sql(services, set_correlation, execution_id)
                values = (new_id("wrk"), tenant_id, state, execution_id, accepted_at)
                await execute_sql(services, _TURN, *values)
                async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                    raw = await tx.raw()
                    await retention.delete_expired(raw, AREAS.retention)
                    outputs = [row["output"] for row in await raw.fetch(select, execution_id)]
                assert outputs == (["{}"] if is_kept else cleared)


# Hidden content


async def test_a_role_that_may_not_run_tools_sees_no_content_of_runs(
    tools: ToolClient, world: World, worker: WorkerProcess, subtests: pytest.Subtests
) -> None:
    tool_id = await tools.create("function", FAILING)
    await tools.run(tool_id, {"text": "something private"})
    for role in ("agent_user", "viewer"):
        with subtests.test(role=role):
            other = await world.user(role, tools.client.tenant_id)
            answer = await other.get(f"/v1/tools/{tool_id}/executions")
            (execution,) = answer.json()["data"]
            assert (execution["input"], execution["output"]) == ({}, None)
            assert execution["error"] == {"code": "runtime_error", "message": ""}


async def test_input_from_a_conversation_is_for_roles_that_may_read_conversations(
    tools: ToolClient, world: World, services: Services, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", ECHO)
    await tools.run(tool_id, {"text": "something private"})
    await execute_sql(
        services, "UPDATE tool_executions SET call_id = id WHERE tool_id = $1", tool_id
    )
    for role, input_ in (("tenant_admin", {"text": "something private"}), ("agent_user", {})):
        other = await world.user(role, tools.client.tenant_id)
        answer = await other.get(f"/v1/tools/{tool_id}/executions")
        assert [execution["input"] for execution in answer.json()["data"]] == [input_]
