"""How many connections an address and a web process may have."""

import asyncio
import resource
from contextlib import AsyncExitStack

import msgspec
import pytest
from structlog.testing import capture_logs

from app.http.connection_guard import ConnectionGuard, ConnectionLimits, GuardedConnection
from app.http.server_protocol import BoundedHttpProtocol
from app.kit import open_files
from app.settings import Settings
from tests.assertions import logged_by, refused, until
from tests.http.connection import connect, is_closed, read_response, serve
from tests.http.test_connection_deadlines import app

GET = b"GET /answer HTTP/1.1\r\nHost: a\r\n\r\n"


class Few(BoundedHttpProtocol):
    limits = ConnectionLimits(per_address=3)


async def test_an_address_has_a_limited_number_of_connections() -> None:
    async with serve(app, Few) as port, AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(connect(port)) for _ in range(3)]
        with capture_logs() as logs:
            for data in (GET, b""):
                async with connect(port) as (reader, writer):
                    writer.write(data)
                    answer = await read_response(reader)
                    refused(answer, 503, "too_many_connections")
                    assert answer.headers["retry-after"] == "5"
                    assert answer.headers["connection"] == "close"
                    assert await is_closed(reader)
            async with AsyncExitStack() as more:
                opened = [await more.enter_async_context(connect(port)) for _ in range(20)]
                assert all(await asyncio.gather(*(_is_refused(reader) for reader, _ in opened)))
        (line,) = [line for line in logged_by("http", logs) if "advice" in line]
        assert "PARLEY_CONNECTIONS_PER_ADDRESS" in line["advice"]
        reader, writer = connections.pop()
        writer.write(GET)
        assert (await read_response(reader)).status_code == 200
        writer.close()
        await until(reader.at_eof)
        async with connect(port) as (reader, writer):
            writer.write(GET)
            assert (await read_response(reader)).status_code == 200


async def _is_refused(reader: asyncio.StreamReader) -> bool:
    answer = await read_response(reader)
    return answer.status_code == 503 and await is_closed(reader)


async def test_what_shares_the_limit_of_an_address(subtests: pytest.Subtests) -> None:
    """With a limit of two, the third of these is one too many, or not."""
    for name, clients, is_refused in (
        ("one address", ["192.0.2.1"] * 3, True),
        ("a mapped address", ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"], True),
        ("other addresses", ["192.0.2.1", "192.0.2.2", "192.0.2.3"], False),
        ("a /64 network", ["2001:db8::1", "2001:db8::2", "2001:db8::3:4"], True),
        ("other networks", ["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], False),
        ("a trusted proxy", ["10.0.0.1"] * 3, False),
        ("a Unix socket", [None] * 3, False),
    ):
        with subtests.test(name):
            limits = ConnectionLimits(per_address=2, trusted_proxies=("10.0.0.0/8",))
            guard = ConnectionGuard([], limits, 1)
            counted = [guard.add((client, 1) if client else None) for client in clients]
            assert (guard.find_problem(counted[-1]) is not None) == is_refused
            guard.remove(counted[0])
            assert guard.find_problem(counted[-1]) is None


class _Open(GuardedConnection):
    def check_deadlines(self, seconds: float) -> None: ...


async def test_a_process_has_a_limited_number_of_connections() -> None:
    connections = [_Open() for _ in range(3)]
    guard = ConnectionGuard(connections, ConnectionLimits(total=3), 1)
    assert guard.find_problem(None) is None
    connections.append(_Open())
    assert guard.find_problem(guard.add(None)) is not None


def test_the_limit_of_a_process_leaves_files_for_other_uses(subtests: pytest.Subtests) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    settings = Settings(pool_size=50, connections_per_address=9, trusted_proxies=("10.0.0.1",))
    try:
        for files, total in ((4096, 3227), (1024, 770)):
            with subtests.test(files=files):
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
                assert msgspec.structs.astuple(ConnectionLimits.of(settings)) == (
                    9,
                    total,
                    ("10.0.0.1",),
                )
        open_files.raise_limit()
        assert open_files.read_limit() > 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
