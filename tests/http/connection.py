"""Connections on which a test sends bytes of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.types import ASGIApp

from app.http.server_protocol import BoundedHttpProtocol
from tests.agents.tools.asgi_server import run_server
from tests.ports import free_port

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LIVE = b"GET /health/live HTTP/1.1\r\nHost: parley.test\r\n"
POST = b"POST /auth/login HTTP/1.1\r\nHost: parley.test\r\n"


@asynccontextmanager
async def connect(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(20):
            yield reader, writer
    finally:
        writer.close()


async def read_response(reader: asyncio.StreamReader) -> httpx.Response:
    head = await reader.readuntil(b"\r\n\r\n")
    status, *lines = head.decode().strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    content = await reader.readexactly(int(headers["content-length"]))
    return httpx.Response(int(status.split()[1]), headers=headers, content=content)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Waits for the end of the connection, which may be an error: for bytes that the server did
    not read, or that were still being sent.
    """
    try:
        return await reader.read() == b""
    except (ConnectionResetError, BrokenPipeError):
        return True


@asynccontextmanager
async def serve(app: ASGIApp, protocol: type[BoundedHttpProtocol]) -> AsyncIterator[int]:
    """Serves an application within this process and yields the port."""
    port = free_port()
    config = uvicorn.Config(
        app,
        port=port,
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    async with run_server(config):
        yield port
