"""Event streams in OpenAI's wire format, split into packets in every way."""

import asyncio
import gzip
import json
import random
from contextlib import aclosing

import pytest

from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import (
    Accepted,
    AnswerPart,
    Finished,
    Text,
    ToolCall,
    UsedTokens,
)
from tests.agents.llm.answers import StepHold, make_request
from tests.agents.llm.openai_provider import (
    DONE,
    SSE,
    STOP,
    encode_delta,
    encode_event,
    join_texts,
    make_target,
    request_failure,
    request_parts,
    serve_connections,
    serve_packets,
)
from tests.assertions import until
from tests.model_server import ModelServer, Reply


def _build_long_answer() -> tuple[list[bytes], list[AnswerPart]]:
    texts = ["Grüße", " aus ", "München 🥨", " — ", "bis bald"]
    fragment = {"index": 0, "id": "call_9", "function": {"name": "f", "arguments": '{"ü": "ß"}'}}
    chunk = {"choices": [{"delta": {"content": texts[2]}, "finish_reason": None}]}
    plain = b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
    events = [
        b": keep-alive\n\n",
        *(encode_delta(content=text) for text in texts[:2]),
        plain,
        *(encode_delta(content=text) for text in texts[3:]),
        encode_delta(tool_calls=[fragment]),
        STOP,
        encode_event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 4}),
        DONE,
    ]
    parts: list[AnswerPart] = [
        *map(Text, texts),
        UsedTokens(3, 4),
        ToolCall("call_9", "f", '{"ü": "ß"}'),
    ]
    return events, join_texts(parts)


async def test_many_events_in_one_packet_are_all_read(adapter: OpenAIAdapter) -> None:
    events, parts = _build_long_answer()
    async with serve_packets(SSE + b"".join(events)) as url:
        assert await request_parts(adapter, make_target(url)) == parts


async def test_the_text_of_one_packet_is_one_part(adapter: OpenAIAdapter) -> None:
    """Each part has a cost down to the client, and the client gets a packet at once anyway."""
    deltas = b"".join(encode_delta(content=f"{number} ") for number in range(200))
    async with (
        serve_packets(SSE + deltas + STOP + DONE) as url,
        aclosing(adapter.answer(make_target(url), make_request())) as answer,
    ):
        parts = [part async for part in answer if not isinstance(part, Accepted | Finished)]
    assert join_texts(parts) == [Text("".join(f"{number} " for number in range(200)))]
    assert len(parts) < 10


async def test_parts_before_a_failure_in_the_same_packet_are_passed_on(
    adapter: OpenAIAdapter,
) -> None:
    broken = encode_event(error={"message": "I fell"})
    async with serve_packets(
        SSE + encode_delta(content="Half ") + encode_delta(content="a word") + broken
    ) as url:
        error, before = await request_failure(adapter, make_target(url))
    assert join_texts(before) == [Text("Half a word")]
    assert "I fell" in error.message


