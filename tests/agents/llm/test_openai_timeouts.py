"""Timeouts of the OpenAI adapter and of its egress."""

import asyncio
import time
from typing import Any

import pytest

from app.domain.agents.llm import openai_adapter
from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import Text
from app.net.egress import Egress, EgressTimeout, Guard
from tests.agents.llm.answers import STREAMED_AND_WHOLE, text_of
from tests.agents.llm.openai_provider import (
    SSE,
    encode_delta,
    make_target,
    request_failure,
    request_parts,
    serve_connections,
)
from tests.model_server import ModelServer, Reply

# Timeouts of an answer


async def test_a_provider_that_does_not_answer_times_out(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for is_streamed in STREAMED_AND_WHOLE:
        with subtests.test(is_streamed=is_streamed), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(
                openai_adapter, "IDLE_SECONDS" if is_streamed else "TOTAL_SECONDS", 0.1
            )
            hold = asyncio.Event()
            models.script("silent", Reply(hold=hold))
            error, _ = await request_failure(
                adapter, make_target(models.url, "scripted/silent"), is_streamed=is_streamed
            )
            hold.set()
            assert error.reason == "timeout"
            limits = "600 s, or 0.1 s of silence" if is_streamed else "0.1 s"
            assert error.message == f"scripted/silent: no answer within {limits}"


async def test_a_provider_that_falls_silent_times_out(
    adapter: OpenAIAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_adapter, "IDLE_SECONDS", 0.1)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE + encode_delta(content="One sec"))
        await writer.drain()
        await reader.read()

    async with serve_connections(handle) as url:
        error, before = await request_failure(adapter, make_target(url))
    assert error.reason == "timeout"
    assert before == [Text("One sec")]


async def test_a_slow_stream_does_not_time_out(
    adapter: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_adapter, "IDLE_SECONDS", 0.8)
    models.script("slow", Reply(texts=["."] * 12, delay=0.08))
    assert (
        text_of(await request_parts(adapter, make_target(models.url, "scripted/slow"))) == "." * 12
    )


async def test_a_whole_answer_has_no_idle_timeout(
    adapter: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_adapter, "IDLE_SECONDS", 0.1)
    models.script("thinking", Reply(first_delay=0.4))
    target = make_target(models.url, "scripted/thinking")
    assert text_of(await request_parts(adapter, target, is_streamed=False)) == "Hello there"


async def test_a_steady_stream_ends_at_the_total_timeout(
    adapter: OpenAIAdapter, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_adapter, "TOTAL_SECONDS", 0.3)
    models.script("endless", Reply(texts=["."] * 1000, delay=0.01))
    error, before = await request_failure(adapter, make_target(models.url, "scripted/endless"))
    assert error.reason == "timeout"
    assert before
    assert "0.3 s" in error.message


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(SSE)
    while not reader.at_eof():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _read_until_timeout(egress: Egress, url: str, **seconds: Any) -> tuple[str, float]:
    """Returns the message of the timeout and the seconds until it."""
    started = time.monotonic()
    with pytest.raises(EgressTimeout) as caught:
        async with egress.open("GET", url, **seconds) as response:
            await response.read()
    return str(caught.value), time.monotonic() - started


# Egress: `idle_seconds` limits a pause, `timeout_seconds` the whole response


async def test_idle_seconds_limit_the_pause_between_packets() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE)
        for _ in range(40):
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.02)
        await reader.read()

    egress = Egress(Guard(("127.0.0.1",)))
    async with serve_connections(handle) as url:
        message, seconds = await _read_until_timeout(
            egress, url, timeout_seconds=10, idle_seconds=0.5
        )
    await egress.close()
    assert message == "no answer within 10 s, or 0.5 s of silence"
    assert 1.2 < seconds < 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"idle_seconds": 0.3}, "0.4 s, or 0.3 s of silence", id="with idle_seconds"),
        pytest.param({}, "0.4 s", id="without idle_seconds"),
    ],
)
async def test_timeout_seconds_limit_a_response_without_pauses(
    options: dict[str, float], message: str
) -> None:
    egress = Egress(Guard(("127.0.0.1",)))
    async with serve_connections(_drip) as url:
        error, seconds = await _read_until_timeout(egress, url, timeout_seconds=0.4, **options)
    await egress.close()
    assert error == f"no answer within {message}"
    assert 0.35 < seconds < 5
