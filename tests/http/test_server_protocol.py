"""What a request has besides its body is limited, on connections of a real server."""

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from app.http.server_protocol import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_PIPELINED,
    MAX_URL_BYTES,
    BoundedHttpProtocol,
)
from tests.assertions import refused, until
from tests.http.connection import LIVE, POST, connect, is_closed, read_response, serve
from tests.server import Server

CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
TOO_LARGE = (431, "headers_too_large")
TOO_LONG = (414, "uri_too_long")
MALFORMED = (400, "malformed_request")
PAYLOAD = (413, "payload_too_large")
LARGE = 1024 * 1024


def _get(path: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: parley.test\r\n\r\n"


REFUSED = [
    ("a URL over its limit", _get(b"/" + b"a" * MAX_URL_BYTES), TOO_LONG),
    ("a query over the limit of a URL", _get(b"/?q=" + b"a" * MAX_URL_BYTES), TOO_LONG),
    ("a URL without an end", b"GET /?" + b"a" * LARGE, TOO_LONG),
    ("a header over the limit", LIVE + b"X-A: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n", TOO_LARGE),
    ("a header without an end", LIVE + b"X-A: " + b"a" * LARGE, TOO_LARGE),
    ("a name without an end", LIVE + b"a" * LARGE, TOO_LARGE),
    ("headers without an end", LIVE + b"X-A: bcdefgh\r\n" * 10_000, TOO_LARGE),
    ("small headers", LIVE + b"a:b\r\n" * (MAX_HEADERS + 1) + b"\r\n", TOO_LARGE),
    ("empty lines without an end", b"\r\n" * LARGE, TOO_LARGE),
    ("no request", b"\x16\x03\x01" + b"\x00" * 100, MALFORMED),
    ("a URL that is none", _get(b"http://[::1"), MALFORMED),
    ("trailers without an end", CHUNKED + b"1\r\n{\r\n0\r\nX-A: " + b"a" * LARGE, PAYLOAD),
    ("many trailers", CHUNKED + b"0\r\n" + b"a:b\r\n" * 50_000, PAYLOAD),
    ("an extension without an end", CHUNKED + b"1;a=" + b"a" * LARGE, PAYLOAD),
    ("extensions of chunks", CHUNKED + (b"1;a=" + b"a" * 4000 + b"\r\n{\r\n") * 250, PAYLOAD),
    ("a chunk without a size", CHUNKED + b"nothing\r\n", MALFORMED),
]


async def test_what_is_too_large_is_answered_and_closes_the_connection(
    server: Server, subtests: pytest.Subtests
) -> None:
    for name, data, (status, code) in REFUSED:
        with subtests.test(name):
            async with connect(server.settings.port) as (reader, writer):
                writer.write(data)
                answer = await read_response(reader)
                refused(answer, status, code)
                assert answer.headers["connection"] == "close"
                assert await is_closed(reader)


async def test_a_head_that_arrives_byte_by_byte_is_counted(server: Server) -> None:
    async with connect(server.settings.port) as (reader, writer):
        writer.write(LIVE + b"X-A: ")
        for _ in range(MAX_HEAD_BYTES // 256):
            writer.write(b"a" * 256)
            await writer.drain()
            await asyncio.sleep(0)
        refused(await read_response(reader), *TOO_LARGE)


async def test_a_request_within_the_limits_is_served(
    server: Server, subtests: pytest.Subtests
) -> None:
    for name, data, status in (
        ("URL", _get(b"/nothing?q=" + b"a" * (MAX_URL_BYTES - 100)), 404),
        ("header", LIVE + b"X-A: " + b"a" * (MAX_HEAD_BYTES - 200) + b"\r\n\r\n", 200),
        ("headers", LIVE + b"a:b\r\n" * (MAX_HEADERS - 1) + b"\r\n", 200),
        ("body", POST + b"content-length: %d\r\n\r\n" % 200_000 + b"x" * 200_000, 422),
        ("chunks", CHUNKED + b"1\r\nx\r\n" * 60_000 + b"0\r\n\r\n", 422),
        ("trailer", CHUNKED + b"1;a=b\r\nx\r\n0\r\nX-A: b\r\n\r\n", 422),
    ):
        with subtests.test(name):
            async with connect(server.settings.port) as (reader, writer):
                for _ in range(3):
                    writer.write(data)
                    assert (await read_response(reader)).status_code == status


async def test_a_body_and_the_next_head_in_one_read_are_counted_apart(server: Server) -> None:
    """A large body and a request after it, of which the read has the beginning."""
    size = MAX_HEAD_BYTES - 300
    async with connect(server.settings.port) as (reader, writer):
        writer.write(POST + b"content-length: %d\r\n\r\n" % size + b"x" * size + LIVE)
        refused(await read_response(reader), 422, "validation_error")
        writer.write(b"X-A: " + b"a" * 1000 + b"\r\n\r\n")
        assert (await read_response(reader)).status_code == 200
        writer.write(LIVE + b"\r\n" + LIVE + b"X-A: " + b"a" * (MAX_HEAD_BYTES - 500))
        assert (await read_response(reader)).status_code == 200
        writer.write(b"a" * 1000 + b"\r\n\r\n")
        refused(await read_response(reader), *TOO_LARGE)


async def test_requests_before_a_wrong_one_are_answered(server: Server) -> None:
    async with connect(server.settings.port) as (reader, writer):
        writer.write((LIVE + b"\r\n") * 3 + b"nothing\r\n\r\n")
        for _ in range(3):
            assert (await read_response(reader)).status_code == 200
        assert await is_closed(reader)


async def test_few_requests_wait_on_a_connection(server: Server) -> None:
    async with connect(server.settings.port) as (reader, writer):
        writer.write((LIVE + b"\r\n") * (10 * MAX_PIPELINED))
        answers = (await reader.read()).count(b"HTTP/1.1 200 OK")
        assert 1 <= answers <= MAX_PIPELINED + 1


async def test_a_request_to_change_the_protocol_is_answered_as_any_other(server: Server) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with connect(server.settings.port) as (reader, writer):
        writer.write(LIVE + upgrade + LIVE + b"\r\n")
        answer = await read_response(reader)
        assert answer.status_code == 200
        assert answer.headers["connection"] == "close"
        assert await is_closed(reader)


async def test_a_trailer_does_not_become_a_header() -> None:
    """Nothing checks trailers: they arrive after the gate has read the headers."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        names = b",".join(name for name, _ in scope["headers"])
        headers = [(b"content-length", b"%d" % len(names))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": names})

    async with serve(app, BoundedHttpProtocol) as port, connect(port) as (reader, writer):
        writer.write(CHUNKED + b"1\r\nx\r\n0\r\nX-Tenant-ID: other\r\n\r\n")
        assert (await read_response(reader)).text == "host,transfer-encoding"


async def test_a_response_learns_that_a_connection_with_a_waiting_request_is_lost() -> None:
    left: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "http.disconnect":
            pass
        left.append(message["type"])

    async with serve(app, BoundedHttpProtocol) as port:
        async with connect(port) as (_, writer):
            writer.write((LIVE + b"\r\n") * 2)
        await until(lambda: left == ["http.disconnect"])
