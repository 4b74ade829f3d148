"""Requests whose headers do not end, sent over a real socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from app.http.server_protocol import MAX_HEAD_BYTES
from tests.asking import refused
from tests.server import Server

LIVE = b"GET /health/live HTTP/1.1\r\nHost: parley.test\r\n"


@asynccontextmanager
async def connect(
    server: Server,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.settings.port)
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


async def test_headers_without_an_end_close_the_connection(server: Server) -> None:
    for start, filler in ((b"GET /?", b"a"), (LIVE + b"X-A: ", b"a"), (LIVE, b"X-A: b\r\n")):
        async with connect(server) as (reader, writer):
            writer.write((start + filler * MAX_HEAD_BYTES)[: MAX_HEAD_BYTES + 1])
            refused(await read_response(reader), 431, "headers_too_large")
            assert await reader.read() == b""


async def test_the_limit_is_for_each_request_of_a_connection(server: Server) -> None:
    async with connect(server) as (reader, writer):
        for _ in range(3):
            writer.write(LIVE + b"X-A: " + b"a" * (MAX_HEAD_BYTES // 2) + b"\r\n\r\n")
            refused(await read_response(reader), 431, "headers_too_large")
            writer.write(LIVE + b"\r\n")
            assert (await read_response(reader)).status_code == 200


async def test_a_body_does_not_count(server: Server) -> None:
    async with connect(server) as (reader, writer):
        size = 2 * MAX_HEAD_BYTES
        head = f"POST /auth/login HTTP/1.1\r\nHost: parley.test\r\ncontent-length: {size}\r\n\r\n"
        writer.write(head.encode() + b"x" * size)
        refused(await read_response(reader), 422, "validation_error")
