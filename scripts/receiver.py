"""A minimal server that responds with 200 to every delivery and records when it arrived."""

import asyncio
import json
import os
import time

_arrivals: dict[str, list[float]] = {}
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class _Server(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            head, separator, rest = self._buffer.partition(b"\r\n\r\n")
            if not separator or len(rest) < (length := _read_number(head, b"content-length:")):
                return
            self._buffer = rest[length:]
            if self._transport is not None:
                self._transport.write(self._respond(head))

    def _respond(self, head: bytes) -> bytes:
        if head.startswith(b"GET /times"):
            body = json.dumps(_arrivals).encode()
            _arrivals.clear()
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        _arrivals.setdefault(_read_header(head, b"webhook-id:"), []).append(time.time())
        return _OK


def _read_header(head: bytes, name: bytes) -> str:
    at = head.lower().find(name)
    return "" if at < 0 else head[at + len(name) :].split(b"\r\n", 1)[0].strip().decode()


def _read_number(head: bytes, name: bytes) -> int:
    return int(_read_header(head, name) or 0)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Server, "127.0.0.1", int(os.environ["RECEIVER_PORT"]))
    await server.serve_forever()


def main() -> None:
    import uvloop  # noqa: PLC0415

    uvloop.run(_serve())
