"""Embeddings and model lists of the OpenAI adapter."""

import asyncio
import json
from typing import Any

import pytest

from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import Target
from tests.agents.llm.openai_provider import (
    JSON,
    MIB,
    make_target,
    serve_connections,
    serve_endlessly,
    serve_packets,
)
from tests.model_server import ModelServer


async def _embed(adapter: OpenAIAdapter, *vectors: Any, texts: int = 2) -> list[list[float]]:
    body = json.dumps({"data": vectors}).encode()
    async with serve_packets(JSON, body) as url:
        return (await adapter.embed(make_target(url), ["text"] * texts)).vectors


# Embeddings


async def test_embeddings_come_in_the_order_of_their_texts(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    embeddings = await adapter.embed(make_target(models.url), ["a", "bbb", "cc"])
    assert embeddings.vectors == [[1.0, 1.0], [3.0, 1.0], [2.0, 1.0]]
    assert embeddings.prompt_tokens == 3


async def test_embeddings_without_usage_are_taken(adapter: OpenAIAdapter) -> None:
    vectors = [{"index": 0, "embedding": [1, 2.5]}, {"index": 1, "embedding": [0, 0]}]
    assert await _embed(adapter, *vectors) == [[1.0, 2.5], [0.0, 0.0]]


async def test_embeddings_that_do_not_fit_their_texts_are_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: dict[str, list[int]] = {
        "one too few": [0],
        "none": [],
        "one too many": [0, 1, 2],
        "one twice": [1, 1],
        "the wrong ones": [1, 2],
    }
    for name, indexes in cases.items():
        with subtests.test(name):
            with pytest.raises(ModelFailed) as caught:
                await _embed(adapter, *({"index": index, "embedding": [1]} for index in indexes))
            assert caught.value.reason == "broken"


async def test_embeddings_of_another_form_are_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [{"embedding": [1]}, {"index": 0}, {"index": 0, "embedding": 1}]
    for vector in cases:
        with subtests.test(vector=vector):
            with pytest.raises(ModelFailed) as caught:
                await _embed(adapter, vector, texts=1)
            assert caught.value.reason == "broken"


async def test_a_refusal_to_embed_is_a_failure(adapter: OpenAIAdapter) -> None:
    body = b'{"error": {"message": "too many"}}'
    head = f"HTTP/1.1 429 No\r\nRetry-After: 4\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with serve_packets(head + body) as url:
        with pytest.raises(ModelFailed) as caught:
            await adapter.embed(make_target(url), ["text"])
    assert (caught.value.reason, caught.value.retry_after) == ("rate_limited", 4.0)
    assert caught.value.message == "scripted/one: too many"


# Model lists


async def test_a_provider_lists_its_models(adapter: OpenAIAdapter, models: ModelServer) -> None:
    assert await adapter.list_models(make_target(models.url), 5) == ["one", "two"]


async def test_a_list_is_cut_at_a_thousand_models(adapter: OpenAIAdapter) -> None:
    body = json.dumps({"data": [{"id": str(number)} for number in range(1500)]}).encode()
    async with serve_packets(JSON, body) as url:
        names = await adapter.list_models(make_target(url), 5)
    assert names == [str(number) for number in range(1000)]


async def test_an_endless_list_is_broken(adapter: OpenAIAdapter) -> None:
    async with serve_endlessly(JSON, b" " * MIB) as (url, sent_bytes):
        with pytest.raises(ModelFailed):
            await adapter.list_models(make_target(url), 5)
    assert sent_bytes[0] < 40 * MIB


async def test_a_refused_list_has_the_provider_s_message(
    adapter: OpenAIAdapter, models: ModelServer
) -> None:
    target = Target("scripted", "scripted", "wrong", models.url)
    with pytest.raises(ModelFailed) as caught:
        await adapter.list_models(target, 5)
    assert caught.value.reason == "refused"
    assert caught.value.message == "scripted: no such key"


async def test_a_list_of_another_form_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for body in (b"{}", b'{"data": {}}', b'{"data": [5]}', b'{"data": [{}]}', b""):
        with subtests.test(body=body):
            async with serve_packets(JSON, body) as url:
                with pytest.raises(ModelFailed) as caught:
                    await adapter.list_models(make_target(url), 5)
            assert caught.value.reason == "broken"


async def test_a_list_that_does_not_come_times_out(adapter: OpenAIAdapter) -> None:
    async def handle(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serve_connections(handle) as url:
        with pytest.raises(ModelFailed) as caught:
            await adapter.list_models(make_target(url), 0.1)
    assert caught.value.reason == "timeout"
