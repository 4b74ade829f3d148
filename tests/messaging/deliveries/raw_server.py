"""A TCP server that answers HTTP requests with exact bytes, valid HTTP or not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def run_raw_server(respond: Respond) -> AsyncIterator[str]:
    """Yields the address of a server that reads each request and then calls `respond`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_content_length(head))
            await respond(writer)
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        await server.wait_closed()


def respond_with(*parts: bytes) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        # In one call: `writelines` with an empty part never returns, up to Python 3.13.
        writer.write(b"".join(parts))
        await writer.drain()

    return respond


def encode_response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
