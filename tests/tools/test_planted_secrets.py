"""Secrets are planted wherever a tool can have one, and peers do their best to give them away.

Afterwards they are nowhere: in no answer, no row, no line of the log, nor in Redis.
"""

import asyncio
import base64
import gc
import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote

import asyncpg
import httpx
import pytest
import redis
import uvicorn
from aiohttp import web
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from structlog._config import BoundLoggerLazyProxy

from app.kit import logs
from app.kit.ids import new_id
from tests.asking import until
from tests.peer import Handler
from tests.ports import free_port
from tests.stores import Stores
from tests.tools import outside
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site
from tests.world import World
from workers.main import WorkerProcess


class Planted:
    """Every secret has a core that no encoding but base 64 and hex writes differently."""

    def __init__(self) -> None:
        self.cores: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        core = f"plant{new_id('x')[-12:]}"
        self.cores[name] = core
        return f'{core}/+="&é:{core}'

    def token(self, name: str) -> str:
        core = f"plant{new_id('x')[-12:]}"
        self.cores[name] = core
        return f"{core}-token"

    def found_in(self, text: str) -> set[str]:
        """Which are there, as they are or encoded, also within something that was encoded."""
        decoded = [text, *_decoded(text)]
        return {
            name
            for name, core in self.cores.items()
            for one in decoded
            if core in one or core.encode().hex() in one.lower()
        }


def _decoded(text: str) -> list[str]:
    found = []
    for run in set(re.findall(r"[A-Za-z0-9+/_-]{12,}", text)):
        plain = run.replace("-", "+").replace("_", "/")
        for skip in range(4):
            piece = plain[skip:]
            piece = piece[: len(piece) // 4 * 4]
            found.append(base64.b64decode(piece).decode("latin-1"))
    return found


class Story:
    """What happened, as far as anybody could see it."""

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.answers: list[str] = []
        self.log = ""
        self.arrived = ""
        self.tools: list[str] = []
        self.outcomes: list[dict[str, Any]] = []

    async def keep(self, response: httpx.Response) -> None:
        await response.aread()
        self.answers.append(f"{response.request.url} {dict(response.headers)} {response.text}")


# Peers that give away what they were sent


def _echo(request: web.Request, body: bytes) -> dict[str, Any]:
    shown = request.headers.get("Authorization", "")
    given = {
        "headers": dict(request.headers),
        "url": request.raw_path,
        "query": dict(request.query),
        "body": body.decode(),
        "token": shown.rpartition(" ")[2],
    }
    if shown.startswith("Basic "):
        pair = base64.b64decode(shown[6:]).decode()
        given |= {"pair": pair, "password": pair.partition(":")[2]}
    whole = json.dumps(given)
    return {
        **given,
        "json": whole,
        "base64": base64.b64encode(whole.encode()).decode(),
        "url_base64": base64.urlsafe_b64encode(f"x{shown}".encode()).decode(),
        "hex": whole.encode().hex(),
        "quoted": quote(whole),
        "html": escape(whole),
        shown or "nothing": True,
    }


def _as_json(status: int) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        echo = _echo(request, await request.read())
        headers = {"X-Echo": quote(echo["json"])[:4000], "Set-Cookie": f"a={quote(echo['token'])}"}
        return web.json_response(echo, status=status, headers=headers)

    return answer


def _as(media_type: str, make: Callable[[str], bytes], status: int = 200) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        echo = json.dumps(_echo(request, await request.read()), ensure_ascii=False)
        return web.Response(body=make(echo), status=status, headers={"Content-Type": media_type})

    return answer


async def _redirect(request: web.Request) -> web.StreamResponse:
    echo = _echo(request, await request.read())
    return web.Response(status=302, headers={"Location": f"/?echo={echo['quoted']}"[:6000]})


async def _hang(request: web.Request) -> web.StreamResponse:
    await until(lambda: request.transport is None or request.transport.is_closing())
    return web.Response()


async def _abort(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


ANSWERS: dict[str, Handler] = {
    "ok": _as_json(200),
    "bad request": _as_json(400),
    "unauthorized": _as_json(401),
    "server error": _as_json(500),
    "text": _as("text/plain", str.encode),
    "html": _as("text/html", lambda text: f"<pre>{escape(text)}</pre>".encode(), 403),
    "no json": _as("application/json", lambda text: b"{" + text.encode()),
    "binary": _as("image/png", lambda text: b"\xff" + text.encode()),
    "deep": _as("application/json", lambda text: b"[" * 80 + json.dumps(text).encode() + b"]" * 80),
    "too large": _as("text/plain", lambda text: text.encode() * 1000),
    "redirect": _redirect,
    "hang": _hang,
    "abort": _abort,
}


class Teller(Site):
    """Also gives out tokens at /token, and says there what it was sent."""

    def __init__(self, planted: Planted) -> None:
        super().__init__()
        self.says = ANSWERS["ok"]
        self.grant: dict[str, Any] | None = None
        self._planted = planted
        self.answer = self._tell

    async def _tell(self, request: web.Request) -> web.StreamResponse:
        if request.path != "/token":
            return await self.says(request)
        body = await request.read()
        if self.grant is None:
            said = f"{body.decode()} {request.headers.get('Authorization')}"
            secret = dict(parse_qsl(body.decode())).get("client_secret")
            error = {"error": f"bad {secret} {said}", "error_description": said}
            return web.json_response(error, status=400)
        return web.json_response(self.grant)


def _mcp() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("Teller")

    @server.tool()
    def echo(ctx: Context[Any, Any]) -> str:
        return json.dumps(dict(ctx.headers or {}))

    @server.tool()
    def fail(ctx: Context[Any, Any]) -> str:
        raise ValueError(json.dumps(dict(ctx.headers or {})))

    return server


async def _serving_mcp(stack: AsyncExitStack) -> str:
    port = free_port()
    app = _mcp().streamable_http_app(json_response=True, stateless_http=True)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())

    async def stop() -> None:
        server.should_exit = True
        await running

    stack.push_async_callback(stop)
    await until(lambda: server.started or running.done())
    return f"http://127.0.0.1:{port}/mcp"


# What is planted


def _auths(planted: Planted, teller: Teller, to: str = "") -> dict[str, dict[str, Any]]:
    client = {"token_url": f"{teller.url}/token", "client_id": "client-1"}
    return {
        "bearer": {"auth_type": "bearer", "auth_config": {"token": planted(f"{to}bearer")}},
        "basic": {
            "auth_type": "basic",
            "auth_config": {"username": "zoe", "password": planted(f"{to}password")},
        },
        "header key": {
            "auth_type": "api_key",
            "auth_config": {"api_key_value": planted(f"{to}header key")},
        },
        "query key": {
            "auth_type": "api_key",
            "auth_config": {
                "api_key_value": planted(f"{to}query key"),
                "api_key_header": "k",
                "api_key_location": "query",
            },
        },
        "custom": {
            "auth_type": "custom",
            "auth_config": {
                "headers": {
                    "X-Plain": planted(f"{to}custom"),
                    "Authorization": "Token " + planted.token(f"{to}custom word"),
                }
            },
        },
        "oauth2": {
            "auth_type": "oauth2",
            "auth_config": {**client, "client_secret": planted(f"{to}client secret")},
        },
    }


def _credentials(planted: Planted, teller: Teller) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        "bearer": ("bearer_token", {"token": planted("vault bearer")}),
        "basic": ("basic_auth", {"username": "zoe", "password": planted("vault password")}),
        "api_key": ("api_key", {"api_key": planted("vault key")}),
        "custom": ("custom", {"X-Plain": planted("vault custom")}),
        "oauth2": (
            "oauth2",
            {
                "client_id": "client-2",
                "client_secret": planted("vault client secret"),
                "token_url": f"{teller.url}/token",
                "access_token": planted("vault access token"),
                "refresh_token": planted("vault refresh token"),
            },
        ),
    }


