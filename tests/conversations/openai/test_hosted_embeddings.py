"""Embeddings of a provider's model, with the tenant's key."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from litestar import Litestar
from openai import AsyncOpenAI

from app.domain.agents.llm import prices
from tests.assertions import refused
from tests.conversations.openai.completions import code_of, with_key
from tests.conversations.openai.hosted import FAILURES, open_client, read_usage
from tests.conversations.speech.hosted import serve_hosted
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import give_key
from tests.stores import Stores
from tests.world import Client, World

NAME = "vectors-1"
MODEL = f"hearing/{NAME}"
PATH = "/v1/embeddings"


@pytest.fixture(scope="module")
async def hosted_world(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    del app
    async with serve_hosted(stores, "ear", "mouth", MODEL) as world:
        yield world


@pytest.fixture
async def owner(hosted_world: World, models: ModelServer) -> Client:
    """A user whose tenant has a key of the provider."""
    owner = await hosted_world.user("tenant_admin")
    await give_key(owner, models, "hearing")
    models.script(NAME, Reply())
    models.requests.clear()
    return owner


@pytest.fixture
async def hosted(hosted_world: World, owner: Client) -> AsyncIterator[AsyncOpenAI]:
    async with open_client(hosted_world) as client:
        yield with_key(client, owner.token)


async def test_the_provider_embeds_with_the_tenants_key(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    answer = await hosted.embeddings.create(model=NAME, input=["Hello", "ab"])
    assert answer.model == MODEL
    assert [item.embedding for item in answer.data] == [
        pytest.approx([0.98058, 0.19612], abs=1e-4),
        pytest.approx([0.89443, 0.44721], abs=1e-4),
    ]
    assert answer.usage.total_tokens == 2
    assert models.asked(NAME) == [{"model": NAME, "input": ["Hello", "ab"]}]


async def test_tokens_and_dimensions_are_passed_on(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    answer = await hosted.embeddings.create(model=MODEL, input=[[1, 2, 3], [4]], dimensions=3)
    assert [len(item.embedding) for item in answer.data] == [3, 3]
    await hosted.embeddings.create(model=MODEL, input=[5, 6])
    assert models.asked(NAME) == [
        {"model": NAME, "input": [[1, 2, 3], [4]], "dimensions": 3},
        {"model": NAME, "input": [[5, 6]]},
    ]


async def test_dimensions_that_the_model_ignores_are_refused(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    raw = b'{"data": [{"index": 0, "embedding": [1, 2]}]}'
    models.script(NAME, Reply(raw=raw))
    with pytest.raises(openai.UnprocessableEntityError) as refusal:
        await hosted.embeddings.create(model=MODEL, input="Hello", dimensions=3)
    assert refusal.value.param == "dimensions"


async def test_a_failure_is_one_call_and_says_what_the_provider_said(
    hosted: AsyncOpenAI, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for status, ours, code in FAILURES:
        with subtests.test(status=status):
            models.requests.clear()
            headers = {"Retry-After": "7"} if status == 429 else {}
            models.script(NAME, Reply(status=status, message="no", headers=headers))
            with pytest.raises(openai.APIStatusError) as failure:
                await hosted.embeddings.create(model=MODEL, input=["Hello"] * 200)
            assert (failure.value.status_code, code_of(failure.value)) == (ours, code)
            assert len(models.asked(NAME)) == 1
            answered = failure.value.response.headers
            if status == 429:
                assert answered["retry-after"] == "7"
            elif status < 500:
                assert answered["x-should-retry"] == "false"


async def test_calls_before_a_failure_count(
    hosted: AsyncOpenAI,
    owner: Client,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    price = prices.Price(input_cost_per_token=0.01)
    monkeypatch.setattr(prices, "find", lambda _prices, _model: price)
    models.script(NAME, Reply(), Reply(status=500))
    with pytest.raises(openai.InternalServerError):
        await hosted.embeddings.create(model=MODEL, input=["Hello"] * 200)
    assert len(models.asked(NAME)) == 2
    sums = await read_usage(owner, MODEL)
    assert sums is not None
    assert (sums["prompt_tokens"], sums["cost_usd"]) == (64, 0.64)


async def test_without_a_key_the_request_is_not_repeated(
    hosted_world: World, models: ModelServer
) -> None:
    models.requests.clear()
    stranger = await hosted_world.user("tenant_admin")
    async with open_client(hosted_world) as client:
        repeating = with_key(client, stranger.token).with_options(max_retries=2)
        with pytest.raises(openai.ConflictError) as refusal:
            await repeating.embeddings.create(model=MODEL, input="Hello")
    assert code_of(refusal.value) == "model_not_configured"
    assert refusal.value.response.headers["x-should-retry"] == "false"
    assert models.asked(NAME) == []


async def test_parameters_that_a_provider_lacks_are_refused(app: Litestar, stores: Stores) -> None:
    del app
    async with serve_hosted(stores, "ear", "mouth", "cohere/embed-v4.0") as world:
        owner = await world.user("tenant_admin")
        key = {"provider": "cohere", "name": "Cohere", "api_key": "key-0123456789"}
        assert (await owner.post("/api/v1/api-keys", key)).status_code == 201
        cases: list[tuple[dict[str, Any], str]] = [
            ({"input": [1, 2]}, "input"),
            ({"input": "Hello", "dimensions": 256}, "dimensions"),
        ]
        for fields, field in cases:
            answer = await owner.post(PATH, {"model": "cohere/embed-v4.0", **fields})
            error = refused(answer, 422, "validation_error")
            assert error["param"] == field
            assert "cohere" in error["message"]
