"""Embeddings of the embedded model, with a stock OpenAI client."""

import base64
import struct
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from app.domain.agents.usage import service as usage
from app.domain.conversations.openai.embeddings import MAX_CHARS, MAX_TOTAL_CHARS
from app.services import Services
from tests.agents.usage.rows import get_usage
from tests.assertions import refused
from tests.conversations.openai.completions import with_key
from tests.scripted_agents import Talker
from tests.world import Client

PATH = "/v1/embeddings"
MODEL = "local/wordllama"
TEXTS = ["The cat sleeps on the sofa.", "A kitten naps on the couch.", "Taxes are due in April."]


def _similarity(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_texts_become_vectors_of_length_one_in_their_order(client: AsyncOpenAI) -> None:
    answer = await client.embeddings.create(model=MODEL, input=TEXTS)
    assert (answer.object, answer.model) == ("list", MODEL)
    assert [(item.object, item.index) for item in answer.data] == [
        ("embedding", number) for number in range(3)
    ]
    vectors = [item.embedding for item in answer.data]
    for vector in vectors:
        assert len(vector) == 256
        assert _similarity(vector, vector) == pytest.approx(1.0, abs=1e-4)
    assert _similarity(vectors[0], vectors[1]) > _similarity(vectors[0], vectors[2]) + 0.2
    assert answer.usage.prompt_tokens == answer.usage.total_tokens
    assert 15 < answer.usage.prompt_tokens < 40


async def test_floats_and_base64_are_the_same_numbers(talk: Talker, client: AsyncOpenAI) -> None:
    (usual,) = (await client.embeddings.create(model=MODEL, input=TEXTS[0])).data
    floats = await client.embeddings.create(
        model=MODEL, input=TEXTS[0], encoding_format="float", dimensions=256
    )
    assert floats.data[0].embedding == pytest.approx(usual.embedding, abs=1e-7)
    plain = await talk.client.post(PATH, {"model": MODEL, "input": TEXTS[:1]})
    assert plain.headers["content-type"] == "application/json"
    assert plain.json()["data"][0]["embedding"] == floats.data[0].embedding
    body = {"model": MODEL, "input": TEXTS[:1], "encoding_format": "base64", "user": "ada"}
    encoded = (await talk.client.post(PATH, body)).json()["data"][0]["embedding"]
    numbers = struct.unpack("<256f", base64.b64decode(encoded))
    assert list(numbers) == floats.data[0].embedding


async def test_the_model_needs_no_provider_in_its_name(client: AsyncOpenAI) -> None:
    answer = await client.embeddings.create(model="wordllama", input="Hello")
    assert answer.model == MODEL


async def test_another_model_is_not_found(client: AsyncOpenAI, subtests: pytest.Subtests) -> None:
    for name in ("text-embedding-3-small", "openai/text-embedding-3-small", "local/smollm2", ""):
        with subtests.test(name=name):
            with pytest.raises(openai.NotFoundError) as refusal:
                await client.embeddings.create(model=name, input="Hello")
            assert (refusal.value.code, refusal.value.type) == (
                "model_not_found",
                "not_found_error",
            )
            assert MODEL in refusal.value.message


async def test_the_longest_input_is_embedded(talk: Talker) -> None:
    texts = ["word " * 117] * 2048
    body = {"model": MODEL, "input": texts, "encoding_format": "base64"}
    answer = (await talk.client.post(PATH, body)).json()
    assert [item["index"] for item in answer["data"]] == list(range(2048))
    assert len({item["embedding"] for item in answer["data"]}) == 1
    long = await talk.client.post(PATH, {"model": MODEL, "input": "word " * (MAX_CHARS // 5)})
    vector, short = long.json()["data"][0]["embedding"], answer["data"][0]["embedding"]
    assert vector == pytest.approx(struct.unpack("<256f", base64.b64decode(short)), abs=0.02)


async def test_wrong_bodies_are_refused(talk: Talker) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"input": []}, "input"),
        ({"input": ""}, "input.0"),
        ({"input": ["a", ""]}, "input.1"),
        ({"input": [1, 2]}, "input"),
        ({"input": [[1, 2], [3]]}, "input"),
        ({"input": ["a", 1]}, "input"),
        ({"input": [[1], "a"]}, "input"),
        ({"input": None}, "input"),
        ({"input": {}}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "a" * (MAX_CHARS + 1)}, "input.0"),
        ({"input": ["a" * MAX_CHARS] * (MAX_TOTAL_CHARS // MAX_CHARS + 1)}, "input"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"dimensions": 512}, "dimensions"),
        ({"dimensions": 0}, "dimensions"),
        ({"user": 1}, "user"),
    )
    for change, field in cases:
        answer = await talk.client.post(PATH, {"model": MODEL, "input": "Hello", **change})
        error = refused(answer, 422, "validation_error")
        assert list(error["details"]) == [field], change
        assert error["param"] == field
        assert error["type"] == "invalid_request_error"
    tokens = await talk.client.post(PATH, {"model": MODEL, "input": [1, 2]})
    assert "takes no tokens" in tokens.json()["error"]["message"]


async def test_only_callers_with_the_permission_embed(
    base_client: AsyncOpenAI, talk: Talker, visitor: AsyncOpenAI, anonymous: Client
) -> None:
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    with pytest.raises(openai.PermissionDeniedError):
        await with_key(base_client, viewer.token).embeddings.create(model=MODEL, input="Hello")
    with pytest.raises(openai.AuthenticationError):
        await visitor.embeddings.create(model=MODEL, input="Hello")
    answer = await anonymous.post(PATH, {"model": MODEL, "input": "Hello"})
    refused(answer, 401, "unauthorized")


async def test_tokens_count_for_the_tenant_alone(
    talk: Talker, client: AsyncOpenAI, services: Services
) -> None:
    tokens = (await client.embeddings.create(model=MODEL, input=TEXTS)).usage.total_tokens
    stranger = await talk.world.user("tenant_admin")
    await stranger.post(PATH, {"model": MODEL, "input": "Hello"})
    for is_rolled in (False, True):
        if is_rolled:
            await usage.roll_up(services)
        for period in ("24h", "30d"):
            report = await get_usage(talk.client, period=period)
            assert report["totals"]["prompt_tokens"] == tokens
            assert report["by_agent"] == []
            (row,) = report["by_model"]
            assert (row["model"], row["total_tokens"]) == (MODEL, tokens)
            assert row["cost_usd"] == 0.0
