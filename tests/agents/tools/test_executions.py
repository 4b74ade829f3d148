"""Runs of tools: their responses, rejected requests, idempotency keys and outputs."""

import asyncio
from typing import Any

import pytest

from tests.agents.tools.execution_requests import (
    ECHO,
    FAILING,
    NO_AGENT,
    NO_TOOL,
    SLOW,
    get_tool,
    list_executions,
    request_run,
)
from tests.agents.tools.factories import ToolClient, create_tool_client
from tests.agents.tools.site import Site, respond_with
from tests.assertions import refused
from tests.world import Client, World
from workers.main import WorkerProcess


@pytest.fixture
async def tools(world: World) -> ToolClient:
    return await create_tool_client(world)


# Responses


async def test_a_run_that_succeeds_returns_its_output(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", ECHO)
    answer = await request_run(tools, tool_id, input={"a": [1, None, "ä"]})
    assert answer.status_code == 200
    assert set(answer.json()) == {"data"}
    data = answer.json()["data"]
    keys = {"execution_id", "status", "output", "execution_time_ms", "executed_at"}
    assert set(data) == keys
    assert data["execution_id"].startswith("exe_")
    assert (data["status"], data["output"]) == ("completed", {"a": [1, None, "ä"]})
    assert data["execution_time_ms"] > 0
    assert data["executed_at"].endswith("Z")


async def test_a_run_without_a_result_has_the_output_null(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    pass\n"
    tool_id = await tools.create("function", {"runtime": "python", "code": code})
    data = await tools.run(tool_id)
    assert (data["status"], data["output"]) == ("completed", None)


async def test_a_run_that_fails_is_a_normal_answer_with_an_error(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", FAILING)
    data = await tools.run(tool_id)
    assert set(data) == {"execution_id", "status", "error", "execution_time_ms", "executed_at"}
    assert data["status"] == "failed"
    assert data["error"] == {"code": "runtime_error", "message": "ValueError: no luck"}


async def test_a_run_that_takes_too_long_is_a_timeout(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", SLOW)
    data = await tools.run(tool_id)
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert 250 <= data["execution_time_ms"] < 5000


async def test_an_input_may_be_left_out(tools: ToolClient, worker: WorkerProcess) -> None:
    tool_id = await tools.create("function", ECHO)
    answer = await tools.client.post(f"/v1/tools/{tool_id}/execute", {})
    assert answer.json()["data"]["output"] == {}


async def test_ten_runs_at_once_each_have_their_own_output(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", ECHO)
    outputs = await asyncio.gather(
        *(tools.get_output(tool_id, {"n": number}) for number in range(10))
    )
    assert [item["n"] for item in outputs] == list(range(10))
    assert (await get_tool(tools, tool_id))["usage_count"] == 10


SCHEMA = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}, "to": {}},
    "required": ["to"],
}


# Rejected requests


async def test_an_input_that_violates_its_schema_is_refused_by_field(
    tools: ToolClient, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"input"}),
        ({"to": 1, "numbers": 5}, {"input.numbers"}),
        ({"to": 1, "numbers": [1, "x", 2]}, {"input.numbers.1"}),
        ({"numbers": ["x"]}, {"input", "input.numbers.0"}),
    ]
    tool_id = await tools.create("function", ECHO, input_schema=SCHEMA)
    for arguments, fields in cases:
        with subtests.test(arguments=arguments):
            answer = await request_run(tools, tool_id, input=arguments)
            assert set(refused(answer, 422, "validation_error")["details"]) == fields
            assert await list_executions(tools, tool_id) == []


async def test_an_input_that_conforms_is_run(tools: ToolClient, worker: WorkerProcess) -> None:
    tool_id = await tools.create("function", ECHO, input_schema=SCHEMA)
    arguments = {"to": None, "numbers": [1, 2.5], "more": True}
    assert await tools.get_output(tool_id, arguments) == arguments


async def test_a_wrong_field_is_named(tools: ToolClient, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": "x"}, "input"),
        ({"agent_id": 5}, "agent_id"),
        ({"agent_id": "x" * 65}, "agent_id"),
    ]
    tool_id = await tools.create("function", ECHO)
    for body, field in cases:
        with subtests.test(body=body):
            answer = await tools.client.post(f"/v1/tools/{tool_id}/execute", body)
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_an_input_that_is_nested_too_deeply_is_refused(tools: ToolClient) -> None:
    tool_id = await tools.create("function", ECHO)
    deep: Any = {}
    for _ in range(80):
        deep = {"a": deep}
    answer = await request_run(tools, tool_id, input=deep)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"input"}


async def test_an_input_of_the_wrong_shape_for_its_type_is_named(
    tools: ToolClient, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("rest_api", {"endpoint": 5}, "input.endpoint"),
        ("rest_api", {"params": []}, "input.params"),
        ("rest_api", {"headers": {"a": 1}}, "input.headers"),
        ("database", {}, "input.query"),
        ("database", {"query": "select 1", "params": {}}, "input.params"),
    ]
    for tool_type, arguments, field in cases:
        with subtests.test(tool_type=tool_type, arguments=arguments, field=field):
            config: dict[str, Any] = {"db_type": "sqlite", "database": "a.db"}
            if tool_type == "rest_api":
                endpoints = {"one": {"method": "GET", "path": "/"}}
                config = {"base_url": "https://example.com", "endpoints": endpoints}
            tool_id = await tools.create(tool_type, config)
            answer = await request_run(tools, tool_id, input=arguments)
            (key,) = refused(answer, 422, "validation_error")["details"]
            assert key.startswith(field)


