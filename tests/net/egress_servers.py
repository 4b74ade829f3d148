"""Servers on loopback, a resolver with a fixed table, and egress clients for tests."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web
from yarl import URL

from app.net.egress import Egress, Guard, Resolve

LOOPBACK = "127.0.0.0/8"
PUBLIC = "93.184.216.34"
METADATA = "169.254.169.254"
BOMB = gzip.compress(bytes(32 * 1024 * 1024), compresslevel=1)


class FakeResolver:
    """A resolver with a table of successive answers; it records the hosts that it resolves."""

    def __init__(self, table: dict[str, list[list[str]]]) -> None:
        self._table = table
        self.hosts: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.hosts.append(host)
        answers = self._table[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class ReceivedRequest(msgspec.Struct, frozen=True):
    method: str
    host: str
    headers: dict[str, str]
    body: bytes


class Site:
    """A server that records its requests."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.requests: list[ReceivedRequest] = []
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def redirect(self, to: str, status: int = 302) -> str:
        return str(URL(self.url(f"/redirect/{status}")).with_query(to=to))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(
            ReceivedRequest(request.method, request.host, headers, await request.read())
        )
        match request.path.split("/")[1:]:
            case ["redirect", status]:
                location = {"Location": request.query["to"]}
                return web.Response(status=int(status), headers=location, text="moved")
            case ["slowly-round"]:
                await asyncio.sleep(0.2)
                return web.Response(status=302, headers={"Location": "/slowly-round"})
            case ["bytes", count]:
                return web.Response(body=b"x" * int(count))
            case ["endless"]:
                return await _endless(request)
            case ["bomb"]:
                return web.Response(body=BOMB, headers={"Content-Encoding": "gzip"})
            case ["broken-gzip"]:
                return web.Response(body=b"no gzip", headers={"Content-Encoding": "gzip"})
            case ["cookie"]:
                return web.Response(headers={"Set-Cookie": "tenant=a; Path=/"})
        return web.Response(text=self.text)


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(bytes(64 * 1024))


@asynccontextmanager
async def run_site(text: str, address: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Site]:
    site = Site(text)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        site.port = runner.addresses[0][1]
        yield site
    finally:
        await runner.cleanup()


RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def run_raw_server(
    handler: RawHandler, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Runs a server that calls `handler` after the head of a request; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def open_egress(*allow: str, resolve: Resolve | None = None) -> AsyncIterator[Egress]:
    egress = Egress(Guard(allow) if resolve is None else Guard(allow, resolve))
    try:
        yield egress
    finally:
        await egress.close()
