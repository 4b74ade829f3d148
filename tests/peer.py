"""HTTP servers on loopback that tests talk to, each on a port of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Peer:
    """Answers as `routes` says: `"POST /path"` and its handler."""

    def __init__(self) -> None:
        self.url = ""
        self._runner: web.AppRunner | None = None

    def routes(self) -> dict[str, Handler]:
        raise NotImplementedError

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        for route, handler in self.routes().items():
            method, path = route.split(" ", 1)
            app.router.add_route(method, path, handler)
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


class _Everything(Peer):
    def __init__(self, answer: Handler) -> None:
        super().__init__()
        self._answer = answer

    def routes(self) -> dict[str, Handler]:
        return {"* /{rest:.*}": self._answer}


@asynccontextmanager
async def answering(answer: Handler) -> AsyncIterator[str]:
    """The address of a server that answers every request in one way."""
    peer = _Everything(answer)
    await peer.start()
    try:
        yield peer.url
    finally:
        await peer.close()
