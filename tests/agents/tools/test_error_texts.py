"""Errors of databases, MCP servers and tools that repeat a secret, whole, cut or changed."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.agents.tools.chat_tools import attach_tool
from tests.agents.tools.echo_databases import EchoDatabase, serve_echo_mysql, serve_echo_postgres
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolCaller, ToolClient
from tests.agents.tools.site import Site
from tests.http_clients import open_client
from tests.model_server import Reply
from tests.ports import free_port
from tests.scripted_agents import Talker
from tests.server import Server
from workers.main import WorkerProcess

_SECRET = "pLaNt3d-k7Qx_92mZvB4-wT6yHs0RcU1e"
_MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


def build_texts() -> dict[str, str]:
    """Returns texts with the secret, also where a limit of an error text cuts it."""
    letters = _SECRET.replace("-", "").replace("_", "")
    texts = {
        "plain": f"wrong password {_SECRET}",
        "URL": f"cannot reach postgresql://zoe:{_SECRET}@db.example.com/shop",
        "reversed": _SECRET[::-1],
        "spaced": " ".join(_SECRET),
        "grouped": "-".join(letters[start : start + 4] for start in range(0, len(letters), 4)),
        "ten megabytes": f"{_SECRET} " * (10 * _MEGABYTE // (len(_SECRET) + 1)),
        "ten megabytes before it": "x" * 10 * _MEGABYTE + _SECRET,
    }
    for limit in (300, 500, 1000, 2000, 20_000):
        texts[f"cut at {limit}"] = "x" * (limit - 36) + _SECRET * 3
        texts[f"cut at {limit}, spaced"] = "x" * (limit - 46) + " ".join(_SECRET)
        # Each replacement is shorter than the secret, so that the end moves to the front.
        texts[f"many before {limit}"] = (_SECRET + " ") * (limit // len(_SECRET) + 2)
    return texts


def find_parts(text: str) -> list[str]:
    """Returns the parts of six characters of the secret that a text has, also reversed."""
    letters = "".join(char for char in text if char.isalnum()).lower()
    secret = "".join(char for char in _SECRET if char.isalnum()).lower()
    parts = [secret[start : start + 6] for start in range(len(secret) - 5)]
    return [part for part in parts if part in letters or part[::-1] in letters]


@pytest.fixture
async def echo_postgres() -> AsyncIterator[EchoDatabase]:
    async with serve_echo_postgres() as echo:
        yield echo


@pytest.fixture
async def echo_mysql() -> AsyncIterator[EchoDatabase]:
    async with serve_echo_mysql() as echo:
        yield echo


async def _create_database_tool(tools: ToolCaller, db_type: str, port: int, **config: Any) -> str:
    server = {"db_type": db_type, "host": "127.0.0.1", "port": port, "database": "shop", **config}
    auth = {"username": "zoe", "password": _SECRET}
    return await tools.create("database", server, auth_type="basic", auth_config=auth)


async def _check_run(
    tools: ToolExecutor, tool_id: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Runs the tool; the failure and the record of it have no part of the secret."""
    failure = await tools.get_failure(tool_id, arguments)
    assert find_parts(json.dumps(failure)) == []
    assert len(failure["message"]) <= 2000
    return failure


async def test_no_error_of_postgres_shows_a_part_of_the_password(
    tools: ToolExecutor, echo_postgres: EchoDatabase, subtests: pytest.Subtests
) -> None:
    tool_id = await _create_database_tool(tools, "postgresql", echo_postgres.port)
    for name, text in build_texts().items():
        for code in ("XX000", "3D000", "28P01", "57P03"):
            if code != "XX000" and name not in {"plain", "ten megabytes"}:
                continue
            with subtests.test(name, code=code):
                echo_postgres.error, echo_postgres.code = text, code
                await _check_run(tools, tool_id, {"query": "SELECT 1"})
    assert set(echo_postgres.passwords) == {_SECRET}


async def test_no_error_of_mysql_shows_a_part_of_the_password(
    tools: ToolExecutor, echo_mysql: EchoDatabase, subtests: pytest.Subtests
) -> None:
    tool_id = await _create_database_tool(tools, "mysql", echo_mysql.port)
    for name, text in build_texts().items():
        with subtests.test(name):
            echo_mysql.error = text
            failure = await _check_run(tools, tool_id, {"query": "SELECT 1"})
            assert failure["code"] == "runtime_error"
    for code in (1045, 1049, 2003, 3024):
        with subtests.test(code=code):
            echo_mysql.error, echo_mysql.mysql_code = f"wrong: {_SECRET}", code
            await _check_run(tools, tool_id, {"query": "SELECT 1"})


async def test_no_failed_connection_shows_a_part_of_the_password(
    tools: ToolExecutor, echo_postgres: EchoDatabase, subtests: pytest.Subtests
) -> None:
    configs: dict[str, dict[str, Any]] = {
        "port": {"port": free_port()},
        "TLS": {"port": echo_postgres.port, "ssl": True},
        "name": {"port": 5432, "host": "no-such-host.invalid"},
        "private address": {"port": 5432, "host": "10.0.0.1"},
        "no host": {"port": 5432, "host": ""},
    }
    for db_type in ("postgresql", "mysql"):
        for name, config in configs.items():
            with subtests.test(name, db_type=db_type):
                tool_id = await _create_database_tool(tools, db_type, timeout_ms=300, **config)
                await _check_run(tools, tool_id, {"query": "SELECT 1"})


