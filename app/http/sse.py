"""Server-sent events: a stream that notices within moments when nobody reads it any more.

A silent stream says a comment every ten seconds, so that proxies keep it open.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Send

from app.kit import logs

log = logs.get("http")

MEDIA_TYPE = "text/event-stream"
KEEP_ALIVE_SECONDS = 10.0
STALLED_SECONDS = 60.0
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
        self._left = False
        self._over = False
        self._sending = 0
        self._sent_at = 0.0
        self._comment: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def send_body(self, send: Send, receive: Receive) -> None:
        pump = asyncio.create_task(self._pump(send))
        self._sent_at = asyncio.get_running_loop().time()
        try:
            # Whoever has gone already: a source that was never begun could not tidy up at its end.
            await asyncio.sleep(0)
            async with asyncio.timeout(None) as patience:
                self._watch(send, patience)
                pump.add_done_callback(partial(self._ended, patience))
                # A server tells a client that left, and the end of the response, in the same way.
                while (await receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            if not pump.done():
                log.info("a reader took nothing for too long", seconds=STALLED_SECONDS)
        finally:
            self._left = self._over = True
            if self._timer is not None:
                self._timer.cancel()
            if not pump.done():
                pump.cancel()
                await asyncio.wait([pump], timeout=_STOP_SECONDS)

    def _ended(self, patience: asyncio.Timeout, _pump: asyncio.Task[None]) -> None:
        """A response that has no end although its source has: nobody else would notice."""
        if not self._left and (_pump.cancelled() or _pump.exception() is not None):
            patience.reschedule(asyncio.get_running_loop().time())

    async def _pump(self, send: Send) -> None:
        try:
            async with aclosing(self._source):
                async for chunk in self._source:
                    # A slow reader slows the model down, too.
                    await self._send(send, chunk)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a stream broke off")
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        if self._over:
            return
        self._sending, self._over = self._sending + 1, not more
        try:
            await send({"type": "http.response.body", "body": body, "more_body": more})
        finally:
            self._sending -= 1
            self._sent_at = asyncio.get_running_loop().time()

    def _watch(self, send: Send, patience: asyncio.Timeout) -> None:
        """One timer for all of the stream: what is sent needs none of its own."""
        loop = asyncio.get_running_loop()
        silent = loop.time() - self._sent_at
        if self._sending and silent >= STALLED_SECONDS:
            patience.reschedule(loop.time())
            return
        if not self._sending and silent >= KEEP_ALIVE_SECONDS:
            self._comment = asyncio.create_task(self._send(send, _COMMENT))
            silent = 0.0
        limit = STALLED_SECONDS if self._sending else KEEP_ALIVE_SECONDS
        again = min(KEEP_ALIVE_SECONDS, limit - silent)
        self._timer = loop.call_later(again, self._watch, send, patience)
