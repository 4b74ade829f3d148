"""Tools of MCP servers, called over streamable HTTP with the `mcp` package."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.asking import refused
from tests.ports import free_port
from tests.tools.factories import ToolClient, create_tool_client
from tests.tools.mcp_server import McpServer
from tests.tools.site import Site, open_site, respond_with
from tests.world import World


@pytest.fixture(
    scope="module",
    params=[(False, False), (True, False), (True, True)],
    ids=["stream", "json", "stateless"],
)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[McpServer]:
    json_response, stateless = request.param
    server = McpServer(json_response=json_response, stateless=stateless)
    async with server.serve():
        yield server


@pytest.fixture
def mcp_server(server: McpServer) -> McpServer:
    server.clear()
    return server


async def _create_tool(tools: ToolClient, mcp_server: McpServer, tool: str, **fields: Any) -> str:
    config = {"kind": "mcp", "url": mcp_server.url, "tool": tool, **fields.pop("config", {})}
    return await tools.create("custom", config, **fields)


async def test_a_call_returns_the_content_of_its_result(
    tools: ToolClient, mcp_server: McpServer
) -> None:
    output = await tools.get_output(await _create_tool(tools, mcp_server, "add"), {"a": 2, "b": 40})
    assert output == [{"type": "text", "text": "42"}]


async def test_arguments_arrive_unchanged(tools: ToolClient, mcp_server: McpServer) -> None:
    arguments = {"name": "Zoë 🌍", "more": {"deep": [1, None, {"a": True}]}}
    output = await tools.get_output(await _create_tool(tools, mcp_server, "greet"), arguments)
    assert output[0]["text"] == "Hello Zoë 🌍 {'deep': [1, None, {'a': True}]}"


async def test_an_error_of_the_tool_is_a_runtime_error(
    tools: ToolClient, mcp_server: McpServer
) -> None:
    error = await tools.get_failure(
        await _create_tool(tools, mcp_server, "fail"), {"reason": "no such order"}
    )
    assert (error["status"], error["code"]) == ("failed", "runtime_error")
    assert "fail" in error["message"]


async def test_an_unknown_tool_is_a_runtime_error(tools: ToolClient, mcp_server: McpServer) -> None:
    error = await tools.get_failure(await _create_tool(tools, mcp_server, "nothing"))
    assert error["code"] == "runtime_error"
    assert "nothing" in error["message"]


async def test_invalid_arguments_are_a_runtime_error(
    tools: ToolClient, mcp_server: McpServer
) -> None:
    assert (
        await tools.get_error_code(await _create_tool(tools, mcp_server, "add"), {"a": "x"})
        == "runtime_error"
    )
    assert mcp_server.calls == []


async def test_a_slow_tool_is_a_timeout(tools: ToolClient, mcp_server: McpServer) -> None:
    tool = await _create_tool(tools, mcp_server, "slow", config={"timeout_ms": 800})
    data = await tools.run(tool)
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert data["execution_time_ms"] < 5000


async def test_a_result_over_one_mebibyte_is_too_large(
    tools: ToolClient, mcp_server: McpServer
) -> None:
    tool = await _create_tool(tools, mcp_server, "much")
    assert await tools.get_error_code(tool, {"size": 1_100_000}) == "output_too_large"
    assert await tools.get_error_code(tool, {"size": 6_000_000}) == "output_too_large"


async def test_discovery_lists_the_tools_of_the_server(
    tools: ToolClient, mcp_server: McpServer
) -> None:
    answer = await tools.client.post(
        f"/v1/tools/{await _create_tool(tools, mcp_server, '')}/discover"
    )
    assert answer.status_code == 200, answer.text
    tools_by_name = {tool["name"]: tool for tool in answer.json()["data"]}
    assert set(tools_by_name) == {"add", "greet", "fail", "slow", "much"}
    assert tools_by_name["add"]["description"] == "Adds two numbers"
    assert tools_by_name["add"]["input_schema"]["required"] == ["a", "b"]


@pytest.fixture(scope="module")
async def shared_server() -> AsyncIterator[McpServer]:
    server = McpServer(json_response=True, stateless=True)
    async with server.serve():
        yield server


@pytest.fixture
def stateless_server(shared_server: McpServer) -> McpServer:
    """For tests that do not depend on the form of the responses."""
    shared_server.clear()
    return shared_server


async def test_a_config_without_a_tool_name_sends_no_request(
    tools: ToolClient, stateless_server: McpServer
) -> None:
    assert (
        await tools.get_error_code(await _create_tool(tools, stateless_server, ""))
        == "runtime_error"
    )
    assert stateless_server.headers == []


@pytest.mark.parametrize(
    ("auth_type", "auth", "header", "value"),
    [
        ("bearer", {"token": "tkn-123456"}, "authorization", "Bearer tkn-123456"),
        ("basic", {"username": "a", "password": "b"}, "authorization", "Basic YTpi"),
        ("api_key", {"api_key_value": "key-123456"}, "x-api-key", "key-123456"),
        ("custom", {"headers": {"X-Sig": "sig-123456"}}, "x-sig", "sig-123456"),
        ("custom", {"headers": {"X-Sig": "sig-zoë"}}, "x-sig", "sig-zoë"),
    ],
)
async def test_auth_is_sent_with_every_request(
    tools: ToolClient,
    stateless_server: McpServer,
    auth_type: str,
    auth: dict[str, Any],
    header: str,
    value: str,
) -> None:
    tool = await _create_tool(
        tools, stateless_server, "greet", auth_type=auth_type, auth_config=auth
    )
    await tools.get_output(tool)
    assert stateless_server.headers
    assert {headers.get(header) for headers in stateless_server.headers} == {value}


async def test_a_key_in_the_query_is_sent_with_every_request(
    tools: ToolClient, stateless_server: McpServer
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


async def test_auth_is_sent_for_discovery(tools: ToolClient, stateless_server: McpServer) -> None:
    tool = await _create_tool(
        tools, stateless_server, "", auth_type="bearer", auth_config={"token": "tkn-123456"}
    )
    assert (await tools.client.post(f"/v1/tools/{tool}/discover")).status_code == 200
    assert {headers.get("authorization") for headers in stateless_server.headers} == {
        "Bearer tkn-123456"
    }


async def test_a_credential_needs_an_access_rule(
    tools: ToolClient, stateless_server: McpServer
) -> None:
    credential = await tools.create_credential("bearer_token", {"token": "tkn-of-the-vault"})
    auth = {"credential_id": credential}
    tool = await _create_tool(
        tools, stateless_server, "greet", auth_type="bearer", auth_config=auth
    )
    assert await tools.get_error_code(tool) == "auth_failed"
    assert stateless_server.headers == []
    await tools.grant_access(credential, tool)
    await tools.get_output(tool)
    assert stateless_server.headers[-1]["authorization"] == "Bearer tkn-of-the-vault"


async def test_a_response_401_is_auth_failed(
    tools: ToolClient, stateless_server: McpServer
) -> None:
    stateless_server.rejected_tokens.add("Bearer tkn-123456")
    tool = await _create_tool(
        tools, stateless_server, "greet", auth_type="bearer", auth_config={"token": "tkn-123456"}
    )
    assert await tools.get_error_code(tool) == "auth_failed"
    answer = await tools.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "auth_failed"}


async def test_a_refused_token_is_renewed_once(
    tools: ToolClient, stateless_server: McpServer
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


async def _create_tool_at(tools: ToolClient, url: str, **config: Any) -> str:
    config = {"kind": "mcp", "url": url, "tool": "add", "timeout_ms": 60_000, **config}
    return await tools.create("custom", config)


async def test_an_unreachable_server_is_a_connection_error(tools: ToolClient) -> None:
    tool = await _create_tool_at(tools, f"http://127.0.0.1:{free_port()}/mcp")
    assert await tools.get_error_code(tool) == "connection_error"
    answer = await tools.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "connection_error"}


@pytest.mark.parametrize(
    ("status", "media_type", "body", "code"),
    [
        (200, "text/html", "<html>Welcome</html>", "runtime_error"),
        (200, "application/json", "{}", "connection_error"),
        (200, "application/json", "[]", "connection_error"),
        (200, "application/json", "not json", "connection_error"),
        (200, "text/event-stream", "data: {not json\n\n", "connection_error"),
        (200, "text/event-stream", "", "runtime_error"),
        (202, "text/plain", "", "runtime_error"),
        (204, "text/plain", "", "runtime_error"),
        (404, "text/plain", "nothing here", "runtime_error"),
        (405, "text/plain", "", "runtime_error"),
        (301, "text/plain", "", "runtime_error"),
    ],
)
async def test_a_response_that_is_not_mcp_is_an_error(
    tools: ToolClient, site: Site, status: int, media_type: str, body: str, code: str
) -> None:
    headers = {"Content-Type": media_type, "Location": "/elsewhere"}
    site.handler = respond_with(body, status=status, headers=headers)
    error = await tools.get_failure(await _create_tool_at(tools, f"{site.url}/mcp"))
    assert error["code"] == code, error
    assert "unexpectedly" not in error["message"]
    assert {request.path for request in site.requests} == {"/mcp"}


async def test_a_response_to_another_request_is_not_accepted(tools: ToolClient, site: Site) -> None:
    body = '{"jsonrpc": "2.0", "id": 99, "result": {}}'
    site.handler = respond_with(body, headers={"Content-Type": "application/json"})
    tool = await _create_tool_at(tools, f"{site.url}/mcp", timeout_ms=1500)
    assert await tools.get_error_code(tool) == "timeout"
    assert {request.path for request in site.requests} == {"/mcp"}


@pytest.mark.parametrize(("status", "code"), [(500, "http_error"), (403, "auth_failed")])
async def test_an_error_status_is_reported(
    tools: ToolClient, site: Site, status: int, code: str
) -> None:
    site.handler = respond_with("no", status=status)
    assert await tools.get_error_code(await _create_tool_at(tools, f"{site.url}/mcp")) == code


async def test_an_endless_answer_is_cut_off(tools: ToolClient, site: Site) -> None:
    async def send_comments(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(b": ping\n" * 10_000)

    site.handler = send_comments
    tool = await _create_tool_at(tools, f"{site.url}/mcp")
    error = await tools.get_failure(tool)
    assert error["code"] == "output_too_large", error


async def test_discovery_is_only_for_custom_tools(tools: ToolClient, site: Site) -> None:
    tool = await tools.create("webhook", {"url": site.url})
    refused(await tools.client.post(f"/v1/tools/{tool}/discover"), 409, "conflict")


async def test_discovery_does_not_find_a_tool_of_another_tenant(
    tools: ToolClient, world: World, stateless_server: McpServer
) -> None:
    other = await create_tool_client(world)
    tool = await _create_tool(other, stateless_server, "add")
    refused(await tools.client.post(f"/v1/tools/{tool}/discover"), 404, "tool_not_found")
    assert stateless_server.headers == []


async def test_discovery_needs_the_permission_to_run_tools(
    tools: ToolClient, world: World, stateless_server: McpServer
) -> None:
    viewer = await world.user("viewer", tools.client.tenant_id)
    tool = await _create_tool(tools, stateless_server, "add")
    refused(await viewer.post(f"/v1/tools/{tool}/discover"), 403, "forbidden")
    assert stateless_server.headers == []