class Telling:
    def __init__(self, story: Story, bench: Bench, teller: Teller) -> None:
        self.story = story
        self.bench = bench
        self.teller = teller

    async def tool(self, tool_type: str, config: dict[str, Any], **auth: Any) -> str:
        tool = await self.bench.create(tool_type, config, **auth)
        self.story.tools.append(tool)
        return tool

    async def run(self, tool: str, given: dict[str, Any] | None = None, **more: Any) -> None:
        self.story.outcomes.append(await self.bench.run(tool, given, **more))

    async def every_way(self, tool: str, given: dict[str, Any], **more: Any) -> None:
        for says in ANSWERS.values():
            self.teller.says = says
            await self.run(tool, given, **more)

    async def own_secrets(self) -> None:
        api = {
            "base_url": self.teller.url,
            "endpoints": {"one": {"method": "POST", "path": "/things/{id}"}},
            "timeout_ms": 300,
        }
        hook = {"url": f"{self.teller.url}/hook", "timeout_ms": 300}
        for name, auth in _auths(self.story.planted, self.teller).items():
            if name == "oauth2":
                self.teller.grant = None
                await self.run(await self.tool("webhook", hook, **auth))
                token = self.story.planted.token("issued token")
                self.teller.grant = {"access_token": token, "expires_in": 1, "scope": token}
            await self.every_way(await self.tool("rest_api", api, **auth), {"params": {"id": 1}})
            await self.every_way(await self.tool("webhook", hook, **auth), {"a": 1})

    async def of_the_vault(self) -> None:
        hook = {"url": f"{self.teller.url}/hook", "timeout_ms": 300}
        self.teller.grant = None
        for auth_type, (type_, secrets) in _credentials(self.story.planted, self.teller).items():
            credential = await self.bench.credential(type_, secrets)
            auth = {"auth_type": auth_type, "auth_config": {"credential_id": credential}}
            tool = await self.tool("webhook", hook, **auth)
            await self.run(tool)  # there is no rule yet
            await self.bench.grant(credential, tool)
            await self.every_way(tool, {"a": 1})
            for path in ("", "/audit", "/access"):
                await self.bench.client.get(f"/v1/credentials/{credential}{path}")

    async def of_an_agent(self) -> None:
        hook = {"url": f"{self.teller.url}/hook", "timeout_ms": 300}
        auth = {"token": self.story.planted("below an override")}
        tool = await self.tool("webhook", hook, auth_type="bearer", auth_config=auth)
        agent = await self.bench.agent()
        override = {"auth_config": {"token": self.story.planted("override")}}
        body = {"tool_id": tool, "config_override": override}
        path = f"/v1/agents/{agent}/tools"
        assert (await self.bench.client.post(path, body)).status_code == 201
        await self.every_way(tool, {"a": 1}, agent_id=agent)
        override = {"auth_config": {"token": self.story.planted("another override")}}
        patched = await self.bench.client(
            "PATCH", f"{path}/{tool}", json={"config_override": override}
        )
        assert patched.status_code == 200
        await self.every_way(tool, {"a": 1}, agent_id=agent)
        await self.bench.client.get(path)

    async def of_an_mcp_server(self, url: str) -> None:
        for auth in _auths(self.story.planted, self.teller, "mcp ").values():
            if auth["auth_type"] == "oauth2":
                token = self.story.planted.token("token for mcp")
                self.teller.grant = {"access_token": token}
            for name in ("echo", "fail", "nothing"):
                tool = await self.tool("custom", {"kind": "mcp", "url": url, "tool": name}, **auth)
                await self.run(tool)
            await self.bench.client.post(f"/v1/tools/{tool}/discover")
            self.teller.says = ANSWERS["bad request"]
            config = {"kind": "mcp", "url": self.teller.url, "tool": "x", "timeout_ms": 300}
            tool = await self.tool("custom", config, **auth)
            for says in ANSWERS.values():
                self.teller.says = says
                await self.run(tool)
            await self.bench.client.post(f"/v1/tools/{tool}/discover")

    async def of_a_database(self, postgres: outside.OutsidePostgres) -> None:
        config = {
            "db_type": "postgresql",
            "host": "127.0.0.1",
            "port": postgres.port,
            "database": outside.DATABASE,
            "timeout_ms": 1000,
        }
        password = self.story.planted("database password")
        owner = await postgres.connect()
        await owner.execute(f"ALTER ROLE {outside.USER} PASSWORD '{password}'")
        await owner.close()
        for given in (password, self.story.planted("wrong database password")):
            auth = {"username": outside.USER, "password": given}
            tool = await self.tool("database", config, auth_type="basic", auth_config=auth)
            for query in ("SELECT 1", "SELECT 1 / 0", "SELECT nothing", "DROP TABLE x"):
                await self.run(tool, {"query": query})
            wrong = await self.tool(
                "database",
                {**config, "port": free_port()},
                auth_type="basic",
                auth_config=auth,
            )
            await self.run(wrong, {"query": "SELECT 1"})

    async def refused_when_saved(self) -> None:
        """What is wrong is named; what was right beside it is not repeated."""
        planted = self.story.planted
        wrong: list[dict[str, Any]] = [
            {"auth_type": "bearer", "auth_config": {"token": planted("typo"), "tokn": 1}},
            {"auth_type": "bearer", "auth_config": {"token": [planted("no text")]}},
            {"auth_type": "basic", "auth_config": {"password": planted("no name")}},
            {"auth_type": "bearer", "auth_config": planted("no object")},
            {
                "auth_type": "oauth2",
                "auth_config": {
                    "token_url": "http://10.0.0.1/",
                    "client_id": "a",
                    "client_secret": planted("private token url"),
                },
            },
        ]
        for auth in wrong:
            body = {"name": "T", "category": "custom", "tool_type": "webhook", **auth}
            answer = await self.bench.client.post(
                "/v1/tools", {**body, "config": {"url": self.teller.url}}
            )
            assert answer.status_code == 422
        secrets = {"token": planted("credential with a typo"), "tokn": "x"}
        body = {"name": "C", "type": "bearer_token", "secrets": secrets}
        assert (await self.bench.client.post("/v1/credentials", body)).status_code == 422

    async def looked_at(self) -> None:
        for tool in self.story.tools:
            for path in ("", "/executions?per_page=100", "/stats"):
                answer = await self.bench.client.get(f"/v1/tools/{tool}{path}")
                assert answer.status_code == 200
        for path in (
            "/api/v1/event-log?per_page=100",
            "/v1/tools?per_page=100",
            "/v1/credentials?per_page=100",
            "/v1/credentials/audit",
        ):
            assert (await self.bench.client.get(path)).status_code == 200


