"""Keep-alive clients that ask again as soon as they have their answer."""

import asyncio
import itertools
import time
from functools import partial

CLIENTS = 32
SECONDS = 3.0


class _Client(asyncio.Protocol):
    def __init__(
        self, requests: "itertools.cycle[bytes]", answered: list[int], failed: list[bytes]
    ) -> None:
        self._requests = requests
        self._answered = answered
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
        if not _is_whole(self._buffer):
            return
        if self._buffer.startswith(b"HTTP/1.1 2") and b"event: error" not in self._buffer:
            self._answered[0] += 1
        else:
            self._failed.append(self._buffer)
        self._buffer = b""
        self._send()


def _is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    marker = head.lower().find(b"content-length:")
    if marker < 0:
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(head[marker + 15 :].split(b"\r\n", 1)[0])


async def per_second(port: int, requests: list[list[bytes]]) -> float:
    """Answers a second to as many clients as there are lists; each asks its own over and over."""
    loop = asyncio.get_running_loop()
    answered, failed = [0], list[bytes]()
    opened = []
    for own in requests:
        client = partial(_Client, itertools.cycle(own), answered, failed)
        opened.append((await loop.create_connection(client, "127.0.0.1", port))[0])
    await asyncio.sleep(0.5)
    answered[0] = 0
    started = time.perf_counter()
    await asyncio.sleep(SECONDS)
    rate = answered[0] / (time.perf_counter() - started)
    for transport in opened:
        transport.abort()
    # What was cut off still answers somebody; wait for it, so that it is not in the next one's way.
    await asyncio.sleep(0.5)
    if failed:
        raise RuntimeError(f"{len(failed)} of the requests failed, the first: {failed[0]!r}")
    return rate
