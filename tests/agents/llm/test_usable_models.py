"""GET /api/v1/models: the models that a tenant can use."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from app.domain.agents.llm import service
from tests.agents.llm.provider_keys import MODELS, PATH, create_key, find_default, serve_provider
from tests.model_server import ModelServer
from tests.ports import free_port
from tests.world import Client

MODEL_FIELDS = {
    "id",
    "provider",
    "context_window",
    "input_cost_per_million",
    "output_cost_per_million",
    "takes_images",
}


async def list_models(caller: Client) -> list[dict[str, Any]]:
    answer = await caller.get(MODELS)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    models: list[dict[str, Any]] = answer.json()["data"]
    return models


@asynccontextmanager
async def _serve_models(*names: str) -> AsyncIterator[str]:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in names]})

    async with serve_provider(answer) as url:
        yield url


async def test_without_a_key_nothing_is_usable(admin: Client) -> None:
    assert await list_models(admin) == []


async def test_a_hosted_provider_s_models_are_those_of_the_table(admin: Client) -> None:
    await create_key(admin, provider="anthropic")
    models = await list_models(admin)
    names = [model["id"] for model in models]
    assert names == sorted(names)
    assert all(set(model) == MODEL_FIELDS for model in models)
    assert {model["provider"] for model in models} == {"anthropic"}
    (sonnet,) = [model for model in models if model["id"] == "anthropic/claude-sonnet-4-5"]
    assert sonnet == {
        "id": "anthropic/claude-sonnet-4-5",
        "provider": "anthropic",
        "context_window": 200_000,
        "input_cost_per_million": 3.0,
        "output_cost_per_million": 15.0,
        "takes_images": True,
    }


async def test_an_address_s_models_are_those_it_lists(admin: Client, models: ModelServer) -> None:
    await create_key(admin, provider="scripted", base_url=models.url)
    unknown = {
        "context_window": None,
        "input_cost_per_million": None,
        "output_cost_per_million": None,
        "takes_images": None,
    }
    assert await list_models(admin) == [
        {"id": "scripted/one", "provider": "scripted", **unknown},
        {"id": "scripted/two", "provider": "scripted", **unknown},
    ]


async def test_a_listed_model_can_be_chatted_with(admin: Client, models: ModelServer) -> None:
    await create_key(admin, provider="scripted", base_url=models.url)
    model = (await list_models(admin))[0]["id"]
    agent = await admin.post(
        "/api/v1/agents", {"name": "A", "primary_model": model, "system_prompt": "x"}
    )
    path = f"/api/v1/agents/{agent.json()['id']}"
    assert (await admin.post(f"{path}/chat", {"message": "Hello"})).status_code == 200


async def test_only_the_default_key_of_a_provider_lists_models(
    admin: Client, models: ModelServer
) -> None:
    async with _serve_models("other") as url:
        await create_key(admin, provider="scripted", base_url=models.url)
        second = await create_key(admin, provider="scripted", base_url=url)
        assert [m["id"] for m in await list_models(admin)] == ["scripted/one", "scripted/two"]
        first = await find_default(admin, "scripted")
        await admin.delete(f"{PATH}/{first}")
        assert await find_default(admin, "scripted") == second["id"]
        assert [m["id"] for m in await list_models(admin)] == ["scripted/other"]


async def test_several_providers_are_listed_one_after_another(
    admin: Client, models: ModelServer
) -> None:
    await create_key(admin, provider="zeta", base_url=models.url)
    await create_key(admin, provider="alpha", base_url=models.url)
    assert [model["id"] for model in await list_models(admin)] == [
        "alpha/one",
        "alpha/two",
        "zeta/one",
        "zeta/two",
    ]


async def test_a_provider_that_fails_does_not_hide_the_others(
    admin: Client, models: ModelServer
) -> None:
    closed_url = f"http://127.0.0.1:{free_port()}/v1"
    await create_key(admin, provider="away", base_url=closed_url)
    await create_key(admin, provider="refusing", api_key="wrong", base_url=models.url)
    await create_key(admin, provider="scripted", base_url=models.url)
    assert [model["id"] for model in await list_models(admin)] == ["scripted/one", "scripted/two"]


async def test_a_silent_provider_does_not_hold_up_the_list(
    admin: Client, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_LIST_SECONDS", 0.2)
    released = asyncio.Event()

    async def answer(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with serve_provider(answer) as url:
        for name in ("silent-a", "silent-b", "silent-c"):
            await create_key(admin, provider=name, base_url=url)
        await create_key(admin, provider="scripted", base_url=models.url)
        started = time.monotonic()
        listed_models = await list_models(admin)
        released.set()
    assert [model["id"] for model in listed_models] == ["scripted/one", "scripted/two"]
    assert time.monotonic() - started < 3


async def test_a_price_is_known_by_the_rest_of_the_name(admin: Client) -> None:
    async with _serve_models("gpt-4o") as url:
        await create_key(admin, provider="openai", base_url=url)
        (model,) = await list_models(admin)
    assert model == {
        "id": "openai/gpt-4o",
        "provider": "openai",
        "context_window": 128_000,
        "input_cost_per_million": 2.5,
        "output_cost_per_million": 10.0,
        "takes_images": True,
    }


async def test_an_invalid_model_name_is_not_listed(admin: Client) -> None:
    async with _serve_models("good", "has a blank", "../files", "", "x" * 300, "a\nb", "é") as url:
        await create_key(admin, provider="scripted", base_url=url)
        assert [model["id"] for model in await list_models(admin)] == ["scripted/good"]


async def test_a_provider_of_endless_nesting_does_not_hide_the_others(
    admin: Client, models: ModelServer
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=b'{"data": [], "x": ' + b"[" * 100_000)

    async with serve_provider(answer) as url:
        await create_key(admin, provider="deep", base_url=url)
        await create_key(admin, provider="scripted", base_url=models.url)
        assert [model["id"] for model in await list_models(admin)] == [
            "scripted/one",
            "scripted/two",
        ]