async def test_a_connection_is_used_again_after_its_stream_ended(adapter: OpenAIAdapter) -> None:
    """Also when the response ends a moment after its last event."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    body = encode_delta(content="Yes") + STOP + DONE
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while request := await reader.read(64 * 1024):
            if b"[" not in request:
                continue
            writer.write(head + b"\r\n%x\r\n%s\r\n" % (len(body), body))
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(b"0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        for _ in range(3):
            assert await request_parts(adapter, make_target(url)) == [Text("Yes")]
        await adapter.close()
    assert connections == 1


async def test_events_may_come_a_byte_at_a_time(adapter: OpenAIAdapter) -> None:
    events, parts = _build_long_answer()
    async with serve_packets(SSE, *(bytes([byte]) for byte in b"".join(events))) as url:
        assert await request_parts(adapter, make_target(url)) == parts


async def test_events_may_be_cut_anywhere(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for seed in range(8):
        with subtests.test(seed=seed):
            events, parts = _build_long_answer()
            whole = b"".join(events)
            cuts = sorted(random.Random(seed).sample(range(1, len(whole)), 12))
            packets = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
            async with serve_packets(SSE, *packets) as url:
                assert await request_parts(adapter, make_target(url)) == parts


async def test_lines_may_end_in_cr_and_lf(adapter: OpenAIAdapter) -> None:
    events, parts = _build_long_answer()
    whole = b"".join(events).replace(b"\n", b"\r\n")
    # One cut is between CR and LF.
    cut = whole.index(b"\r\n", 200) + 1
    async with serve_packets(SSE, whole[:cut], whole[cut:]) as url:
        assert await request_parts(adapter, make_target(url)) == parts


async def test_the_space_after_data_may_be_missing(adapter: OpenAIAdapter) -> None:
    events, parts = _build_long_answer()
    async with serve_packets(SSE, b"".join(events).replace(b"data: ", b"data:")) as url:
        assert await request_parts(adapter, make_target(url)) == parts


async def test_other_lines_of_an_event_are_ignored(adapter: OpenAIAdapter) -> None:
    other_lines = b"event: message\nid: 7\nretry: 10\n: a comment\ndata:\n\n"
    async with serve_packets(
        SSE, other_lines + encode_delta(content="Yes"), other_lines + STOP, other_lines + DONE
    ) as url:
        assert await request_parts(adapter, make_target(url)) == [Text("Yes")]


async def test_chunked_and_compressed_streams_are_read(adapter: OpenAIAdapter) -> None:
    events, parts = _build_long_answer()
    compressed = gzip.compress(b"".join(events))
    head = SSE[:-2] + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    halves = [compressed[:90], compressed[90:]]
    chunks = [f"{len(half):x}\r\n".encode() + half + b"\r\n" for half in halves]
    async with serve_packets(head, *chunks, b"0\r\n\r\n") as url:
        assert await request_parts(adapter, make_target(url)) == parts


async def test_an_answer_ends_with_its_last_event_not_with_the_connection(
    adapter: OpenAIAdapter,
) -> None:
    still_open = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE + encode_delta(content="Yes") + STOP + DONE)
        await writer.drain()
        await reader.read()
        still_open.set()

    async with serve_connections(handle) as url, asyncio.timeout(5):
        assert await request_parts(adapter, make_target(url)) == [Text("Yes")]
        await still_open.wait()


async def test_nothing_after_the_last_event_counts(adapter: OpenAIAdapter) -> None:
    async with serve_packets(
        SSE, STOP + DONE + encode_delta(content="more") + b"data: {broken\n\n"
    ) as url:
        assert await request_parts(adapter, make_target(url)) == []


async def test_closing_the_answer_closes_the_provider_s_connection(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    hold = StepHold(steps=1)
    models.script("left", Reply(texts=["one", "two"], hold=hold))
    closed_before = models.closed_early
    async with aclosing(
        adapter.answer(make_target(models.url, "scripted/left"), make_request())
    ) as parts:
        assert await anext(parts) == Accepted()
        assert await anext(parts) == Text("one")
    hold.release()
    await until(lambda: models.closed_early == closed_before + 1)


async def test_an_answer_is_complete_whatever_follows_its_last_event(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for ending in ("closed", "reset", "nonsense", "too short"):
        with subtests.test(ending=ending):
            body = encode_delta(content="All of it") + STOP + DONE
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

            async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                if ending == "too short":  # noqa: B023
                    writer.write(head + b"Content-Length: 100000\r\n\r\n" + body)  # noqa: B023
                else:
                    chunk = b"%x\r\n%s\r\n" % (len(body), body)  # noqa: B023
                    writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)  # noqa: B023
                await writer.drain()
                await asyncio.sleep(0.03)
                if ending == "nonsense":  # noqa: B023
                    writer.write(b"zz\r\n")
                    await writer.drain()
                if ending == "reset":  # noqa: B023
                    writer.transport.abort()

            async with serve_connections(handle) as url:
                assert await request_parts(adapter, make_target(url)) == [Text("All of it")]