def _forget_loggers() -> None:
    """Each keeps the level of its first line."""
    for one in gc.get_objects():
        if isinstance(one, BoundLoggerLazyProxy):
            one.__dict__.pop("bind", None)


@pytest.fixture(scope="module")
async def story(world: World, worker: WorkerProcess) -> Story:
    planted, heard, stderr = Planted(), io.StringIO(), sys.stderr
    told = Story(planted)
    bench = await bench_of(world)
    bench.client.http.event_hooks["response"].append(told.keep)
    async with AsyncExitStack() as stack:
        teller = Teller(planted)
        await teller.start()
        stack.push_async_callback(teller.close)
        postgres = await stack.enter_async_context(outside.running())
        url = await _serving_mcp(stack)
        sys.stderr = heard
        logs.configure("debug", "json")
        _forget_loggers()
        try:
            telling = Telling(told, bench, teller)
            await telling.own_secrets()
            await telling.of_the_vault()
            await telling.of_an_agent()
            await telling.of_an_mcp_server(url)
            await telling.of_a_database(postgres)
            await telling.refused_when_saved()
            await telling.looked_at()
        finally:
            sys.stderr = stderr
            logs.configure("warning", "json")
            _forget_loggers()
        told.log = heard.getvalue()
        told.arrived = "".join(
            f"{seen.path} {dict(seen.headers)} {seen.body!r}" for seen in teller.seen
        )
    return told


