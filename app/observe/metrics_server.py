"""A server for the metrics alone, on an address that clients of the web tier do not reach."""

import asyncio
import fcntl
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO

from app.kit import logs
from app.observe.metrics_page import MetricsPage

log = logs.get("metrics")

_MAX_HEAD_BYTES = 16 * 1024
_MAX_CONNECTIONS = 32
_DEADLINE_SECONDS = 10.0
_RETRY_SECONDS = 2.0
_LOCK_NAME = "listener.lock"


class MetricsServer:
    """Answers GET and HEAD of /metrics, one request per connection."""

    def __init__(self, page: MetricsPage) -> None:
        self._page = page
        self._connections = 0
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Raises OSError when the address cannot be used."""
        self._server = await asyncio.start_server(
            self._serve_connection, host, port, limit=_MAX_HEAD_BYTES
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._connections += 1
        try:
            if self._connections <= _MAX_CONNECTIONS:
                async with asyncio.timeout(_DEADLINE_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(await self._answer(head))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
        except asyncio.LimitOverrunError:
            writer.write(_format(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != b"/metrics":
            return _format(HTTPStatus.NOT_FOUND)
        if method not in {b"GET", b"HEAD"}:
            return _format(HTTPStatus.METHOD_NOT_ALLOWED, "allow: GET, HEAD\r\n")
        text, content_type = await self._page.read(_read_accept(head))
        headers = f"content-type: {content_type}\r\nvary: Accept\r\n"
        answer = _format(HTTPStatus.OK, headers, len(text))
        return answer if method == b"HEAD" else answer + text


def _read_accept(head: bytes) -> str:
    headers = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    values = [value for name, _, value in headers if name.strip().lower() == b"accept"]
    return b",".join(values).decode("latin-1")


def _format(status: HTTPStatus, headers: str = "", length: int = 0) -> bytes:
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{headers}content-length: {length}\r\n"
        "connection: close\r\n\r\n"
    ).encode()


async def serve_until(
    stopped: asyncio.Event, page: MetricsPage, address: tuple[str, int], directory: str
) -> None:
    """Serves the metrics of all processes that share `directory`, in one of them: when it ends,
    another one takes over. An address that is in use is tried again and again.
    """
    server, lock, is_warned = MetricsServer(page), None, False
    try:
        while not stopped.is_set():
            lock = lock or (_try_lock(Path(directory)) if directory else None)
            if lock is not None or not directory:
                try:
                    await server.start(*address)
                    await stopped.wait()
                except OSError as error:
                    if not is_warned:
                        is_warned = True
                        _warn(address, error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS):
                    await stopped.wait()
    finally:
        server.close()
        if lock is not None:
            lock.close()


def _try_lock(directory: Path) -> IO[bytes] | None:
    """Returns a locked file. The kernel unlocks it when the process ends."""
    file = (directory / _LOCK_NAME).open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _warn(address: tuple[str, int], error: OSError) -> None:
    log.warning(
        "metrics are not served: their address cannot be used",
        address=f"{address[0]}:{address[1]}",
        reason=error.strerror or str(error),
        advice="set PARLEY_METRICS_ADDRESS to another address, or to off",
    )
