"""Overrides of a tool's config for one agent."""

from typing import Any

import pytest

from tests.agents.tools.agent_tool_client import FUNCTION, OTHER_CODE, AgentToolClient
from tests.agents.tools.site import Site
from tests.assertions import refused
from workers.main import WorkerProcess


async def test_a_wrong_key_of_an_override_is_named(
    agent_tools: AgentToolClient, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"runtime": "ruby"}, "config_override.runtime"),
        ({"timeout_ms": "1"}, "config_override.timeout_ms"),
        ({"code": None}, "config_override.code"),
        ({"packages": ["no-such-package"]}, "config_override.packages"),
        ({"auth_config": {"token": "x"}}, "config_override.auth_config"),
    ]
    for override, field in cases:
        with subtests.test(override=override, field=field):
            answer = await agent_tools.request_attach(
                await agent_tools.create_function(), config_override=override
            )
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}


_WRONG_OVERRIDES: list[tuple[dict[str, Any], str]] = [
    ({"url": "ftp://example.com"}, "config_override.url"),
    ({"url": "https://10.0.0.1"}, "config_override.url"),
    ({"method": "BREW"}, "config_override.method"),
    ({"auth_config": "x"}, "config_override.auth_config"),
    ({"auth_config": {}}, "config_override.auth_config.token"),
    ({"auth_config": {"token": "x", "y": 1}}, "config_override.auth_config.y"),
    (
        {"url": "http://example.com", "auth_config": {"token": "x"}},
        "config_override.url",
    ),
]


async def test_a_wrong_key_of_an_override_of_a_webhook_is_named(
    agent_tools: AgentToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    for override, field in _WRONG_OVERRIDES:
        with subtests.test(override=override, field=field):
            site.reset()
            answer = await agent_tools.request_attach(
                await agent_tools.create_webhook(site), config_override=override
            )
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_unknown_keys_are_dropped(agent_tools: AgentToolClient) -> None:
    override = {"timeout_ms": 7, "nonsense": 1}
    attachment = await agent_tools.attach(
        await agent_tools.create_function(), config_override=override
    )
    assert attachment["config_override"] == {"timeout_ms": 7}


async def test_an_override_that_is_nested_too_deeply_is_refused(
    agent_tools: AgentToolClient,
) -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep}
    answer = await agent_tools.request_attach(
        await agent_tools.create_function(), config_override={"x": deep}
    )
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config_override"}


async def test_an_override_wins_when_the_tool_runs_for_this_agent(
    agent_tools: AgentToolClient, worker: WorkerProcess
) -> None:
    tool_id = await agent_tools.create_function()
    await agent_tools.attach(tool_id, config_override={"code": OTHER_CODE})
    assert await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id) == {
        "code": "override"
    }
    assert await agent_tools.get_output(tool_id, agent_id=await agent_tools.create_agent()) == {
        "code": "own"
    }
    assert await agent_tools.get_output(tool_id) == {"code": "own"}
    tool = (await agent_tools.client.get(f"/v1/tools/{tool_id}")).json()["data"]
    assert tool["config"] == FUNCTION


async def test_keys_that_an_override_leaves_out_come_from_the_tool(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    config = {"url": f"{site.url}/one", "headers": {"X-A": "own"}}
    tool_id = await agent_tools.create("webhook", config)
    await agent_tools.attach(tool_id, config_override={"method": "PUT"})
    await agent_tools.get_output(tool_id, {"a": 1}, agent_id=agent_tools.agent_id)
    assert (site.last.method, site.last.path) == ("PUT", "/one")
    assert site.last.headers["X-A"] == "own"


async def test_an_override_of_null_removes_a_key_of_the_tool(
    agent_tools: AgentToolClient, site: Site, worker: WorkerProcess
) -> None:
    config = {"url": site.url, "headers": {"X-A": "own"}}
    tool_id = await agent_tools.create("webhook", config)
    await agent_tools.attach(tool_id, config_override={"headers": None})
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert "X-A" not in site.last.headers


async def test_an_override_for_the_former_type_of_the_tool_is_ignored(
    agent_tools: AgentToolClient, worker: WorkerProcess, site: Site
) -> None:
    tool_id = await agent_tools.create("webhook", {"url": site.url})
    await agent_tools.attach(tool_id, config_override={"method": "PUT"})
    config = {"base_url": site.url, "endpoints": {"a": {"method": "GET", "path": "/"}}}
    change = {"tool_type": "rest_api", "config": config}
    assert (await agent_tools.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await agent_tools.get_output(tool_id, agent_id=agent_tools.agent_id)
    assert site.last.method == "GET"
