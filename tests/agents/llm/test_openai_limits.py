"""Malformed answers, size limits and blocked addresses of the OpenAI adapter."""

import asyncio
import gzip
import itertools
import time
from typing import Any

import pytest

from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import UsedTokens
from app.domain.agents.llm.provider_failures import MAX_TOOL_CALLS
from app.net.egress import Egress, Guard
from tests.agents.llm.answers import STREAMED_AND_WHOLE, calls_of, text_of
from tests.agents.llm.openai_provider import (
    DONE,
    JSON,
    MIB,
    SSE,
    STOP,
    encode_delta,
    encode_event,
    make_target,
    request_failure,
    request_parts,
    serve_connections,
    serve_endlessly,
    serve_packets,
)
from tests.model_server import ModelServer, Reply

DEEP = b"[" * 100_000


# Malformed answers


_CASES: dict[str, bytes] = {
    "broken": b"{nope",
    "a list": b"[]",
    "a text": b'"text"',
    "a number": b"5",
    "choices of another kind": b'{"choices": {}}',
    "a choice of another kind": b'{"choices": [5]}',
    "content of another kind": b'{"choices": [{"delta": {"content": 5}}]}',
    "not UTF-8": b'{"choices": [{"delta": {"content": "\xff"}}]}',
    "half a character": b'{"choices": [{"delta": {"content": "\\ud800"}}]}',
}


async def test_an_answer_in_another_format_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for is_streamed, (name, body) in itertools.product(STREAMED_AND_WHOLE, _CASES.items()):
        with subtests.test(is_streamed=is_streamed, name=name):
            event = b"data: " + body + b"\n\n" + STOP + DONE
            whole = body.replace(b'"delta"', b'"message"')
            packets = (SSE, event) if is_streamed else (JSON, whole)
            async with serve_packets(*packets) as url:
                error, _ = await request_failure(adapter, make_target(url), is_streamed=is_streamed)
            assert error.reason == "broken"
            assert error.message == "scripted/one does not speak OpenAI's wire format"


async def test_another_kind_of_content_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: dict[str, bytes] = {
        "nothing": b"",
        "a page": b"<html>Sign in</html>",
    }
    for name, body in cases.items():
        with subtests.test(name):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
            async with serve_packets(head + body) as url:
                error, _ = await request_failure(adapter, make_target(url))
            assert error.reason == "broken"


async def test_a_stream_instead_of_a_whole_answer_is_broken(
    adapter: OpenAIAdapter,
) -> None:
    async with serve_packets(SSE, encode_delta(content="Hi"), STOP, DONE) as url:
        error, _ = await request_failure(adapter, make_target(url), is_streamed=False)
    assert error.reason == "broken"


async def test_endless_nesting_is_broken(adapter: OpenAIAdapter, subtests: pytest.Subtests) -> None:
    cases: dict[str, bytes] = {
        "whole": JSON + b'{"error": ' + DEEP,
        "stream": SSE + b'data: {"error": ' + DEEP + b"\n\n",
        "where it is skipped": JSON + b'{"unknown": ' + DEEP,
    }
    for name, body in cases.items():
        with subtests.test(name):
            async with serve_packets(body) as url:
                error, _ = await request_failure(adapter, make_target(url))
            assert error.reason == "broken"


async def test_a_refusal_of_endless_nesting_is_still_a_refusal(adapter: OpenAIAdapter) -> None:
    head = b"HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n"
    async with serve_packets(head + DEEP) as url:
        error, _ = await request_failure(adapter, make_target(url))
    assert error.message == "scripted/one: the provider answered 400"


async def test_implausible_usage_is_limited(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, int]] = [
        {"prompt_tokens": -100, "completion_tokens": 5},
        {"prompt_tokens": 10**30},
    ]
    for usage in cases:
        with subtests.test(usage=usage):
            async with serve_packets(
                SSE, encode_delta(content="Hi"), STOP, encode_event(usage=usage), DONE
            ) as url:
                parts = await request_parts(adapter, make_target(url))
            (tokens,) = [part for part in parts if isinstance(part, UsedTokens)]
            assert 0 <= tokens.prompt_tokens < 2**31
            assert 0 <= tokens.completion_tokens < 2**31


# Size limits


