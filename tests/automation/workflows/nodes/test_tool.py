"""Nodes that run a tool."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from app.services import Services
from tests.agents.tools.execution_requests import ECHO, FAILING, SLOW, list_executions
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.rest_api_tools import create_rest_api
from tests.agents.tools.site import hang_until_closed, open_site, respond_ok, respond_with
from tests.assertions import until
from tests.automation.workflows.factories import create_workflow, run
from tests.automation.workflows.nodes.single_node import (
    build_node,
    cancel,
    fail_single,
    read_end,
    run_single,
    start_single,
    wait_for_row,
)
from tests.identity.roles.api_calls import VIEWER_GRANTS, set_permissions
from tests.peer import Handler
from tests.world import Client, World
from workers.main import WorkerProcess

_ENDED = "SELECT id FROM tool_executions WHERE tool_id = $1 AND error_code = 'cancelled'"


@pytest.fixture
def tools(admin: Client, worker: WorkerProcess) -> ToolClient:
    return ToolClient(admin)


def _respond_after(release: asyncio.Event) -> Handler:
    async def respond(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return await respond_ok(request)

    return respond


async def test_templates_keep_their_types_and_the_output_is_the_node_s(tools: ToolClient) -> None:
    tool_id = await tools.create("function", ECHO)
    values: dict[str, Any] = {"count": 3, "ratio": 0.5, "tags": ["a", {"b": None}], "ok": True}
    config = {
        "tool_id": tool_id,
        "input": {name: f"{{{{ input.{name} }}}}" for name in values} | {"text": "x{{ input.ok }}"},
    }
    node = await run_single(tools.client, "tool", config, values)
    assert node["output"] == {**values, "text": "xtrue"}
    assert node["input"] == {"tool_id": tool_id, "input": node["output"]}
    (execution,) = await list_executions(tools, tool_id)
    assert (execution["id"], execution["status"]) == (node["ref_id"], "completed")


async def test_a_failed_tool_fails_the_node_with_its_code(
    tools: ToolClient, subtests: pytest.Subtests
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    cases = {
        "it raises": (await tools.create("function", FAILING), "runtime_error"),
        "it is too slow": (await tools.create("function", SLOW), "timeout"),
        "it is disabled": (
            await tools.create("function", ECHO, is_enabled=False),
            "tool_disabled",
        ),
        "its input is invalid": (
            await tools.create("function", ECHO, input_schema=schema),
            "validation_error",
        ),
    }
    for name, (tool_id, code) in cases.items():
        with subtests.test(name):
            config = {"tool_id": tool_id, "input": {"n": "{{ input.n }}"}}
            assert await fail_single(tools.client, "tool", config, {"n": "x"}) == code


async def test_a_retry_runs_the_tool_again(tools: ToolClient) -> None:
    tool_id = await tools.create("function", FAILING)
    retry = {"max_attempts": 3, "delay_seconds": 0}
    node = await run_single(tools.client, "tool", {"tool_id": tool_id}, retry=retry)
    assert (node["status"], node["attempt"]) == ("failed", 3)
    assert len(await list_executions(tools, tool_id)) == 3


async def test_a_run_is_stopped_by_a_timeout_and_by_a_cancel(
    tools: ToolClient, services: Services, subtests: pytest.Subtests
) -> None:
    async with open_site() as site:
        for name in ("timeout", "cancel"):
            with subtests.test(name):
                closed = asyncio.Event()
                site.handler = hang_until_closed(closed)
                tool_id = await create_rest_api(tools, site)
                config = {"tool_id": tool_id, "input": {"endpoint": "one"}}
                site.requests.clear()
                if name == "timeout":
                    code = await fail_single(tools.client, "tool", config, timeout_seconds=0.5)
                    assert code == "timeout"
                else:
                    execution_id = await start_single(tools.client, "tool", config)
                    await until(lambda: site.requests)
                    assert (await cancel(tools.client, execution_id))["status"] == "cancelled"
                await wait_for_row(services, _ENDED, tool_id)
                await asyncio.wait_for(closed.wait(), 10)


async def test_a_node_whose_tool_is_deleted_fails_and_does_not_wait(
    tools: ToolClient, subtests: pytest.Subtests
) -> None:
    with subtests.test("before it runs"):
        tool_id = await tools.create("function", ECHO)
        nodes = [build_node("tool", {"tool_id": tool_id})]
        workflow = await create_workflow(tools.client, nodes)
        assert (await tools.client.delete(f"/v1/tools/{tool_id}")).status_code == 204
        record = await run(tools.client, workflow["id"])
        assert record["error"]["code"] == "tool_not_found"
    with subtests.test("while it runs"):
        async with open_site() as site:
            release = asyncio.Event()
            site.handler = _respond_after(release)
            tool_id = await create_rest_api(tools, site)
            config = {"tool_id": tool_id, "input": {"endpoint": "one"}}
            execution_id = await start_single(tools.client, "tool", config)
            await until(lambda: site.requests)
            assert (await tools.client.delete(f"/v1/tools/{tool_id}")).status_code == 204
            record = await read_end(tools.client, execution_id)
            release.set()
            assert (record["status"], record["error"]["code"]) == ("failed", "tool_deleted")


async def test_secrets_of_a_tool_are_in_no_record(tools: ToolClient) -> None:
    secret = "planted-secret-0123456789"
    async with open_site() as site:
        site.handler = respond_with(json.dumps({"echo": secret}), status=500)
        auth: dict[str, Any] = {"auth_type": "bearer", "auth_config": {"token": secret}}
        tool_id = await create_rest_api(tools, site, **auth)
        config = {"tool_id": tool_id, "input": {"endpoint": "one"}}
        execution_id = await start_single(tools.client, "tool", config)
        failed = await read_end(tools.client, execution_id)
        assert site.last.headers["Authorization"] == f"Bearer {secret}"
        site.handler = respond_with(json.dumps({"echo": secret}))
        completed = await run(tools.client, failed["workflow_id"])
    assert (failed["status"], completed["status"]) == ("failed", "completed")
    assert secret not in json.dumps([failed, completed])


async def test_a_tool_of_another_tenant_is_refused(tools: ToolClient, developer: Client) -> None:
    tool_id = await tools.create("function", ECHO)
    body = {"name": "Orders", "nodes": [build_node("tool", {"tool_id": tool_id})]}
    answer = await developer.post("/api/v1/workflows", body)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {
        "nodes.0.config.tool_id": "this tool does not exist"
    }


async def test_who_may_not_run_tools_sees_no_content_of_a_node_s_run(
    tools: ToolClient, world: World, super_admin: Client
) -> None:
    viewer = await world.user("viewer", tenant_id=tools.client.tenant_id)
    tool_id = await tools.create("function", ECHO)
    node = await run_single(tools.client, "tool", {"tool_id": tool_id, "input": {"name": "Ada"}})
    path = f"/v1/tools/{tool_id}/executions/{node['ref_id']}"
    try:
        await set_permissions(super_admin, "viewer", "tools:read", "conversations:read")
        assert (await viewer.get(path)).json()["data"]["input"] == {}
        await set_permissions(super_admin, "viewer", "tools:read", "tools:execute")
        assert (await viewer.get(path)).json()["data"]["input"] == {"name": "Ada"}
    finally:
        await set_permissions(super_admin, "viewer", *VIEWER_GRANTS)
