"""Endpoints that say exactly these bytes, right or wrong, as no HTTP server would."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Speak = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def speaking(speak: Speak) -> AsyncIterator[str]:
    """The address of a server that reads a request and then lets `speak` answer it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_length(head))
            await speak(writer)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        await server.wait_closed()


def saying(*parts: bytes) -> Speak:
    async def speak(writer: asyncio.StreamWriter) -> None:
        # As one: `writelines` with an empty part never ends, up to Python 3.13.
        writer.write(b"".join(parts))
        await writer.drain()

    return speak


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
