"""The local model: its address, its key and its place in the list."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from redis.asyncio import Redis

from app.domain.agents.llm import gateway, service
from app.domain.agents.llm.errors import ModelNotConfigured
from app.domain.agents.llm.gateway import LOCAL_MODEL, Models
from app.domain.agents.llm.protocol import Target, Text
from app.kit.errors import Unavailable
from app.net.egress import Guard
from app.observe import heartbeat
from app.observe.heartbeat import Beat
from app.services import Services
from tests.agents.llm.answers import KEY, read_parts
from tests.agents.llm.local_model import announce_local_model
from tests.model_server import ModelServer, Reply


@pytest.fixture
async def local_gateway(services: Services, _short_retries: None) -> AsyncIterator[Models]:
    created = Models(Guard(()), services.redis, has_local=True)
    yield created
    await created.close()


async def test_the_local_model_is_called_without_a_key(
    local_gateway: Models, models: ModelServer, services: Services
) -> None:
    models.script(LOCAL_MODEL, Reply(texts=["Local"]))
    async with announce_local_model(services, models.url):
        assert (await read_parts(local_gateway, Target(LOCAL_MODEL, "local")))[0] == Text("Local")
    assert models.requests[-1]["model"] == LOCAL_MODEL
    assert "Authorization" not in models.headers[-1]


async def test_a_key_is_never_sent_to_the_local_model(
    local_gateway: Models, models: ModelServer, services: Services
) -> None:
    async with announce_local_model(services, models.url):
        await read_parts(
            local_gateway, Target(LOCAL_MODEL, "local", KEY, "https://evil.example.com")
        )
    assert "Authorization" not in models.headers[-1]


async def test_the_local_model_of_this_machine_is_preferred(
    local_gateway: Models, models: ModelServer, services: Services
) -> None:
    async with (
        announce_local_model(services, "http://127.0.0.1:9/v1", "aaa-elsewhere:1"),
        announce_local_model(services, models.url),
        announce_local_model(services, "http://127.0.0.1:9/v1", "zzz-elsewhere:1"),
    ):
        assert await local_gateway.local_address() == models.url


async def test_a_local_model_that_still_starts_is_unavailable_for_a_moment(
    local_gateway: Models,
) -> None:
    target = Target(LOCAL_MODEL, "local")
    with pytest.raises(Unavailable) as caught:
        await local_gateway.check(target)
    assert caught.value.headers == {"Retry-After": "3"}
    assert not await local_gateway.is_ready(target)


async def test_only_one_local_model_is_served(local_gateway: Models) -> None:
    with pytest.raises(ModelNotConfigured):
        await local_gateway.check(Target("local/gpt-4o", "local"))


async def test_a_local_model_that_is_switched_off_is_not_configured(
    model_gateway: Models, models: ModelServer, services: Services
) -> None:
    async with announce_local_model(services, models.url):
        with pytest.raises(ModelNotConfigured):
            await model_gateway.check(Target(LOCAL_MODEL, "local"))


async def test_the_local_model_is_listed_while_it_runs(
    local_gateway: Models, models: ModelServer, services: Services
) -> None:
    async with announce_local_model(services, models.url):
        (view,) = await service.list_usable(local_gateway, [])
    assert msgspec.to_builtins(view) == {
        "id": "local/smollm2",
        "provider": "local",
        "context_window": 4096,
        "input_cost_per_million": 0.0,
        "output_cost_per_million": 0.0,
        "takes_images": False,
    }


async def test_a_local_model_that_does_not_run_is_not_listed(local_gateway: Models) -> None:
    assert await service.list_usable(local_gateway, []) == []


async def test_a_local_model_is_not_forgotten_when_redis_forgets_it(
    local_gateway: Models, models: ModelServer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_ADDRESS_SECONDS", 0.0)
    async with announce_local_model(services, models.url):
        assert await local_gateway.local_address() == models.url
    assert await local_gateway.local_address() == models.url
    monkeypatch.setattr(gateway, "_EXPIRY_SECONDS", 0.0)
    assert await local_gateway.local_address() is None


async def test_a_local_model_that_is_switched_off_is_not_listed(
    model_gateway: Models, models: ModelServer, services: Services
) -> None:
    async with announce_local_model(services, models.url):
        assert await service.list_usable(model_gateway, []) == []


async def test_concurrent_calls_share_one_lookup_of_the_local_model(
    local_gateway: Models, models: ModelServer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, lookups = heartbeat.read, list[object]()

    async def count(redis: Redis) -> list[Beat]:
        lookups.append(redis)
        return await read(redis)

    monkeypatch.setattr(heartbeat, "read", count)
    async with announce_local_model(services, models.url):
        addresses = await asyncio.gather(*(local_gateway.local_address() for _ in range(50)))
    assert (set(addresses), len(lookups)) == ({models.url}, 1)


async def test_a_cancelled_caller_does_not_cancel_the_lookup_of_others(
    local_gateway: Models, models: ModelServer, services: Services
) -> None:
    async with announce_local_model(services, models.url):
        first = asyncio.create_task(local_gateway.local_address())
        second = asyncio.create_task(local_gateway.local_address())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == models.url
