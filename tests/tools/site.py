"""A web site that tools call: it keeps what it was asked, and answers as a test wants."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from tests.peer import Handler, Peer


class Seen(msgspec.Struct):
    method: str
    path: str  # as it came, still encoded
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
        self.seen: list[Seen] = []
        self.answer: Handler = fine

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    def routes(self) -> dict[str, Handler]:
        return {r"* /{rest:[\s\S]*}": self._answer}

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = CIMultiDict(request.headers)
        self.seen.append(Seen(request.method, request.raw_path, headers, body))
        return await self.answer(request)


async def fine(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"ok": True})


def always(
    body: str | bytes = b"", *, status: int = 200, headers: dict[str, str] | None = None
) -> Handler:
    async def answer(_request: web.Request) -> web.StreamResponse:
        content = body.encode() if isinstance(body, str) else body
        return web.Response(status=status, body=content, headers=headers)

    return answer


def first(*statuses: int, then: int = 200) -> Handler:
    """Each of these once, in their order."""
    left = list(statuses)

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"ok": True}, status=left.pop(0) if left else then)

    return answer


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    made = Site()
    await made.start()
    try:
        yield made
    finally:
        await made.close()
