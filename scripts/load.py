"""Keep-alive HTTP clients that send the next request as soon as a response is complete."""

import asyncio
import itertools
import time
from functools import partial

CLIENTS = 32
SECONDS = 3.0


class _Client(asyncio.Protocol):
    def __init__(
        self, requests: "itertools.cycle[bytes]", count: list[int], failed: list[bytes]
    ) -> None:
        self._requests = requests
        self._count = count
        self._failed = failed
        self._buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._send()

    def _send(self) -> None:
        if self.transport is not None:
            self.transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not _is_complete(self._buffer):
            return
        if self._buffer.startswith(b"HTTP/1.1 2") and b"event: error" not in self._buffer:
            self._count[0] += 1
        else:
            self._failed.append(self._buffer)
        self._buffer = b""
        self._send()


def _is_complete(response: bytes) -> bool:
    head, separator, body = response.partition(b"\r\n\r\n")
    if not separator:
        return False
    marker = head.lower().find(b"content-length:")
    if marker < 0:
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(head[marker + 15 :].split(b"\r\n", 1)[0])


async def per_second(port: int, requests: list[list[bytes]]) -> float:
    """Returns responses per second. There is one client per list, which it sends repeatedly."""
    loop = asyncio.get_running_loop()
    count, failed = [0], list[bytes]()
    transports = []
    for client_requests in requests:
        client = partial(_Client, itertools.cycle(client_requests), count, failed)
        transports.append((await loop.create_connection(client, "127.0.0.1", port))[0])
    await asyncio.sleep(0.5)
    count[0] = 0
    started = time.perf_counter()
    await asyncio.sleep(SECONDS)
    rate = count[0] / (time.perf_counter() - started)
    for transport in transports:
        transport.abort()
    # The server still handles the aborted requests; wait, so that they do not slow the next run.
    await asyncio.sleep(0.5)
    if failed:
        raise RuntimeError(f"{len(failed)} of the requests failed, the first: {failed[0]!r}")
    return rate


async def wait_for_port(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise RuntimeError(f"nothing listens on {port}")