def test_the_secrets_did_arrive_at_the_peers(story: Story) -> None:
    """Else nothing else here would mean anything."""
    arrived = story.planted.found_in(story.arrived)
    assert arrived >= {
        "bearer",
        "password",
        "header key",
        "query key",
        "custom",
        "custom word",
        "client secret",
        "issued token",
        "vault bearer",
        "vault password",
        "vault key",
        "vault custom",
        "vault client secret",
        "vault access token",
        "vault refresh token",
        "override",
        "another override",
        "token for mcp",
        "mcp bearer",
        "mcp password",
        "mcp query key",
        "mcp custom",
    }


def test_the_peers_answered_in_every_way(story: Story) -> None:
    codes = {outcome.get("error", {}).get("code", "completed") for outcome in story.outcomes}
    assert codes >= {
        "completed",
        "http_error",
        "connection_error",
        "timeout",
        "output_too_large",
        "invalid_output",
        "auth_failed",
        "runtime_error",
        "query_rejected",
    }


def test_echoes_were_kept_without_their_secrets(story: Story) -> None:
    assert sum("[redacted]" in answer for answer in story.answers) > 50


def test_no_answer_of_the_api_has_a_secret(story: Story) -> None:
    assert story.planted.found_in("\n".join(story.answers)) == set()


def test_no_line_of_the_log_has_a_secret(story: Story) -> None:
    assert story.log.count("\n") > 500
    assert story.planted.found_in(story.log) == set()


async def test_no_row_of_any_table_has_a_secret(story: Story, stores: Stores) -> None:
    connection = await asyncpg.connect(stores.postgres.url())
    try:
        tables = await connection.fetch(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        found, rows = {}, 0
        for table in tables:
            texts = [
                row["text"]
                for row in await connection.fetch(
                    f"SELECT row_to_json(t)::text AS text FROM {table['name']} t"
                )
            ]
            rows += len(texts)
            leaked = story.planted.found_in("\n".join(texts))
            if leaked:
                found[table["name"]] = leaked
    finally:
        await connection.close()
    assert rows > 500
    assert found == {}


def test_no_key_and_no_value_in_redis_has_a_secret(story: Story, stores: Stores) -> None:
    client = redis.Redis.from_url(stores.redis.url)
    readers: dict[bytes, Callable[[bytes], Any]] = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"stream": client.xrange,
    }
    try:
        found = {}
        for key in client.scan_iter(count=1000):
            kind: Any = client.type(key)
            if kind == b"none":
                continue
            leaked = story.planted.found_in(f"{key!r} {readers[kind](key)!r}")
            if leaked:
                found[key] = leaked
    finally:
        client.close()
    assert found == {}


@pytest.mark.parametrize(
    "writing",
    [
        lambda text: text,
        lambda text: base64.b64encode(f"x{text}".encode()).decode(),
        lambda text: base64.urlsafe_b64encode(f"xy{text}".encode()).decode(),
        lambda text: text.encode().hex(),
        quote,
        json.dumps,
    ],
)
def test_the_search_itself_finds_what_is_there(writing: Callable[[str], str]) -> None:
    planted = Planted()
    assert planted.found_in(f"a {writing(planted('one'))} b") == {"one"}
