"""Keys of search engines, which are stored beside those of model providers."""

from typing import Any

import pytest

from app.domain.agents.llm.keys import load_search_key
from app.services import Services
from tests.agents.llm.provider_keys import (
    MODELS,
    PATH,
    SECRET,
    create_key,
    invalid_fields,
    key_body,
    list_keys,
)
from tests.assertions import refused
from tests.database import run_sql
from tests.model_server import ModelServer
from tests.world import Client, World

ENGINES = ["brave", "tavily"]


async def _load(services: Services, tenant_id: str, provider: str) -> str | None:
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        return await load_search_key(tx, services.keyring, tenant_id, provider)


async def test_a_search_engine_needs_no_address(admin: Client, services: Services) -> None:
    for provider in ENGINES:
        assert (await create_key(admin, provider=provider))["provider"] == provider
        assert await _load(services, admin.tenant_id, provider) == SECRET


async def test_a_search_engine_takes_no_address(admin: Client, models: ModelServer) -> None:
    for provider in ENGINES:
        answer = await admin.post(PATH, key_body(provider=provider, base_url=models.url))
        assert invalid_fields(answer) == {"base_url"}
    assert await list_keys(admin) == []


async def test_the_default_key_of_a_search_engine_is_used(
    admin: Client, services: Services
) -> None:
    await create_key(admin, provider="brave", api_key="first")
    await create_key(admin, provider="brave", api_key="second")
    assert await _load(services, admin.tenant_id, "brave") == "first"
    await create_key(admin, provider="brave", api_key="third", is_default=True)
    assert await _load(services, admin.tenant_id, "brave") == "third"


async def test_a_key_is_used_for_its_own_tenant_and_engine_only(
    admin: Client, world: World, services: Services
) -> None:
    await create_key(admin, provider="brave")
    assert await _load(services, admin.tenant_id, "tavily") is None
    assert await _load(services, await world.tenant(), "brave") is None


async def test_a_key_of_another_service_with_the_engines_name_is_not_sent_to_the_engine(
    admin: Client, services: Services
) -> None:
    """Such keys could be stored before the engines were known."""
    key = await create_key(admin, provider="brave")
    sql = "UPDATE provider_keys SET base_url = 'https://models.example.com' WHERE id = $1"
    await run_sql(services, sql, key["id"])
    assert await _load(services, admin.tenant_id, "brave") is None


async def test_search_engines_serve_no_models(admin: Client) -> None:
    for provider in ENGINES:
        await create_key(admin, provider=provider)
    assert (await admin.get(MODELS)).json() == {"data": []}


async def test_an_agent_cannot_use_a_search_engine_as_its_model(
    world: World, subtests: pytest.Subtests
) -> None:
    for provider in ENGINES:
        admin = await world.user("tenant_admin")
        with subtests.test(provider=provider):
            await create_key(admin, provider=provider)
            body = {"name": "A", "primary_model": f"{provider}/model", "system_prompt": "x"}
            agent: dict[str, Any] = (await admin.post("/api/v1/agents", body)).json()
            answer = await admin.post(f"/api/v1/agents/{agent['id']}/chat", {"message": "Hi"})
            refused(answer, 409, "model_not_configured")
