"""A web site that tools call. It records the requests, and responds with a test's handler."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from tests.assertions import until
from tests.peer import Handler, Peer


class ReceivedRequest(msgspec.Struct):
    method: str
    path: str  # still encoded
    headers: CIMultiDict[str]
    body: bytes

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.path.partition("?")[2], keep_blank_values=True)

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))


class Site(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.handler: Handler = respond_ok

    @property
    def last(self) -> ReceivedRequest:
        return self.requests[-1]

    def routes(self) -> dict[str, Handler]:
        return {r"* /{rest:[\s\S]*}": self._respond}

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = CIMultiDict(request.headers)
        self.requests.append(ReceivedRequest(request.method, request.raw_path, headers, body))
        return await self.handler(request)


async def respond_ok(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"ok": True})


def respond_with(
    body: str | bytes = b"", *, status: int = 200, headers: dict[str, str] | None = None
) -> Handler:
    async def respond(_request: web.Request) -> web.StreamResponse:
        content = body.encode() if isinstance(body, str) else body
        return web.Response(status=status, body=content, headers=headers)

    return respond


def respond_in_turn(*statuses: int, then: int = 200) -> Handler:
    """Responds with each status once in this order, and then with `then`."""
    remaining = list(statuses)

    async def respond(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"ok": True}, status=remaining.pop(0) if remaining else then)

    return respond


def hang_until_closed(closed: asyncio.Event) -> Handler:
    """Sends nothing until the client closes the connection; then sets the event."""

    async def respond(request: web.Request) -> web.StreamResponse:
        await until(lambda: request.transport is None or request.transport.is_closing())
        closed.set()
        return web.Response()

    return respond


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    site = Site()
    await site.start()
    try:
        yield site
    finally:
        await site.close()
