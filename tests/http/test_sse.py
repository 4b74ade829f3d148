"""Server-sent events: keep-alive comments, clients that leave and sources that fail."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.http import sse
from app.kit.sse import event
from tests.assertions import until
from tests.scripted_agents import events_in


class RecordingConnection:
    """Both ends of an ASGI connection: records what is sent, until the client has left."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))
        if not message["more_body"]:
            # A server reports the end of the response like the end of the connection.
            self.left.set()

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent)


async def test_a_silent_stream_sends_keep_alive_comments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.02)
    go_on, connection = asyncio.Event(), RecordingConnection()

    async def source() -> AsyncGenerator[bytes, None]:
        yield event("one", b"1")
        await go_on.wait()
        yield event("two", b"2")

    response = asyncio.create_task(
        sse._Stream(source()).send_body(connection.send, connection.receive)
    )
    comment = b": still here\n\n"
    await until(lambda: connection.body.count(comment) >= 3)
    go_on.set()
    await asyncio.wait_for(response, 5)
    assert connection.body.startswith(b"event: one\ndata: 1\n\n" + comment)
    assert connection.body.endswith(b"event: two\ndata: 2\n\n")
    assert [message["more_body"] for message in connection.sent[:-1]] == [True] * (
        len(connection.sent) - 1
    )
    assert connection.sent[-1]["more_body"] is False
    # Readers of events ignore comments.
    assert [name for name, _ in events_in(connection.body.decode())] == ["one", "two"]


async def test_an_active_stream_sends_no_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 5.0)
    connection = RecordingConnection()

    async def source() -> AsyncGenerator[bytes, None]:
        for number in range(10):
            yield event("n", b"%d" % number)
            await asyncio.sleep(0.001)

    await sse._Stream(source()).send_body(connection.send, connection.receive)
    assert b": still here" not in connection.body
    assert len(events_in(connection.body.decode())) == 10


def test_comments_come_every_ten_seconds() -> None:
    assert sse.KEEP_ALIVE_SECONDS == 10


async def _wait_after_one_event(ended: asyncio.Event) -> AsyncGenerator[bytes, None]:
    try:
        yield event("one", b"1")
        await asyncio.Event().wait()
    finally:
        ended.set()


async def test_a_source_starts_and_ends_although_the_client_has_left() -> None:
    """A source that never starts would not free its conversation."""
    connection, ended = RecordingConnection(), asyncio.Event()
    connection.left.set()

    stream = sse._Stream(_wait_after_one_event(ended))
    await asyncio.wait_for(stream.send_body(connection.send, connection.receive), 5)
    assert ended.is_set()


@pytest.mark.parametrize("failure", ["the source is cancelled", "sending fails"])
async def test_a_response_ends_when_its_source_or_its_connection_breaks(failure: str) -> None:
    connection = RecordingConnection()

    async def source() -> AsyncGenerator[bytes, None]:
        yield event("one", b"1")
        if failure == "the source is cancelled":
            raise asyncio.CancelledError
        yield event("two", b"2")

    async def send(message: Any) -> None:
        if failure == "sending fails" and connection.sent:
            raise OSError("broken pipe")
        await connection.send(message)

    await asyncio.wait_for(sse._Stream(source()).send_body(send, connection.receive), 2)
    assert connection.body == b"event: one\ndata: 1\n\n"


async def test_a_waiting_source_ends_when_the_client_leaves() -> None:
    connection, ended = RecordingConnection(), asyncio.Event()

    response = asyncio.create_task(
        sse._Stream(_wait_after_one_event(ended)).send_body(connection.send, connection.receive)
    )
    await until(lambda: connection.sent)
    connection.left.set()
    await asyncio.wait_for(response, 5)
    assert ended.is_set()


async def test_a_source_that_raises_ends_the_stream() -> None:
    connection = RecordingConnection()

    async def source() -> AsyncGenerator[bytes, None]:
        yield event("one", b"1")
        raise RuntimeError("broken")

    await asyncio.wait_for(sse._Stream(source()).send_body(connection.send, connection.receive), 5)
    assert events_in(connection.body.decode()) == [("one", 1)]
    assert connection.sent[-1]["more_body"] is False


async def test_a_client_that_reads_nothing_stops_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(sse, "STALLED_SECONDS", 0.3)
    events = 0
    closed = asyncio.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        nonlocal events
        try:
            while True:
                events += 1
                yield b"x" * 100
        finally:
            closed.set()

    async def block_body(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive_nothing() -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        await sse._Stream(source())({}, receive_nothing, block_body)  # type: ignore[arg-type]
    assert closed.is_set()
    assert events < 50
