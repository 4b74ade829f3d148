"""A relay between asyncpg and a Postgres server that a tenant chose.

asyncpg trusts its server: five zero bytes put it into an endless loop, and it offers client
certificates of this machine. So it connects to a Unix socket of the relay. The relay connects to
the checked address, handles TLS itself, and forwards only well-formed messages.
"""

import asyncio
import shutil
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

_TLS_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)
_PORT = 5432
_HEADER_BYTES, _MIN_LENGTH = 5, 4
# What a server may send in one session; users see only a small part of it.
_MAX_BYTES = 16 * 1024 * 1024
_CHUNK = 64 * 1024


class TlsRefused(ssl.SSLError):
    """The server does not support TLS, which is required."""


class SessionTooLarge(ConnectionError):
    """The relay closed the connection because the server sent too many bytes."""


class Relay(msgspec.Struct):
    """The folder of the socket, and whether the relay closed an oversized session."""

    folder: str
    is_cut_off: bool = False


@asynccontextmanager
async def open_relay(
    address: str, port: int, host: str, context: ssl.SSLContext | None, *, tls_required: bool
) -> AsyncIterator[Relay]:
    """With a `context` the relay requests TLS; unless `tls_required`, the server may refuse it."""
    reader, writer = await _connect(address, port, host, context, tls_required=tls_required)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="parley-pg-"))
    relay = Relay(str(folder))
    tasks: list[asyncio.Task[None]] = []
    writers = [writer]

    async def serve(inner: asyncio.StreamReader, outer: asyncio.StreamWriter) -> None:
        writers.append(outer)
        if tasks:
            outer.close()
            return
        tasks.append(asyncio.create_task(_forward_messages(reader, outer, relay)))
        tasks.append(asyncio.create_task(_forward_bytes(inner, writer)))

    server = await asyncio.start_unix_server(serve, folder / f".s.PGSQL.{_PORT}")
    try:
        yield relay
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for open_writer in writers:
            open_writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await open_writer.wait_closed()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _connect(
    address: str, port: int, host: str, context: ssl.SSLContext | None, *, tls_required: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003  # the library's signature
        await loop.sock_connect(sock, (address, port))
        if context is None:
            return await asyncio.open_connection(sock=sock)
        await loop.sock_sendall(sock, _TLS_REQUEST)
        # Reads one byte only: plain text that follows it makes the TLS handshake fail.
        answer = await loop.sock_recv(sock, 1)
        if answer == b"S":
            return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=host)
        if tls_required or answer != b"N":
            raise TlsRefused("the server speaks no TLS")  # noqa: TRY301  # closed below
        return await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


async def _forward_messages(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, relay: Relay
) -> None:
    """Forwards the server's messages and stops at a malformed one or at the size limit."""
    bytes_left = _MAX_BYTES
    with suppress(OSError, EOFError):
        while True:
            header = await source.readexactly(_HEADER_BYTES)
            length = int.from_bytes(header[1:])
            bytes_left -= length
            relay.is_cut_off = bytes_left < 0
            if header[0] == 0 or length < _MIN_LENGTH or bytes_left < 0:
                break
            target.write(header)
            remaining = length - _MIN_LENGTH
            while remaining:
                chunk = await source.read(min(remaining, _CHUNK))
                if not chunk:
                    raise EOFError
                target.write(chunk)
                await target.drain()
                remaining -= len(chunk)
            await target.drain()
    target.close()


async def _forward_bytes(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
    with suppress(OSError):
        target.close()
