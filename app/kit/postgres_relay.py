"""Between asyncpg and a Postgres server that a tenant chose.

The client trusts its server: five zero bytes make it turn in circles for good, and it would show
that server certificates of this machine. So it talks to a socket of ours. The relay connects to the
checked address, does TLS by itself, and lets only well-formed messages through.
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
_HEADER_BYTES, _SHORTEST = 5, 4
# All that a server may say in one session; nobody is shown more than a small part of it.
_MOST_BYTES = 16 * 1024 * 1024
_CHUNK = 64 * 1024


class TlsRefused(ConnectionError):
    """The server speaks no TLS, and it must."""


class TooMuchSaid(ConnectionError):
    """The server was cut off: it said more than anybody would be shown."""


class Relay(msgspec.Struct):
    """Where to connect to, and whether the server had to be cut off."""

    folder: str
    is_cut_off: bool = False


@asynccontextmanager
async def relayed(
    address: str, port: int, host: str, context: ssl.SSLContext | None, *, must: bool
) -> AsyncIterator[Relay]:
    """`context` asks for TLS; where it `must` be, nothing else does."""
    reader, writer = await _connected(address, port, host, context, must=must)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="parley-pg-"))
    relay = Relay(str(folder))
    pumps: list[asyncio.Task[None]] = []
    writers = [writer]

    async def serve(inner: asyncio.StreamReader, outer: asyncio.StreamWriter) -> None:
        writers.append(outer)
        if pumps:
            outer.close()
            return
        pumps.append(asyncio.create_task(_checked(reader, outer, relay)))
        pumps.append(asyncio.create_task(_plain(inner, writer)))

    server = await asyncio.start_unix_server(serve, folder / f".s.PGSQL.{_PORT}")
    try:
        yield relay
    finally:
        server.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for one in writers:
            one.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await one.wait_closed()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _connected(
    address: str, port: int, host: str, context: ssl.SSLContext | None, *, must: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003  # the library's own
        await loop.sock_connect(sock, (address, port))
        if context is None:
            return await asyncio.open_connection(sock=sock)
        await loop.sock_sendall(sock, _TLS_REQUEST)
        # One byte and no more: whatever was sent along in plain text is TLS's to stumble over.
        answer = await loop.sock_recv(sock, 1)
        if answer == b"S":
            return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=host)
        if must or answer != b"N":
            raise TlsRefused("the server speaks no TLS")  # noqa: TRY301  # closed below
        return await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


async def _checked(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, relay: Relay
) -> None:
    """What the server says, message by message."""
    room = _MOST_BYTES
    with suppress(OSError, EOFError):
        while True:
            header = await source.readexactly(_HEADER_BYTES)
            length = int.from_bytes(header[1:])
            room -= length
            relay.is_cut_off = room < 0
            if header[0] == 0 or length < _SHORTEST or room < 0:
                break
            target.write(header)
            left = length - _SHORTEST
            while left:
                chunk = await source.read(min(left, _CHUNK))
                if not chunk:
                    raise EOFError
                target.write(chunk)
                await target.drain()
                left -= len(chunk)
            await target.drain()
    target.close()


async def _plain(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
    with suppress(OSError):
        target.close()
