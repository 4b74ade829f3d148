"""Calls an application without a client's costs: the body is ready before, and of a long response
only the beginning is kept. In the short run, the client leaves when it has seen enough.
"""

import asyncio
from typing import Any

import httpx
from litestar import Litestar
from litestar.types import HTTPReceiveMessage, Message

from tests.lengths import rounds

_KEPT_BYTES = 1024 * 1024
# A streamed response repeats the same steps.
_READ_BYTES = rounds(8, 1024) * 1024 * 1024
_CHUNK_BYTES = 64 * 1024


class _Exchange:
    """One request and its response. The body arrives in parts, as it does over a socket."""

    def __init__(self, body: bytes) -> None:
        self._parts = [
            body[start : start + _CHUNK_BYTES] for start in range(0, len(body), _CHUNK_BYTES)
        ] or [b""]
        self._is_over = asyncio.Event()
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.content = bytearray()
        self._read_bytes = 0

    async def receive(self) -> HTTPReceiveMessage:
        if self._parts:
            part = self._parts.pop(0)
            # What is next arrives in a step of its own.
            await asyncio.sleep(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._is_over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.content += message["body"][: _KEPT_BYTES - len(self.content)]
            self._read_bytes += len(message["body"])
            if not message["more_body"] or self._read_bytes > _READ_BYTES:
                self._is_over.set()
            await asyncio.sleep(0)


async def call(app: Litestar, request: httpx.Request, address: str) -> httpx.Response:
    """Returns a response with at most the first megabyte of its content."""
    exchange = _Exchange(request.read())
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, 80),
        "client": (address, 40000),
        "root_path": "",
    }
    await app(scope, exchange.receive, exchange.send)
    headers = [item for item in exchange.headers if item[0].lower() != b"content-length"]
    return httpx.Response(exchange.status, headers=headers, content=bytes(exchange.content))
