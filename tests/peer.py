"""HTTP servers on loopback for tests, each on a port of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Peer:
    """A server whose `routes` map `"POST /path"` to a handler."""

    # Whether a handler is cancelled when its client disconnects.
    cancels_handlers = False

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
        self._runner = web.AppRunner(
            app,
            handle_signals=False,
            access_log=None,
            handler_cancellation=self.cancels_handlers,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


class _CatchAllPeer(Peer):
    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler

    def routes(self) -> dict[str, Handler]:
        return {"* /{rest:.*}": self._handler}


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[str]:
    """Yields the URL of a server that handles every request with `handler`."""
    peer = _CatchAllPeer(handler)
    await peer.start()
    try:
        yield peer.url
    finally:
        await peer.close()