async def test_a_disabled_tool_does_not_run(tools: ToolClient) -> None:
    tool_id = await tools.create("function", ECHO, is_enabled=False)
    refused(await request_run(tools, tool_id), 409, "tool_disabled")
    assert (await get_tool(tools, tool_id))["usage_count"] == 0


async def test_an_unknown_tool_does_not_run(tools: ToolClient) -> None:
    refused(await request_run(tools, NO_TOOL), 404, "tool_not_found")


async def test_an_unknown_agent_is_not_found(tools: ToolClient, world: World) -> None:
    tool_id = await tools.create("function", ECHO)
    for agent_id in (NO_AGENT, await (await create_tool_client(world)).create_agent()):
        refused(await request_run(tools, tool_id, agent_id=agent_id), 404, "agent_not_found")


async def test_a_tool_that_is_disabled_for_an_agent_does_not_run_for_it(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    tool_id, agent_id = await tools.create("function", ECHO), await tools.create_agent()
    body = {"tool_id": tool_id, "is_enabled": False}
    await tools.client.post(f"/v1/agents/{agent_id}/tools", body)
    refused(await request_run(tools, tool_id, agent_id=agent_id), 409, "tool_disabled")
    assert await tools.get_output(tool_id) == {}


async def test_super_admin_runs_any_tenants_tool(
    tools: ToolClient, super_admin: Client, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("function", ECHO)
    answer = await super_admin.post(f"/v1/tools/{tool_id}/execute", {"input": {"a": 1}})
    assert answer.json()["data"]["output"] == {"a": 1}
    assert len(await list_executions(tools, tool_id)) == 1


async def test_a_run_costs_five_units(world: World) -> None:
    tenant = await world.tenant(limits={"requests_per_minute": 100})
    caller = await world.user("agent_developer", tenant)
    answer = await caller.post(f"/v1/tools/{NO_TOOL}/execute", {})
    assert answer.headers["x-ratelimit-remaining"] == "95"


# Idempotency keys


async def test_the_same_key_is_one_run(
    tools: ToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("webhook", {"url": site.url})
    headers = {"idempotency-key": "once"}
    first = await request_run(tools, tool_id, input={"a": 1}, headers=headers)
    second = await request_run(tools, tool_id, input={"a": 1}, headers=headers)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert len(site.requests) == 1
    other = await request_run(tools, tool_id, input={"a": 2}, headers=headers)
    refused(other, 422, "idempotency_mismatch")
    assert len(site.requests) == 1


async def test_five_requests_with_one_key_at_once_are_one_run(
    tools: ToolClient, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await tools.create("webhook", {"url": site.url})
    headers = {"idempotency-key": "once"}
    answers = await asyncio.gather(
        *(request_run(tools, tool_id, headers=dict(headers)) for _ in range(5))
    )
    assert len(site.requests) == 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    bodies = [answer.json() for answer in answers if answer.status_code == 200]
    assert bodies
    assert all(answer == bodies[0] for answer in bodies)


# Outputs


async def test_an_output_that_conforms_is_returned(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    schema = {"required": ["a"]}
    tool_id = await tools.create("function", ECHO, output_schema=schema)
    assert await tools.get_output(tool_id, {"a": 1}) == {"a": 1}


async def test_an_output_that_violates_its_schema_fails_the_run_and_is_stored(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    tool_id = await tools.create("function", ECHO, output_schema=schema)
    failure = await tools.get_failure(tool_id, {"a": 1})
    assert (failure["status"], failure["code"]) == ("failed", "invalid_output")
    assert failure["message"].startswith("output.a: ")
    assert failure["output"] == {"a": 1}


async def test_an_output_that_is_nested_too_deeply_is_invalid(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    x = []\n    for _ in range(80):\n        x = [x]\n    return x\n"
    tool_id = await tools.create("function", {"runtime": "python", "code": code})
    assert await tools.get_error_code(tool_id) == "invalid_output"


async def test_a_deeply_nested_error_body_is_left_out(
    tools: ToolClient, site: Site, worker: WorkerProcess
) -> None:
    headers = {"content-type": "application/json"}
    site.handler = respond_with("[" * 700 + "]" * 700, status=500, headers=headers)
    auth = {"auth_type": "bearer", "auth_config": {"token": "planted-token"}}
    tool_id = await tools.create("webhook", {"url": site.url}, **auth)
    failure = await tools.get_failure(tool_id)
    assert (failure["code"], failure["output"]) == ("http_error", None)
    assert len(site.requests) == 1


async def test_a_nul_in_an_output_does_not_fail_a_run(
    tools: ToolClient, worker: WorkerProcess
) -> None:
    code = "def main(input):\n    return {'a\\0': 'b\\0c'}\n"
    tool_id = await tools.create("function", {"runtime": "python", "code": code})
    assert await tools.get_output(tool_id) == {"a": "bc"}
