"""The memory and disk of all bodies under way: shares of addresses, and the whole."""

import asyncio
from contextlib import AsyncExitStack
from typing import cast

import pytest
from litestar import Litestar
from starlette.types import ASGIApp

from app.http.body_budget import BodyBudget
from app.http.server_protocol import BoundedHttpProtocol
from app.kit.errors import ApiError
from tests.assertions import refused
from tests.http.connection import connect, read_response, serve

_MEGABYTE = 1024 * 1024


def _send(budget: BodyBudget, address: str, megabytes: int, way: str = "") -> int:
    """Returns the status that the body gets; it stays under way."""
    use = budget.start(address)
    if way == "spool":
        use.spool()
    elif way == "stream":
        use.stream()
    try:
        for _ in range(megabytes):
            use.add(_MEGABYTE)
    except ApiError as error:
        use.end()
        return error.status
    return 200


def test_bodies_are_bounded_for_an_address_and_in_all(subtests: pytest.Subtests) -> None:
    """The budget is 16 MB: 2 for an address in memory, 16 on disk; 128 for all on disk."""
    table: list[tuple[str, list[tuple[str, int, str]], list[int]]] = [
        ("one address", [("a", 1, ""), ("a", 1, ""), ("a", 1, "")], [200, 200, 429]),
        ("another one", [("a", 2, ""), ("a", 1, ""), ("b", 2, "")], [200, 429, 200]),
        ("all of them", [(str(n), 2, "") for n in range(9)], [200] * 8 + [503]),
        ("files", [("a", 10, "spool"), ("a", 6, "spool"), ("a", 1, "spool")], [200, 200, 429]),
        ("one that fits", [("a", 100, "spool")], [429]),
        ("streams", [("a", 50, "stream"), ("a", 50, "stream")], [200, 503]),
    ]
    for name, sent, statuses in table:
        with subtests.test(name):
            budget = BodyBudget(16, 5)
            assert [_send(budget, *body) for body in sent] == statuses


def test_short_bodies_are_taken_while_large_ones_fill_the_budget() -> None:
    budget = BodyBudget(16, 5)
    while _send(budget, "a", 1) == 200 or _send(budget, "b", 1, "stream") == 200:
        pass
    short = budget.start("a")
    for _ in range(16):
        short.add(1024)
    with pytest.raises(ApiError):
        short.add(_MEGABYTE)


def test_the_largest_upload_always_fits() -> None:
    assert _send(BodyBudget(16, 300), "a", 300, "spool") == 200


def test_what_a_request_took_is_free_when_it_ends() -> None:
    budget = BodyBudget(16, 5)
    for _ in range(50):
        use = budget.start("a")
        use.add(2 * _MEGABYTE)
        use.end()
        use.end()
    assert _send(budget, "a", 2) == 200


async def test_unfinished_bodies_of_one_address_are_bounded(changed_app: Litestar) -> None:
    """Each is within its own limit; an address has 2 MB of 16."""
    head = b"POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: 1000000\r\n\r\n"
    app = cast("ASGIApp", changed_app)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serve(app, BoundedHttpProtocol))
        readers = []
        for _ in range(3):
            reader, writer = await stack.enter_async_context(connect(port))
            writer.write(head + bytes(900_000))
            readers.append(asyncio.create_task(read_response(reader)))
        done, waiting = await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
        response = done.pop().result()
        refused(response, 429, "rate_limited")
        assert response.headers["retry-after"] == "5"
        assert len(waiting) == 2
        for task in waiting:
            task.cancel()
