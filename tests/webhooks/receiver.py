"""A server on loopback that takes deliveries, and answers as it is told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from tests.asking import until
from tests.peer import Handler, Peer


class Got(msgspec.Struct, frozen=True):
    path: str
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Receiver(Peer):
    """Each path answers in its own way: `/200`, `/500`, `/410`; `/hang`, `/reset`, `/drip`;
    `/redirect`; `/429?after=7`. `/script/<name>` answers with the codes that were given to it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.got: list[Got] = []
        self.scripts: dict[str, list[int]] = {}
        self.at_once: dict[str, int] = {}
        self.most_at_once: dict[str, int] = {}
        self.released = asyncio.Event()

    def routes(self) -> dict[str, Handler]:
        return {
            "POST /hang": self._hang,
            "POST /reset": self._reset,
            "POST /drip": self._drip,
            "POST /redirect": self._redirect,
            "POST /echo": self._echo,
            "POST /slow/{name}": self._slow,
            "POST /script/{name}": self._script,
            "POST /{code:[0-9]+}": self._code,
            "POST /{code:[0-9]+}/{rest:.*}": self._code,
        }

    async def close(self) -> None:
        self.released.set()
        await super().close()

    def of(self, path: str) -> list[Got]:
        return [one for one in self.got if one.path == path]

    async def wait_for(self, count: int, path: str | None = None, seconds: float = 20) -> list[Got]:
        def found() -> list[Got]:
            return self.got if path is None else self.of(path)

        await until(lambda: len(found()) >= count, seconds)
        return found()

    async def _keep(self, request: web.Request) -> bytes:
        body = await request.read()
        self.got.append(Got(request.path, CIMultiDict(request.headers), body))
        return body

    async def _code(self, request: web.Request) -> web.Response:
        await self._keep(request)
        headers = {"Retry-After": request.query["after"]} if "after" in request.query else {}
        code = int(request.match_info["code"])
        return web.Response(status=code, text="noted", headers=headers)

    async def _script(self, request: web.Request) -> web.Response:
        await self._keep(request)
        codes = self.scripts[request.match_info["name"]]
        return web.Response(status=codes.pop(0) if len(codes) > 1 else codes[0])

    async def _echo(self, request: web.Request) -> web.Response:
        body = await self._keep(request)
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        return web.Response(text="\n".join(lines) + "\n\n" + body.decode())

    async def _redirect(self, request: web.Request) -> web.Response:
        await self._keep(request)
        return web.Response(status=302, headers={"Location": f"{self.url}/200/after-redirect"})

    async def _hang(self, request: web.Request) -> web.Response:
        await self._keep(request)
        await self.released.wait()
        return web.Response()

    async def _slow(self, request: web.Request) -> web.Response:
        """Answers when released; counts how many wait here at the same time."""
        name = request.match_info["name"]
        self.at_once[name] = self.at_once.get(name, 0) + 1
        self.most_at_once[name] = max(self.most_at_once.get(name, 0), self.at_once[name])
        await self._keep(request)
        await self.released.wait()
        self.at_once[name] -= 1
        return web.Response()

    async def _reset(self, request: web.Request) -> web.StreamResponse:
        await self._keep(request)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        await self._keep(request)
        response = web.StreamResponse()
        await response.prepare(request)
        while not self.released.is_set():
            await response.write(b".")
            await asyncio.sleep(0.05)
        return response


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    try:
        yield made
    finally:
        await made.close()
