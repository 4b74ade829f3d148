"""Tools of MCP servers, asked over streamable HTTP by the protocol's own package."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.server import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.asking import refused, until
from tests.ports import free_port
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site, always, open_site
from tests.world import World
from workers.main import WorkerProcess


class Offers:
    """A real server; it keeps the headers and queries that it was called with."""

    def __init__(self, *, json_response: bool, stateless: bool) -> None:
        self.url = ""
        self.headers: list[dict[str, str]] = []
        self.queries: list[str] = []
        self.calls: list[str] = []
        self.refused: set[str] = set()
        self._server = self._offering()
        app = self._server.streamable_http_app(
            json_response=json_response, stateless_http=stateless
        )
        self._app: ASGIApp = app

    def _offering(self) -> MCPServer[Any]:
        server: MCPServer[Any] = MCPServer("Shop")

        @server.tool(description="Adds two numbers")
        def add(a: int, b: int) -> int:
            self.calls.append("add")
            return a + b

        @server.tool()
        def greet(name: str = "world", more: dict[str, Any] | None = None) -> str:
            return f"Hello {name} {more or ''}".strip()

        @server.tool()
        def fail(reason: str) -> str:
            raise ValueError(reason)

        @server.tool()
        async def slow() -> str:
            self.calls.append("slow")
            await asyncio.sleep(60)
            return "late"

        @server.tool()
        def much(size: int) -> str:
            return "x" * size

        return server

    async def _watched(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers)
            self.queries.append(scope["query_string"].decode())
            if headers.get("authorization") in self.refused:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)

    def forget(self) -> None:
        for kept in (self.headers, self.queries, self.calls, self.refused):
            kept.clear()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        port = free_port()
        config = uvicorn.Config(
            self._watched,
            host="127.0.0.1",
            port=port,
            interface="asgi3",
            log_config=None,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        running = asyncio.create_task(server.serve())
        try:
            await until(lambda: server.started or running.done())
            self.url = f"http://127.0.0.1:{port}/mcp"
            yield
        finally:
            server.should_exit = True
            await running


@pytest.fixture(scope="module")
async def bench(world: World, worker: WorkerProcess) -> Bench:
    return await bench_of(world)


@pytest.fixture(
    scope="module",
    params=[(False, False), (True, False), (True, True)],
    ids=["stream", "json", "stateless"],
)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Offers]:
    json_response, stateless = request.param
    made = Offers(json_response=json_response, stateless=stateless)
    async with made.serving():
        yield made


@pytest.fixture
def offers(server: Offers) -> Offers:
    server.forget()
    return server


async def _tool(bench: Bench, offers: Offers, tool: str, **more: Any) -> str:
    config = {"kind": "mcp", "url": offers.url, "tool": tool, **more.pop("config", {})}
    return await bench.create("custom", config, **more)


async def test_a_call_gives_the_content_of_its_result(bench: Bench, offers: Offers) -> None:
    output = await bench.output(await _tool(bench, offers, "add"), {"a": 2, "b": 40})
    assert output == [{"type": "text", "text": "42"}]


async def test_arguments_arrive_as_they_are(bench: Bench, offers: Offers) -> None:
    given = {"name": "Zoë 🌍", "more": {"deep": [1, None, {"a": True}]}}
    output = await bench.output(await _tool(bench, offers, "greet"), given)
    assert output[0]["text"] == "Hello Zoë 🌍 {'deep': [1, None, {'a': True}]}"


async def test_an_error_of_the_tool_is_told(bench: Bench, offers: Offers) -> None:
    error = await bench.failure(await _tool(bench, offers, "fail"), {"reason": "no such order"})
    assert (error["status"], error["code"]) == ("failed", "runtime_error")
    assert "fail" in error["message"]


async def test_an_unknown_tool_is_told(bench: Bench, offers: Offers) -> None:
    error = await bench.failure(await _tool(bench, offers, "nothing"))
    assert error["code"] == "runtime_error"
    assert "nothing" in error["message"]


async def test_arguments_that_do_not_fit_are_told(bench: Bench, offers: Offers) -> None:
    assert await bench.code(await _tool(bench, offers, "add"), {"a": "x"}) == "runtime_error"
    assert offers.calls == []


async def test_a_slow_tool_is_a_timeout(bench: Bench, offers: Offers) -> None:
    tool = await _tool(bench, offers, "slow", config={"timeout_ms": 800})
    data = await bench.run(tool)
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert data["execution_time_ms"] < 5000


async def test_a_result_over_one_mebibyte_is_too_large(bench: Bench, offers: Offers) -> None:
    tool = await _tool(bench, offers, "much")
    assert await bench.code(tool, {"size": 1_100_000}) == "output_too_large"
    assert await bench.code(tool, {"size": 6_000_000}) == "output_too_large"


async def test_discovering_lists_what_the_server_offers(bench: Bench, offers: Offers) -> None:
    answer = await bench.client.post(f"/v1/tools/{await _tool(bench, offers, '')}/discover")
    assert answer.status_code == 200, answer.text
    found = {one["name"]: one for one in answer.json()["data"]}
    assert set(found) == {"add", "greet", "fail", "slow", "much"}
    assert found["add"]["description"] == "Adds two numbers"
    assert found["add"]["input_schema"]["required"] == ["a", "b"]


@pytest.fixture(scope="module")
async def simple() -> AsyncIterator[Offers]:
    made = Offers(json_response=True, stateless=True)
    async with made.serving():
        yield made


@pytest.fixture
def one(simple: Offers) -> Offers:
    """For what does not depend on how a server answers."""
    simple.forget()
    return simple


async def test_a_tool_without_a_name_calls_nobody(bench: Bench, one: Offers) -> None:
    assert await bench.code(await _tool(bench, one, "")) == "runtime_error"
    assert one.headers == []


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
async def test_auth_is_shown_with_every_request(
    bench: Bench, one: Offers, auth_type: str, auth: dict[str, Any], header: str, value: str
) -> None:
    tool = await _tool(bench, one, "greet", auth_type=auth_type, auth_config=auth)
    await bench.output(tool)
    assert one.headers
    assert {headers.get(header) for headers in one.headers} == {value}


async def test_a_key_in_the_query_is_shown_with_every_request(bench: Bench, one: Offers) -> None:
    auth = {"api_key_value": "key/&=é", "api_key_header": "key", "api_key_location": "query"}
    config = {"url": f"{one.url}?shop=1"}
    tool = await _tool(bench, one, "greet", auth_type="api_key", auth_config=auth, config=config)
    await bench.output(tool)
    assert one.queries
    assert {query.replace("%2F", "/") for query in one.queries} == {"shop=1&key=key/%26%3D%C3%A9"}


async def test_auth_is_shown_when_discovering(bench: Bench, one: Offers) -> None:
    tool = await _tool(bench, one, "", auth_type="bearer", auth_config={"token": "tkn-123456"})
    assert (await bench.client.post(f"/v1/tools/{tool}/discover")).status_code == 200
    assert {headers.get("authorization") for headers in one.headers} == {"Bearer tkn-123456"}


async def test_a_credential_needs_a_rule(bench: Bench, one: Offers) -> None:
    credential = await bench.credential("bearer_token", {"token": "tkn-of-the-vault"})
    auth = {"credential_id": credential}
    tool = await _tool(bench, one, "greet", auth_type="bearer", auth_config=auth)
    assert await bench.code(tool) == "auth_failed"
    assert one.headers == []
    await bench.grant(credential, tool)
    await bench.output(tool)
    assert one.headers[-1]["authorization"] == "Bearer tkn-of-the-vault"


async def test_a_refused_identity_is_a_failed_auth(bench: Bench, one: Offers) -> None:
    one.refused.add("Bearer tkn-123456")
    tool = await _tool(bench, one, "greet", auth_type="bearer", auth_config={"token": "tkn-123456"})
    assert await bench.code(tool) == "auth_failed"
    answer = await bench.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "auth_failed"}


async def test_a_refused_token_is_renewed_once(bench: Bench, one: Offers) -> None:
    async with open_site() as issuer:
        issuer.answer = always('{"access_token": "tkn-first"}')
        auth = {
            "token_url": f"{issuer.url}/token",
            "client_id": "client-1",
            "client_secret": "secret-123456",
        }
        tool = await _tool(bench, one, "greet", auth_type="oauth2", auth_config=auth)
        await bench.output(tool)
        one.refused.add("Bearer tkn-first")
        issuer.answer = always('{"access_token": "tkn-second"}')
        await bench.output(tool)
        assert one.headers[-1]["authorization"] == "Bearer tkn-second"
        assert len(issuer.seen) == 2
        one.refused.add("Bearer tkn-second")
        assert await bench.code(tool) == "auth_failed"
        assert len(issuer.seen) == 3


# Servers that are none


async def _pointed(bench: Bench, url: str, **config: Any) -> str:
    whole = {"kind": "mcp", "url": url, "tool": "add", "timeout_ms": 1500, **config}
    return await bench.create("custom", whole)


async def test_a_server_that_is_away_is_a_connection_error(bench: Bench) -> None:
    tool = await _pointed(bench, f"http://127.0.0.1:{free_port()}/mcp")
    assert await bench.code(tool) == "connection_error"
    answer = await bench.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "connection_error"}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


@pytest.mark.parametrize(
    ("status", "media_type", "body"),
    [
        (200, "text/html", "<html>Welcome</html>"),
        (200, "application/json", "{}"),
        (200, "application/json", "[]"),
        (200, "application/json", "not json"),
        (200, "application/json", '{"jsonrpc": "2.0", "id": 99, "result": {}}'),
        (200, "text/event-stream", "data: {not json\n\n"),
        (200, "text/event-stream", ""),
        (202, "text/plain", ""),
        (204, "text/plain", ""),
        (404, "text/plain", "nothing here"),
        (405, "text/plain", ""),
        (301, "text/plain", ""),
    ],
)
async def test_a_server_that_speaks_something_else_is_told(
    bench: Bench, site: Site, status: int, media_type: str, body: str
) -> None:
    headers = {"Content-Type": media_type, "Location": "/elsewhere"}
    site.answer = always(body, status=status, headers=headers)
    error = await bench.failure(await _pointed(bench, f"{site.url}/mcp"))
    known = {"connection_error", "runtime_error", "http_error", "timeout"}
    assert error["code"] in known
    assert "unexpectedly" not in error["message"]
    assert {seen.path for seen in site.seen} == {"/mcp"}


@pytest.mark.parametrize(("status", "code"), [(500, "http_error"), (403, "auth_failed")])
async def test_a_refusal_is_told(bench: Bench, site: Site, status: int, code: str) -> None:
    site.answer = always("no", status=status)
    assert await bench.code(await _pointed(bench, f"{site.url}/mcp")) == code


async def test_an_endless_answer_is_cut_off(bench: Bench, site: Site) -> None:
    line = b": ping\n" * 10_000
    site.answer = always(line * 100, headers={"Content-Type": "text/event-stream"})
    error = await bench.failure(await _pointed(bench, f"{site.url}/mcp"))
    assert error["code"] == "output_too_large", error


async def test_only_a_custom_tool_can_be_asked_what_it_offers(bench: Bench, site: Site) -> None:
    tool = await bench.create("webhook", {"url": site.url})
    refused(await bench.client.post(f"/v1/tools/{tool}/discover"), 409, "conflict")


async def test_a_tool_of_another_tenant_is_not_asked(
    bench: Bench, world: World, one: Offers
) -> None:
    other = await bench_of(world)
    tool = await _tool(other, one, "add")
    refused(await bench.client.post(f"/v1/tools/{tool}/discover"), 404, "tool_not_found")
    assert one.headers == []


async def test_without_the_right_to_run_tools_none_is_asked(
    bench: Bench, world: World, one: Offers
) -> None:
    viewer = await world.user("viewer", bench.client.tenant_id)
    tool = await _tool(bench, one, "add")
    refused(await viewer.post(f"/v1/tools/{tool}/discover"), 403, "forbidden")
    assert one.headers == []