# HTTP


def _respond_with_error(text: str) -> Any:
    """Returns a handler of an MCP server that starts a session and refuses every call."""

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        call = await request.json()
        if "id" not in call:
            return web.Response(status=202)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        if call["method"] == "initialize":
            answer["result"] = {
                "protocolVersion": call["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "Echo", "version": "1"},
            }
        else:
            answer["error"] = {"code": -32000, "message": text, "data": {"echo": text[:1000]}}
        return web.json_response(answer)

    return respond


async def test_no_error_of_an_mcp_server_shows_a_part_of_the_token(
    tools: ToolExecutor, tool_client: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    config = {"kind": "mcp", "url": site.url, "tool": "x"}
    auth = {"auth_type": "bearer", "auth_config": {"token": _SECRET}}
    tool_id = await tools.create("custom", config, **auth)
    discovered_id = await tool_client.create("custom", config, **auth)
    for name, text in build_texts().items():
        with subtests.test(name):
            site.handler = _respond_with_error(text)
            failure = await _check_run(tools, tool_id, {})
            answer = await tool_client.client.post(f"/v1/tools/{discovered_id}/discover")
            assert answer.status_code == 502
            assert find_parts(answer.text) == []
            if "ten" not in name:
                assert "refused" in failure["message"]
    assert site.last.headers["Authorization"] == f"Bearer {_SECRET}"


async def test_no_problem_of_an_output_shows_a_part_of_the_token(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    """The names of wrong fields are cut as well."""
    auth = {"auth_type": "bearer", "auth_config": {"token": _SECRET}}
    schema = {
        "type": "object",
        "properties": {"body": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    tool_id = await tools.create("webhook", {"url": site.url}, output_schema=schema, **auth)
    for length in (0, 60, 90, 150, 180, 190, 200, 280):
        with subtests.test(length=length):
            body = {"x" * length + _SECRET: 7}

            async def respond(_request: web.Request, body: Any = body) -> web.StreamResponse:
                return web.json_response(body)

            site.handler = respond
            failure = await _check_run(tools, tool_id, {})
            assert failure["code"] == "invalid_output"


async def test_no_refusal_of_a_token_endpoint_shows_a_part_of_the_client_secret(
    tools: ToolExecutor, site: Site, subtests: pytest.Subtests
) -> None:
    client = {"token_url": site.url, "client_id": "c", "client_secret": _SECRET}
    auth = {"auth_type": "oauth2", "auth_config": client}
    tool_id = await tools.create("webhook", {"url": site.url}, **auth)
    texts = build_texts() | {"cut at 80": "x" * 60 + _SECRET, "many before 80": _SECRET * 4}
    for name, text in texts.items():
        with subtests.test(name):

            async def respond(_request: web.Request, text: str = text) -> web.StreamResponse:
                return web.json_response({"error": text}, status=400)

            site.handler = respond
            failure = await _check_run(tools, tool_id, {})
            assert failure["code"] == "auth_failed"


# Conversations


async def test_no_stream_conversation_or_event_shows_a_part_of_the_password(
    talk: Talker, echo_postgres: EchoDatabase, worker: WorkerProcess, server: Server
) -> None:
    echo_postgres.error = "x" * 470 + _SECRET * 2 + _SECRET[::-1] + " ".join(_SECRET)
    tools = ToolClient(talk.client)
    server_config = {"db_type": "postgresql", "host": "127.0.0.1", "port": echo_postgres.port}
    auth = {"username": "zoe", "password": _SECRET}
    tool_id = await tools.create(
        "database",
        {**server_config, "database": "shop"},
        name="Shop",
        auth_type="basic",
        auth_config=auth,
    )
    await attach_tool(talk, tool_id)
    call = Reply(texts=[], calls=[("shop", {"query": "SELECT 1"})])
    talk.script(call, Reply(texts=["Sorry"]), call, Reply(texts=["Sorry"]))
    headers = {"authorization": f"Bearer {talk.client.token}"}
    async with open_client(base_url=server.url, headers=headers, timeout=30) as remote:
        stream = await remote.post(f"{talk.path}/chat/stream", json={"message": "Hi"})
    assert "tool_result" in stream.text
    reply = await talk.say("Again")
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    texts = [stream.text, json.dumps(reply), json.dumps(talk.asked)]
    for url in (path, "/api/v1/event-log", f"/v1/tools/{tool_id}/executions"):
        answer = await talk.client.get(url)
        assert answer.status_code == 200, answer.text
        texts.append(answer.text)
    assert "[redacted]" in stream.text
    assert [find_parts(text) for text in texts] == [[]] * len(texts)
    assert set(echo_postgres.passwords) == {_SECRET}
