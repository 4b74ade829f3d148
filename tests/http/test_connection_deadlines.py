"""A client that keeps the server waiting is disconnected, and no other; with short deadlines."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from app.http.connection_guard import ConnectionLimits, Deadlines
from app.http.server_protocol import BoundedHttpProtocol
from tests.assertions import refused, until
from tests.http.connection import Connection, connect, is_closed, read_response, serve

BLOCK = b"x" * 65536
BLOCKS = 400
# Longer than any of the deadlines.
LONG = 0.8


class Impatient(BoundedHttpProtocol):
    deadlines = Deadlines(
        idle=0.3,
        head=0.3,
        body_pause=0.3,
        body_grace=0.3,
        body_bytes_per_second=100,
        upload_grace=0.3,
        upload_bytes_per_second=1500,
        discarded_body=0.3,
        unread_response=0.4,
        sweep=0.05,
    )
    limits = ConnectionLimits(per_address=4)


UPLOAD = b"Content-Type: Multipart/form-data; boundary=b\r\n"


def _head(path: str, length: int = 0) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n".encode()


async def _read_body(receive: Receive) -> bool:
    while (message := await receive()).get("more_body"):
        pass
    return str(message["type"]) == "http.request"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    path = scope["path"]
    if path == "/late":
        await asyncio.sleep(LONG)
    if path != "/early" and not await _read_body(receive):
        return
    blocks = [BLOCK] * BLOCKS if path == "/large" else [b"o", b"k"]
    length = sum(map(len, blocks))
    headers = [(b"content-length", b"%d" % length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for block in blocks:
        if path == "/stream":
            await asyncio.sleep(LONG)
        await send({"type": "http.response.body", "body": block, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
async def port() -> AsyncIterator[int]:
    async with serve(app, Impatient) as port:
        yield port


async def _trickle(writer: asyncio.StreamWriter, data: bytes, size: int = 1) -> None:
    """Sends for a time that is longer than the deadlines, a few bytes every now and then."""
    for start in range(0, len(data), size):
        if writer.is_closing():
            return
        writer.write(data[start : start + size])
        await asyncio.sleep(0.05)


async def _run_four_at_a_time(clients: list[Coroutine[Any, Any, None]]) -> None:
    """As many as an address may have connections."""
    for start in range(0, len(clients), 4):
        await asyncio.gather(*clients[start : start + 4])


SLOW: list[tuple[str, bytes, bytes, bool]] = [
    # What is sent at once, what slowly after it, and whether there is an answer.
    ("nothing", b"", b"", False),
    ("empty lines", b"", b"\r\n" * 20, False),
    ("half a head", _head("/answer"), b"", True),
    ("a head byte by byte", b"POST /", _head("/answer")[6:], True),
    ("a part of a body", _head("/answer", 1000) + b"\r\n12345", b"", True),
    ("a body byte by byte", _head("/answer", 1000) + b"\r\n", b"x" * 30, True),
    ("half of a body that is not read", _head("/early", 1000) + b"\r\n12345", b"x" * 30, False),
]


async def test_a_client_that_keeps_the_server_waiting_is_disconnected(
    port: int, subtests: pytest.Subtests
) -> None:
    async def run(name: str, data: bytes, slow: bytes, is_answered: bool) -> None:  # noqa: FBT001
        with subtests.test(name):
            async with connect(port) as (reader, writer):
                writer.write(data)
                trickle = asyncio.create_task(_trickle(writer, slow))
                if b"/early" in data:
                    assert (await read_response(reader)).status_code == 200
                elif is_answered:
                    answer = await read_response(reader)
                    refused(answer, 408, "request_timeout")
                    assert answer.headers["connection"] == "close"
                assert await is_closed(reader)
                trickle.cancel()

    await _run_four_at_a_time([run(*client) for client in SLOW])


async def test_a_slow_upload_is_told_why_it_ended(port: int) -> None:
    async with connect(port) as (reader, writer):
        writer.write(_head("/answer", 9000) + UPLOAD + b"\r\n")
        # Faster than a body must be, but slower than an upload.
        trickle = asyncio.create_task(_trickle(writer, b"x" * 1000, size=50))
        error = refused(await read_response(reader), 408, "request_timeout")
        assert "1500 bytes per second" in error["message"]
        trickle.cancel()


async def test_the_next_request_of_a_connection_has_the_same_deadlines(port: int) -> None:
    async with connect(port) as (reader, writer):
        writer.write(_head("/answer") + b"\r\n")
        assert (await read_response(reader)).status_code == 200
        writer.write(_head("/answer"))
        refused(await read_response(reader), 408, "request_timeout")


async def test_a_response_that_is_not_read_ends(port: int) -> None:
    async with connect(port) as (reader, writer):
        writer.write(_head("/large") + b"\r\n")
        transport = writer.transport
        await until(lambda: not transport.is_reading())  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(BLOCKS * len(BLOCK))


async def _send_slowly(connection: Connection) -> None:
    _, writer = connection
    writer.write(_head("/answer", 1000) + b"\r\n")
    await _trickle(writer, b"x" * 1000, size=50)


async def _upload_fast_enough(connection: Connection) -> None:
    _, writer = connection
    writer.write(_head("/answer", 4000) + UPLOAD + b"\r\n")
    await _trickle(writer, b"x" * 4000, size=200)


async def _send_before_it_is_read(connection: Connection) -> None:
    """The server reads a part of it, and the rest when the application asks for it."""
    _, writer = connection
    writer.write(_head("/late", 64 * len(BLOCK)) + b"\r\n" + BLOCK * 64)


async def _wait_to_be_asked(connection: Connection) -> None:
    reader, writer = connection
    writer.write(_head("/late", 5) + b"Expect: 100-continue\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(b"12345")


async def _wait_for_the_answer(connection: Connection) -> None:
    connection[1].write(_head("/late") + b"\r\n")


async def _wait_for_a_stream(connection: Connection) -> None:
    connection[1].write(_head("/stream") + b"\r\n")


async def _send_three_requests(connection: Connection) -> None:
    """The server does not read on before the first one is answered."""
    reader, writer = connection
    writer.write((_head("/late") + b"\r\n") * 3)
    for _ in range(2):
        assert (await read_response(reader)).status_code == 200


async def _read_slowly(connection: Connection) -> None:
    reader, writer = connection
    writer.write(_head("/large") + b"\r\n")
    await reader.readuntil(b"\r\n\r\n")
    for _ in range(BLOCKS // 20):
        await asyncio.sleep(0.05)
        await reader.readexactly(20 * len(BLOCK))
    writer.write(_head("/answer") + b"\r\n")


CLIENTS: list[Callable[[Connection], Awaitable[None]]] = [
    _send_slowly,
    _upload_fast_enough,
    _send_before_it_is_read,
    _wait_to_be_asked,
    _wait_for_the_answer,
    _wait_for_a_stream,
    _send_three_requests,
    _read_slowly,
]


async def test_a_client_that_does_its_part_is_not_disconnected(
    port: int, subtests: pytest.Subtests
) -> None:
    async def run(client: Callable[[Connection], Awaitable[None]]) -> None:
        with subtests.test(client.__name__):
            async with connect(port) as connection:
                await client(connection)
                assert (await read_response(connection[0])).status_code == 200

    await _run_four_at_a_time([run(client) for client in CLIENTS])