async def test_an_endless_answer_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: dict[str, tuple[bytes, bytes]] = {
        "texts": (SSE, encode_delta(content="x" * 250_000)),
        "arguments of a call": (
            SSE,
            encode_delta(tool_calls=[{"index": 0, "function": {"arguments": "x" * 250_000}}]),
        ),
        "comments": (SSE, (b":" + b"x" * 99 + b"\n") * 10_000),
        "a whole answer": (JSON, b" " * MIB),
        "a refusal": (b"HTTP/1.1 400 Bad\r\n\r\n", b" " * MIB),
    }
    for name, (head, packet) in cases.items():
        with subtests.test(name):
            async with serve_endlessly(head, packet) as (url, sent_bytes):
                error, _ = await request_failure(adapter, make_target(url))
            assert error.reason == "broken"
            assert error.message == "scripted/one: the answer is too long"
            # 32 MiB, and the bytes in transit.
            assert sent_bytes[0] < 40 * MIB


async def test_a_long_answer_is_read_to_its_end(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed):
            models.script("long", Reply(texts=["x" * 1000] * 500, calls=[("f", "y" * 400_000)]))
            parts = await request_parts(
                adapter, make_target(models.url, "scripted/long"), is_streamed=is_streamed
            )
            assert len(text_of(parts)) == 500_000
            assert len(calls_of(parts)[0].arguments) == 400_000


async def test_an_answer_that_decompresses_to_too_much_is_broken(adapter: OpenAIAdapter) -> None:
    compressed = gzip.compress(bytes(64 * MIB), compresslevel=1)
    async with serve_packets(JSON[:-2] + b"Content-Encoding: gzip\r\n\r\n", compressed) as url:
        error, _ = await request_failure(adapter, make_target(url))
    assert error.reason == "broken"


async def test_the_cost_of_an_endless_line_is_linear(adapter: OpenAIAdapter) -> None:
    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE + b"data: ")
        for _ in range(4096):
            writer.write(b"x" * 1024)
            await writer.drain()
            await asyncio.sleep(0)

    started = time.process_time()
    async with serve_connections(handle) as url:
        error, _ = await request_failure(adapter, make_target(url))
    assert error.reason == "broken"
    # Copying the earlier packets at each packet would take several seconds.
    assert time.process_time() - started < 1.5


async def _measure_reading(adapter: OpenAIAdapter, **delta: Any) -> float:
    """Returns the CPU seconds for 60,000 events, 1,000 in a packet."""
    started = time.process_time()
    async with serve_packets(SSE, *[encode_delta(**delta) * 1000] * 60, STOP, DONE) as url:
        await request_parts(adapter, make_target(url))
    return time.process_time() - started


async def test_the_cost_of_fragmented_arguments_is_linear(adapter: OpenAIAdapter) -> None:
    fragment = {"index": 0, "function": {"arguments": "x" * 16}}
    texts = await _measure_reading(adapter, content="x" * 16)
    assert await _measure_reading(adapter, tool_calls=[fragment]) < 3 * texts


# Blocked addresses


async def test_a_private_address_is_refused() -> None:
    adapter = OpenAIAdapter(Egress(Guard(())))
    error, _ = await request_failure(adapter, make_target("http://127.0.0.1:9/v1"))
    await adapter.close()
    assert error.reason == "refused"
    assert error.message.startswith("scripted/one: 127.0.0.1 is not a public address; ")
    assert "PARLEY_EGRESS_ALLOW" in error.message


async def test_a_host_with_a_private_address_is_refused() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    adapter = OpenAIAdapter(Egress(Guard((), resolve)))
    error, _ = await request_failure(adapter, make_target("https://models.example.com/v1"))
    await adapter.close()
    assert error.reason == "refused"
    assert "models.example.com leads to a private address" in error.message


async def test_an_unknown_host_is_unreachable() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        raise OSError("no such name")

    adapter = OpenAIAdapter(Egress(Guard((), resolve)))
    error, _ = await request_failure(adapter, make_target("https://models.example.com/v1"))
    await adapter.close()
    assert error.reason == "unreachable"


async def test_too_many_tool_calls_are_a_broken_answer(adapter: OpenAIAdapter) -> None:
    calls = [{"index": number, "id": f"c{number}"} for number in range(MAX_TOOL_CALLS + 1)]
    async with serve_packets(SSE + encode_delta(tool_calls=calls) + STOP + DONE) as url:
        error, before = await request_failure(adapter, make_target(url))
    assert (error.reason, before) == ("broken", [])
