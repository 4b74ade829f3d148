"""Servers that are not there, or do not speak MCP."""

from typing import Any

import pytest
from aiohttp import web

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolCaller, ToolClient
from tests.agents.tools.site import Site, respond_with
from tests.assertions import refused
from tests.ports import free_port


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


async def _create_tool_at(tools: ToolCaller, url: str, **config: Any) -> str:
    config = {"kind": "mcp", "url": url, "tool": "add", "timeout_ms": 60_000, **config}
    return await tools.create("custom", config)


async def test_an_unreachable_server_is_a_connection_error(tool_client: ToolClient) -> None:
    tool = await _create_tool_at(tool_client, f"http://127.0.0.1:{free_port()}/mcp")
    assert await tool_client.get_error_code(tool) == "connection_error"
    answer = await tool_client.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "connection_error"}


_FOREIGN_RESPONSES: list[tuple[int, str, str, str]] = [
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
]


async def test_a_response_that_is_not_mcp_is_an_error(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for status, media_type, body, code in _FOREIGN_RESPONSES:
        with subtests.test(status=status, media_type=media_type, body=body):
            site.reset()
            headers = {"Content-Type": media_type, "Location": "/elsewhere"}
            site.handler = respond_with(body, status=status, headers=headers)
            error = await tools.get_failure(await _create_tool_at(tools, f"{site.url}/mcp"))
            assert error["code"] == code, error
            assert "unexpectedly" not in error["message"]
            assert {request.path for request in site.requests} == {"/mcp"}


async def test_a_response_to_another_request_is_not_accepted(
    tools: ToolExecutor, site: Site
) -> None:
    body = '{"jsonrpc": "2.0", "id": 99, "result": {}}'
    site.handler = respond_with(body, headers={"Content-Type": "application/json"})
    tool = await _create_tool_at(tools, f"{site.url}/mcp", timeout_ms=1500)
    assert await tools.get_error_code(tool) == "timeout"
    assert {request.path for request in site.requests} == {"/mcp"}


async def test_an_error_status_is_reported(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    for status, code in [(500, "http_error"), (403, "auth_failed")]:
        with subtests.test(status=status):
            site.reset()
            site.handler = respond_with("no", status=status)
            assert (
                await tools.get_error_code(await _create_tool_at(tools, f"{site.url}/mcp")) == code
            )


async def test_an_endless_answer_is_cut_off(tools: ToolExecutor, site: Site) -> None:
    async def send_comments(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(b": ping\n" * 10_000)

    site.handler = send_comments
    tool = await _create_tool_at(tools, f"{site.url}/mcp")
    error = await tools.get_failure(tool)
    assert error["code"] == "output_too_large", error
