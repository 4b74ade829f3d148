"""A server on loopback that stores the requests that it receives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from tests.assertions import until
from tests.peer import Handler, Peer


class ReceivedRequest(msgspec.Struct, frozen=True):
    path: str
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Receiver(Peer):
    """The path selects the response: `/200`, `/500`, `/410`; `/hang`, `/reset`, `/drip`;
    `/redirect`; `/echo`; `/429?after=7`. `/script/<name>` answers with the codes in `scripts`, of
    which the last one repeats. `/slow/<name>` and `/hang` answer once `may_respond` is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Forgets everything; requests that still wait for the former `may_respond` stay so."""
        self.requests: list[ReceivedRequest] = []
        self.scripts: dict[str, list[int]] = {}
        self.concurrent: dict[str, int] = {}
        self.max_concurrent: dict[str, int] = {}
        self.may_respond = asyncio.Event()

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
        self.may_respond.set()
        await super().close()

    def requests_to(self, path: str) -> list[ReceivedRequest]:
        return [request for request in self.requests if request.path == path]

    async def wait_for(
        self, count: int, path: str | None = None, seconds: float = 20
    ) -> list[ReceivedRequest]:
        def matches() -> list[ReceivedRequest]:
            return self.requests if path is None else self.requests_to(path)

        await until(lambda: len(matches()) >= count, seconds)
        return matches()

    async def _store(self, request: web.Request) -> bytes:
        body = await request.read()
        self.requests.append(ReceivedRequest(request.path, CIMultiDict(request.headers), body))
        return body

    async def _code(self, request: web.Request) -> web.Response:
        await self._store(request)
        headers = {"Retry-After": request.query["after"]} if "after" in request.query else {}
        code = int(request.match_info["code"])
        return web.Response(status=code, text="noted", headers=headers)

    async def _script(self, request: web.Request) -> web.Response:
        await self._store(request)
        codes = self.scripts[request.match_info["name"]]
        return web.Response(status=codes.pop(0) if len(codes) > 1 else codes[0])

    async def _echo(self, request: web.Request) -> web.Response:
        body = await self._store(request)
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        return web.Response(text="\n".join(lines) + "\n\n" + body.decode())

    async def _redirect(self, request: web.Request) -> web.Response:
        await self._store(request)
        return web.Response(status=302, headers={"Location": f"{self.url}/200/after-redirect"})

    async def _hang(self, request: web.Request) -> web.Response:
        await self._store(request)
        await self.may_respond.wait()
        return web.Response()

    async def _slow(self, request: web.Request) -> web.Response:
        """Counts how many requests wait at the same time."""
        name = request.match_info["name"]
        self.concurrent[name] = self.concurrent.get(name, 0) + 1
        self.max_concurrent[name] = max(self.max_concurrent.get(name, 0), self.concurrent[name])
        await self._store(request)
        await self.may_respond.wait()
        self.concurrent[name] -= 1
        return web.Response()

    async def _reset(self, request: web.Request) -> web.StreamResponse:
        await self._store(request)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _drip(self, request: web.Request) -> web.StreamResponse:
        await self._store(request)
        response = web.StreamResponse()
        await response.prepare(request)
        while not self.may_respond.is_set():
            await response.write(b".")
            await asyncio.sleep(0.05)
        return response


@asynccontextmanager
async def run_receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    try:
        yield receiver
    finally:
        await receiver.close()
