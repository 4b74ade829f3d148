"""Server-sent events. A stream stops soon after its client disconnects or stops reading.

A stream without events sends a comment every ten seconds, so that proxies keep it open.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from app.kit import logs

log = logs.get("http")

MEDIA_TYPE = "text/event-stream"
# In the state of a request whose stream ends with its client, or with the server.
ENDLESS: Final = "parley_endless_stream"
KEEP_ALIVE_SECONDS = 10.0
STALLED_SECONDS = 60.0
_KEEP_ALIVE = b": still here\n\n"
_STOP_SECONDS = 5.0


class EventStream(Response[bytes]):
    """Sends what `source` yields. Cancels `source` when the client disconnects. A server that stops
    waits for the end of a stream, unless it is endless.
    """

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        headers: dict[str, str] | None = None,
        *,
        is_endless: bool = False,
    ) -> None:
        super().__init__(b"", media_type=MEDIA_TYPE)
        self._source = source
        self._headers = headers or {}
        self._is_endless = is_endless

    def to_asgi_response(self, *_: Any, **_more: Any) -> ASGIResponse:
        return _Stream(self._source, self._headers, is_endless=self._is_endless)


class _Stream(ASGIResponse):
    _should_set_content_length = False

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        headers: dict[str, str] | None = None,
        *,
        is_endless: bool = False,
    ) -> None:
        more = headers or {}
        super().__init__(media_type=MEDIA_TYPE, headers={"x-accel-buffering": "no", **more})
        self._source = source
        self._is_endless = is_endless
        self._is_disconnected = False
        self._is_complete = False
        self._pending_sends = 0
        self._sent_at = 0.0
        self._keep_alive: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_endless:
            scope["state"][ENDLESS] = True
        await super().__call__(scope, receive, send)

    async def send_body(self, send: Send, receive: Receive) -> None:
        pump = asyncio.create_task(self._pump(send))
        self._sent_at = asyncio.get_running_loop().time()
        try:
            # Starts the source even if the client is gone: only a started source cleans up.
            await asyncio.sleep(0)
            async with asyncio.timeout(None) as timeout:
                self._watch(send, timeout)
                pump.add_done_callback(partial(self._on_pump_done, timeout))
                # ASGI servers send this when the client leaves and when the response is complete.
                while (await receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            if not pump.done():
                log.info("stream closed: its client stopped reading", seconds=STALLED_SECONDS)
        finally:
            self._is_disconnected = self._is_complete = True
            if self._timer is not None:
                self._timer.cancel()
            if not pump.done():
                pump.cancel()
                await asyncio.wait([pump], timeout=_STOP_SECONDS)

    def _on_pump_done(self, timeout: asyncio.Timeout, pump: asyncio.Task[None]) -> None:
        """Ends a response whose source ended without completing it; the server would wait."""
        if not self._is_disconnected and (pump.cancelled() or pump.exception() is not None):
            timeout.reschedule(asyncio.get_running_loop().time())

    async def _pump(self, send: Send) -> None:
        try:
            async with aclosing(self._source):
                async for chunk in self._source:
                    # Waiting here makes a slow client slow the model down.
                    await self._send(send, chunk)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("stream interrupted")
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        if self._is_complete:
            return
        self._pending_sends, self._is_complete = self._pending_sends + 1, not more
        try:
            await send({"type": "http.response.body", "body": body, "more_body": more})
        finally:
            self._pending_sends -= 1
            self._sent_at = asyncio.get_running_loop().time()

    def _watch(self, send: Send, timeout: asyncio.Timeout) -> None:
        """Sends keep-alive comments and ends a stalled stream. One timer serves the whole stream,
        because a timer for each send would cost more.
        """
        loop = asyncio.get_running_loop()
        idle = loop.time() - self._sent_at
        if self._pending_sends and idle >= STALLED_SECONDS:
            timeout.reschedule(loop.time())
            return
        if not self._pending_sends and idle >= KEEP_ALIVE_SECONDS:
            self._keep_alive = asyncio.create_task(self._send(send, _KEEP_ALIVE))
            idle = 0.0
        limit = STALLED_SECONDS if self._pending_sends else KEEP_ALIVE_SECONDS
        delay = min(KEEP_ALIVE_SECONDS, limit - idle)
        self._timer = loop.call_later(delay, self._watch, send, timeout)
