"""Tools of MCP servers, called over streamable HTTP with the `mcp` package."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolCaller, ToolClient, create_tool_client
from tests.agents.tools.mcp_server import McpServer
from tests.agents.tools.site import Site, open_site, respond_with
from tests.assertions import refused
from tests.world import World


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[dict[str, McpServer]]:
    """A server for each form of the responses."""
    servers = {
        "stream": McpServer(json_response=False, stateless=False),
        "json": McpServer(json_response=True, stateless=False),
        "stateless": McpServer(json_response=True, stateless=True),
    }
    async with AsyncExitStack() as stack:
        for server in servers.values():
            await stack.enter_async_context(server.serve())
        yield servers


async def _create_tool(tools: ToolCaller, mcp_server: McpServer, tool: str, **fields: Any) -> str:
    config = {"kind": "mcp", "url": mcp_server.url, "tool": tool, **fields.pop("config", {})}
    return await tools.create("custom", config, **fields)


async def test_a_call_returns_the_structured_content_of_its_result(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            tool = await _create_tool(tools, mcp_server, "find_order")
            order = {"number": 2, "lines": [{"sku": "a-1", "note": None}], "text": ""}
            assert await tools.get_output(tool, {"number": 2}) == order


async def test_without_structured_content_a_call_returns_the_content(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            tool = await _create_tool(tools, mcp_server, "greet")
            assert await tools.get_output(tool) == [{"type": "text", "text": "Hello world"}]


async def test_the_output_schema_is_that_of_the_structured_content(
    tools: ToolExecutor, stateless_server: McpServer
) -> None:
    schema = {"type": "object", "properties": {"result": {"type": "integer", "maximum": 50}}}
    tool = await _create_tool(tools, stateless_server, "add", output_schema=schema)
    assert await tools.get_output(tool, {"a": 2, "b": 40}) == {"result": 42}
    error = await tools.get_failure(tool, {"a": 20, "b": 40})
    assert error["code"] == "invalid_output"
    assert "output.result" in error["message"]


async def test_the_error_of_a_tool_with_structured_content_is_its_text(
    tools: ToolExecutor, stateless_server: McpServer
) -> None:
    data = await tools.run(await _create_tool(tools, stateless_server, "refuse"), {"code": "stale"})
    assert (data["status"], data["error"]["code"]) == ("failed", "runtime_error")
    assert data["error"]["message"] == "refused: stale"
    assert data["output"] == [{"type": "text", "text": "refused: stale"}]


async def test_structured_content_over_one_mebibyte_is_too_large(
    tools: ToolExecutor, stateless_server: McpServer
) -> None:
    tool = await _create_tool(tools, stateless_server, "find_order")
    arguments = {"number": 2, "size": 1_100_000}
    assert await tools.get_error_code(tool, arguments) == "output_too_large"


async def test_arguments_arrive_unchanged(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            arguments = {"name": "Zoë 🌍", "more": {"deep": [1, None, {"a": True}]}}
            output = await tools.get_output(
                await _create_tool(tools, mcp_server, "greet"), arguments
            )
            assert output[0]["text"] == "Hello Zoë 🌍 {'deep': [1, None, {'a': True}]}"


async def test_an_error_of_the_tool_is_a_runtime_error(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            error = await tools.get_failure(
                await _create_tool(tools, mcp_server, "fail"), {"reason": "no such order"}
            )
            assert (error["status"], error["code"]) == ("failed", "runtime_error")
            assert "fail" in error["message"]


async def test_an_unknown_tool_is_a_runtime_error(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            error = await tools.get_failure(await _create_tool(tools, mcp_server, "nothing"))
            assert error["code"] == "runtime_error"
            assert "nothing" in error["message"]


async def test_invalid_arguments_are_a_runtime_error(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            assert (
                await tools.get_error_code(await _create_tool(tools, mcp_server, "add"), {"a": "x"})
                == "runtime_error"
            )
            assert mcp_server.calls == []


async def test_a_slow_tool_is_a_timeout(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            tool = await _create_tool(tools, mcp_server, "slow", config={"timeout_ms": 800})
            data = await tools.run(tool)
            assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
            assert data["execution_time_ms"] < 5000


async def test_a_result_over_one_mebibyte_is_too_large(
    tools: ToolExecutor, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            tool = await _create_tool(tools, mcp_server, "much")
            assert await tools.get_error_code(tool, {"size": 1_100_000}) == "output_too_large"
            assert await tools.get_error_code(tool, {"size": 6_000_000}) == "output_too_large"


async def test_discovery_lists_the_tools_of_the_server(
    tool_client: ToolClient, servers: dict[str, McpServer], subtests: pytest.Subtests
) -> None:
    for form, mcp_server in servers.items():
        with subtests.test(form=form):
            mcp_server.clear()
            answer = await tool_client.client.post(
                f"/v1/tools/{await _create_tool(tool_client, mcp_server, '')}/discover"
            )
            assert answer.status_code == 200, answer.text
            tools_by_name = {tool["name"]: tool for tool in answer.json()["data"]}
            assert set(tools_by_name) == {
                *("add", "greet", "fail", "slow", "much", "find_order", "refuse")
            }
            assert tools_by_name["add"]["description"] == "Adds two numbers"
            assert tools_by_name["add"]["input_schema"]["required"] == ["a", "b"]


@pytest.fixture
def stateless_server(servers: dict[str, McpServer]) -> McpServer:
    """For tests that do not depend on the form of the responses."""
    server = servers["stateless"]
    server.clear()
    return server


async def test_a_config_without_a_tool_name_sends_no_request(
    tools: ToolExecutor, stateless_server: McpServer
) -> None:
    assert (
        await tools.get_error_code(await _create_tool(tools, stateless_server, ""))
        == "runtime_error"
    )
    assert stateless_server.headers == []


_AUTHS: list[tuple[str, dict[str, Any], str, str]] = [
    ("bearer", {"token": "tkn-123456"}, "authorization", "Bearer tkn-123456"),
    ("basic", {"username": "a", "password": "b"}, "authorization", "Basic YTpi"),
    ("api_key", {"api_key_value": "key-123456"}, "x-api-key", "key-123456"),
    ("custom", {"headers": {"X-Sig": "sig-123456"}}, "x-sig", "sig-123456"),
    ("custom", {"headers": {"X-Sig": "sig-zoë"}}, "x-sig", "sig-zoë"),
]


async def test_auth_is_sent_with_every_request(
    tools: ToolExecutor, stateless_server: McpServer, subtests: pytest.Subtests
) -> None:
    for auth_type, auth, header, value in _AUTHS:
        with subtests.test(auth_type=auth_type, auth=auth):
            stateless_server.clear()
            tool = await _create_tool(
                tools, stateless_server, "greet", auth_type=auth_type, auth_config=auth
            )
            await tools.get_output(tool)
            assert stateless_server.headers
            assert {headers.get(header) for headers in stateless_server.headers} == {value}


async def test_a_key_in_the_query_is_sent_with_every_request(
    tools: ToolExecutor, stateless_server: McpServer
) -> None:
    auth = {"api_key_value": "key/&=é", "api_key_header": "key", "api_key_location": "query"}
    config = {"url": f"{stateless_server.url}?shop=1"}
    tool = await _create_tool(
        tools, stateless_server, "greet", auth_type="api_key", auth_config=auth, config=config
    )
    await tools.get_output(tool)
    assert stateless_server.queries
    assert {query.replace("%2F", "/") for query in stateless_server.queries} == {
        "shop=1&key=key/%26%3D%C3%A9"
    }


async def test_auth_is_sent_for_discovery(
    tool_client: ToolClient, stateless_server: McpServer
) -> None:
    tool = await _create_tool(
        tool_client, stateless_server, "", auth_type="bearer", auth_config={"token": "tkn-123456"}
    )
    assert (await tool_client.client.post(f"/v1/tools/{tool}/discover")).status_code == 200
    assert {headers.get("authorization") for headers in stateless_server.headers} == {
        "Bearer tkn-123456"
    }


async def test_a_credential_needs_an_access_rule(
    tool_client: ToolClient, stateless_server: McpServer
) -> None:
    credential = await tool_client.create_credential("bearer_token", {"token": "tkn-of-the-vault"})
    auth = {"credential_id": credential}
    tool = await _create_tool(
        tool_client, stateless_server, "greet", auth_type="bearer", auth_config=auth
    )
    assert await tool_client.get_error_code(tool) == "auth_failed"
    assert stateless_server.headers == []
    await tool_client.grant_access(credential, tool)
    await tool_client.get_output(tool)
    assert stateless_server.headers[-1]["authorization"] == "Bearer tkn-of-the-vault"


async def test_a_response_401_is_auth_failed(
    tool_client: ToolClient, stateless_server: McpServer
) -> None:
    stateless_server.rejected_tokens.add("Bearer tkn-123456")
    tool = await _create_tool(
        tool_client,
        stateless_server,
        "greet",
        auth_type="bearer",
        auth_config={"token": "tkn-123456"},
    )
    assert await tool_client.get_error_code(tool) == "auth_failed"
    answer = await tool_client.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "auth_failed"}


async def test_a_refused_token_is_renewed_once(
    tools: ToolExecutor, stateless_server: McpServer
) -> None:
    async with open_site() as issuer:
        issuer.handler = respond_with('{"access_token": "tkn-first"}')
        auth = {
            "token_url": f"{issuer.url}/token",
            "client_id": "client-1",
            "client_secret": "secret-123456",
        }
        tool = await _create_tool(
            tools, stateless_server, "greet", auth_type="oauth2", auth_config=auth
        )
        await tools.get_output(tool)
        stateless_server.rejected_tokens.add("Bearer tkn-first")
        issuer.handler = respond_with('{"access_token": "tkn-second"}')
        await tools.get_output(tool)
        assert stateless_server.headers[-1]["authorization"] == "Bearer tkn-second"
        assert len(issuer.requests) == 2
        stateless_server.rejected_tokens.add("Bearer tkn-second")
        assert await tools.get_error_code(tool) == "auth_failed"
        assert len(issuer.requests) == 3


async def test_discovery_is_only_for_custom_tools(tool_client: ToolClient, site: Site) -> None:
    tool = await tool_client.create("webhook", {"url": site.url})
    refused(await tool_client.client.post(f"/v1/tools/{tool}/discover"), 409, "conflict")


async def test_discovery_does_not_find_a_tool_of_another_tenant(
    tool_client: ToolClient, world: World, stateless_server: McpServer
) -> None:
    other = await create_tool_client(world)
    tool = await _create_tool(other, stateless_server, "add")
    refused(await tool_client.client.post(f"/v1/tools/{tool}/discover"), 404, "tool_not_found")
    assert stateless_server.headers == []


async def test_discovery_needs_the_permission_to_run_tools(
    tool_client: ToolClient, world: World, stateless_server: McpServer
) -> None:
    viewer = await world.user("viewer", tool_client.client.tenant_id)
    tool = await _create_tool(tool_client, stateless_server, "add")
    refused(await viewer.post(f"/v1/tools/{tool}/discover"), 403, "forbidden")
    assert stateless_server.headers == []
