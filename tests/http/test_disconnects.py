"""A request whose client is gone stops, unless it changes something already."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from litestar import Litestar, get, post
from starlette.types import ASGIApp

from app.http.server_protocol import BoundedHttpProtocol
from tests.assertions import until
from tests.http.connection import connect, read_response, serve

_started: list[str] = []
_ended: dict[str, str] = {}
_may_end = asyncio.Event()


async def _hang(name: str) -> None:
    _started.append(name)
    try:
        await _may_end.wait()
    except asyncio.CancelledError:
        _ended[name] = "cancelled"
        raise
    _ended[name] = "complete"


@get("/test/read", public=True, include_in_schema=False)
async def read() -> None:
    await _hang("read")


@post("/test/check", public=True, stops_when_gone=True, include_in_schema=False)
async def check() -> None:
    await _hang("check")


@post("/test/change", public=True, include_in_schema=False)
async def change() -> None:
    await _hang("change")


ROUTES = (read, check, change)


@pytest.fixture(scope="module")
async def port(changed_app: Litestar) -> AsyncIterator[int]:
    async with serve(cast("ASGIApp", changed_app), BoundedHttpProtocol) as port:
        yield port


@pytest.fixture(autouse=True)
def _forget() -> None:
    _started.clear()
    _ended.clear()
    _may_end.clear()


async def test_a_request_stops_when_its_client_is_gone(
    port: int, subtests: pytest.Subtests
) -> None:
    for method, name in (("GET", "read"), ("POST", "check")):
        with subtests.test(name):
            async with connect(port) as (_, writer):
                writer.write(f"{method} /test/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
                await until(lambda: name in _started)  # noqa: B023
            await until(lambda: _ended.get(name) == "cancelled")  # noqa: B023


async def test_a_change_goes_on_when_its_client_is_gone(port: int) -> None:
    async with connect(port) as (_, writer):
        writer.write(b"POST /test/change HTTP/1.1\r\nHost: a\r\n\r\n")
        await until(lambda: "change" in _started)
    async with connect(port) as (reader, writer):
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await read_response(reader)).status_code == 200
    _may_end.set()
    await until(lambda: _ended.get("change") == "complete")


async def test_a_request_whose_client_waits_is_answered(port: int) -> None:
    async with connect(port) as (reader, writer):
        writer.write(b"GET /test/read HTTP/1.1\r\nHost: a\r\n\r\n")
        await until(lambda: "read" in _started)
        _may_end.set()
        assert (await read_response(reader)).status_code == 200
    assert _ended == {"read": "complete"}
