"""Servers that echo the requests they receive, in many encodings."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import escape
from typing import Any
from urllib.parse import parse_qsl, quote

from aiohttp import web

from tests.agents.tools.asgi_server import serve_app
from tests.agents.tools.site import Site, hang_until_closed
from tests.peer import Handler


def _echo(request: web.Request, body: bytes) -> dict[str, Any]:
    authorization = request.headers.get("Authorization", "")
    parts = {
        "headers": dict(request.headers),
        "url": request.raw_path,
        "query": dict(request.query),
        "body": body.decode(),
        "token": authorization.rpartition(" ")[2],
    }
    if authorization.startswith("Basic "):
        pair = base64.b64decode(authorization[6:]).decode()
        parts |= {"pair": pair, "password": pair.partition(":")[2]}
    encoded = json.dumps(parts)
    return {
        **parts,
        "json": encoded,
        "base64": base64.b64encode(encoded.encode()).decode(),
        "url_base64": base64.urlsafe_b64encode(f"x{authorization}".encode()).decode(),
        "hex": encoded.encode().hex(),
        "quoted": quote(encoded),
        "html": escape(encoded),
        authorization or "nothing": True,
    }


def _echo_json(status: int) -> Handler:
    async def respond(request: web.Request) -> web.StreamResponse:
        echo = _echo(request, await request.read())
        headers = {"X-Echo": quote(echo["json"])[:4000], "Set-Cookie": f"a={quote(echo['token'])}"}
        return web.json_response(echo, status=status, headers=headers)

    return respond


def _echo_as(media_type: str, encode: Callable[[str], bytes], status: int = 200) -> Handler:
    async def respond(request: web.Request) -> web.StreamResponse:
        echo = json.dumps(_echo(request, await request.read()), ensure_ascii=False)
        return web.Response(body=encode(echo), status=status, headers={"Content-Type": media_type})

    return respond


async def _redirect(request: web.Request) -> web.StreamResponse:
    echo = _echo(request, await request.read())
    return web.Response(status=302, headers={"Location": f"/?echo={echo['quoted']}"[:6000]})


async def _abort(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


ECHOES: dict[str, Handler] = {
    "ok": _echo_json(200),
    "bad request": _echo_json(400),
    "unauthorized": _echo_json(401),
    "server error": _echo_json(500),
    "text": _echo_as("text/plain", str.encode),
    "html": _echo_as("text/html", lambda text: f"<pre>{escape(text)}</pre>".encode(), 403),
    "no json": _echo_as("application/json", lambda text: b"{" + text.encode()),
    "binary": _echo_as("image/png", lambda text: b"\xff" + text.encode()),
    "deep": _echo_as(
        "application/json", lambda text: b"[" * 80 + json.dumps(text).encode() + b"]" * 80
    ),
    "reversed": _echo_as("text/plain", lambda text: text[::-1].encode()),
    "spaced": _echo_as("text/plain", lambda text: " ".join(text).encode()),
    "upper case": _echo_as("text/plain", lambda text: text.upper().encode(), 500),
    "characters": _echo_as("application/json", lambda text: json.dumps(list(text)).encode()),
    "too large": _echo_as("text/plain", lambda text: text.encode() * 1000),
    "redirect": _redirect,
    "hang": hang_until_closed(asyncio.Event()),
    "abort": _abort,
}


class EchoSite(Site):
    """Also issues tokens at /token, or refuses there with an echo of the request."""

    def __init__(self) -> None:
        super().__init__()
        self.echo = ECHOES["ok"]
        self.token_response: dict[str, Any] | None = None
        self.handler = self._respond_or_grant

    async def _respond_or_grant(self, request: web.Request) -> web.StreamResponse:
        if request.path != "/token":
            return await self.echo(request)
        body = await request.read()
        if self.token_response is None:
            text = f"{body.decode()} {request.headers.get('Authorization')}"
            secret = dict(parse_qsl(body.decode())).get("client_secret")
            error = {"error": f"bad {secret} {text}", "error_description": text}
            return web.json_response(error, status=400)
        return web.json_response(self.token_response)


def _build_mcp_server() -> Any:
    from mcp.server import MCPServer  # noqa: PLC0415 - takes half a second
    from mcp.server.mcpserver import Context  # noqa: PLC0415 - so does this

    server: MCPServer[Any] = MCPServer("Echo")

    @server.tool()
    def echo(ctx: Context[Any, Any]) -> str:
        return json.dumps(dict(ctx.headers or {}))

    @server.tool()
    def fail(ctx: Context[Any, Any]) -> str:
        raise ValueError(json.dumps(dict(ctx.headers or {})))

    return server


@asynccontextmanager
async def serve_mcp_echo() -> AsyncIterator[str]:
    """Serves MCP tools that return the headers of their request; yields the URL."""
    app = _build_mcp_server().streamable_http_app(json_response=True, stateless_http=True)
    async with serve_app(app) as url:
        yield f"{url}/mcp"
