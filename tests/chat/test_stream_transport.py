"""Streamed chat: many streams at once, and slow clients."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.http import sse
from tests.asking import until
from tests.chat.stream_helpers import first_message_id, list_messages, stream_chat
from tests.model_server import Reply
from tests.server import Server
from tests.talk import Talker, events_in, texts_of


async def test_fifty_streams_at_once_are_each_whole_and_their_own(
    talk: Talker, server: Server
) -> None:
    talk.script(Reply(texts=[f"{number} " for number in range(40)], delay=0.01))
    all_events = await asyncio.gather(
        *(stream_chat(server, talk, f"Question {number}") for number in range(50))
    )
    said = "".join(f"{number} " for number in range(40))
    for events in all_events:
        first, *deltas, last = (name for name, _ in events)
        assert (first, set(deltas), last) == ("message_start", {"content_delta"}, "message_stop")
        # What arrived in one piece, as it may on a busy machine, is passed on in one.
        assert len(deltas) <= 40
        assert texts_of(events) == said
    conversations = [first_message_id(events) for events in all_events]
    assert len(set(conversations)) == 50
    for number, conversation_id in enumerate(conversations):
        kept = await list_messages(talk, conversation_id)
        assert [item["content"] for item in kept] == [f"Question {number}", said]


class SlowClient:
    """Both ends of an ASGI connection: what was sent, and a reader that may go."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))
        if not message["more_body"]:
            # A server tells the end of the response like the end of the connection.
            self.gone.set()

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent)


async def test_a_silent_stream_says_a_comment_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.02)
    go_on, connection = asyncio.Event(), SlowClient()

    async def source() -> AsyncGenerator[bytes, None]:
        yield sse.event("one", b"1")
        await go_on.wait()
        yield sse.event("two", b"2")

    sending = asyncio.create_task(
        sse._Stream(source()).send_body(connection.send, connection.receive)
    )
    comment = b": still here\n\n"
    await until(lambda: connection.body.count(comment) >= 3)
    go_on.set()
    await asyncio.wait_for(sending, 5)
    assert connection.body.startswith(b"event: one\ndata: 1\n\n" + comment)
    assert connection.body.endswith(b"event: two\ndata: 2\n\n")
    assert [message["more_body"] for message in connection.sent[:-1]] == [True] * (
        len(connection.sent) - 1
    )
    assert connection.sent[-1]["more_body"] is False
    # Comments are nothing to whoever reads events.
    assert [name for name, _ in events_in(connection.body.decode())] == ["one", "two"]


async def test_a_stream_that_speaks_says_no_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 5.0)
    connection = SlowClient()

    async def source() -> AsyncGenerator[bytes, None]:
        for number in range(10):
            yield sse.event("n", b"%d" % number)
            await asyncio.sleep(0.001)

    await sse._Stream(source()).send_body(connection.send, connection.receive)
    assert b": still here" not in connection.body
    assert len(events_in(connection.body.decode())) == 10


def test_comments_come_every_ten_seconds() -> None:
    assert sse.KEEP_ALIVE_SECONDS == 10


async def test_a_source_is_begun_and_ended_although_the_reader_has_gone_already() -> None:
    """What was never begun would not free its conversation at its end."""
    connection, ended = SlowClient(), asyncio.Event()
    connection.gone.set()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield sse.event("one", b"1")
            await asyncio.Event().wait()
        finally:
            ended.set()

    stream = sse._Stream(source())
    await asyncio.wait_for(stream.send_body(connection.send, connection.receive), 1)
    assert ended.is_set()


@pytest.mark.parametrize("how", ["the source is cancelled", "sending fails"])
async def test_a_response_whose_source_broke_off_is_over(how: str) -> None:
    connection = SlowClient()

    async def source() -> AsyncGenerator[bytes, None]:
        yield sse.event("one", b"1")
        if how == "the source is cancelled":
            raise asyncio.CancelledError
        yield sse.event("two", b"2")

    async def send(message: Any) -> None:
        if how == "sending fails" and connection.sent:
            raise OSError("broken pipe")
        await connection.send(message)

    await asyncio.wait_for(sse._Stream(source()).send_body(send, connection.receive), 2)
    assert connection.body == b"event: one\ndata: 1\n\n"


async def test_a_source_is_ended_where_it_stands_when_the_reader_goes() -> None:
    connection, ended = SlowClient(), asyncio.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            yield sse.event("one", b"1")
            await asyncio.Event().wait()
        finally:
            ended.set()

    sending = asyncio.create_task(
        sse._Stream(source()).send_body(connection.send, connection.receive)
    )
    await until(lambda: bool(connection.sent))
    connection.gone.set()
    await asyncio.wait_for(sending, 1)
    assert ended.is_set()


async def test_a_source_that_raises_ends_the_stream() -> None:
    connection = SlowClient()

    async def source() -> AsyncGenerator[bytes, None]:
        yield sse.event("one", b"1")
        raise RuntimeError("broken")

    await asyncio.wait_for(sse._Stream(source()).send_body(connection.send, connection.receive), 1)
    assert events_in(connection.body.decode()) == [("one", 1)]
    assert connection.sent[-1]["more_body"] is False
