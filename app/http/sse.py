"""Server-sent events: a stream that notices within moments when nobody reads it any more.

What is ready at the same time goes out in one packet. A silent stream says a comment every ten
seconds, so that proxies keep it open.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Send

from app.kit import logs

log = logs.get("http")

MEDIA_TYPE = "text/event-stream"
KEEP_ALIVE_SECONDS = 10.0
STALLED_SECONDS = 60.0
MOST_WAITING = 1024 * 1024
_COMMENT = b": still here\n\n"
_STOP_SECONDS = 5.0


def event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


class EventStream(Response[bytes]):
    """Sends what `source` yields. When the reader goes, `source` is cancelled where it stands."""

    def __init__(self, source: AsyncGenerator[bytes, None]) -> None:
        super().__init__(b"", media_type=MEDIA_TYPE)
        self._source = source

    def to_asgi_response(self, *_: Any, **_more: Any) -> ASGIResponse:
        return _Stream(self._source)


class _Stream(ASGIResponse):
    _should_set_content_length = False

    def __init__(self, source: AsyncGenerator[bytes, None]) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers={"x-accel-buffering": "no"})
        self._source = source
        self._ready: list[bytes] = []
        self._waiting = 0
        self._news = asyncio.Event()
        self._taken = asyncio.Event()

    async def send_body(self, send: Send, receive: Receive) -> None:
        pump = asyncio.create_task(self._pump())
        reader = asyncio.create_task(_until_gone(receive))
        for task in (pump, reader):
            task.add_done_callback(lambda _task: self._news.set())
        try:
            while not reader.done():
                over = pump.done()
                body = b"".join(self._ready)
                self._ready.clear()
                self._news.clear()
                if body or over:
                    await _send(send, body, more=not over)
                    self._waiting -= len(body)
                    self._taken.set()
                if over:
                    return
                if not self._ready and not pump.done() and not await self._wait():
                    await _send(send, _COMMENT, more=True)
        except TimeoutError:
            log.info("a reader took nothing for too long", seconds=STALLED_SECONDS)
        finally:
            reader.cancel()
            pump.cancel()
            await asyncio.wait([pump], timeout=_STOP_SECONDS)

    async def _pump(self) -> None:
        try:
            async with aclosing(self._source):
                async for chunk in self._source:
                    self._ready.append(chunk)
                    self._waiting += len(chunk)
                    self._news.set()
                    while self._waiting > MOST_WAITING:
                        # A slow reader slows the model down, too.
                        self._taken.clear()
                        await self._taken.wait()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a stream broke off")

    async def _wait(self) -> bool:
        """False when it has been silent for too long."""
        try:
            async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


async def _send(send: Send, body: bytes, *, more: bool) -> None:
    async with asyncio.timeout(STALLED_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
