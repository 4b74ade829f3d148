"""The routes of the web search config."""

import asyncio
from typing import Any

import msgspec
import pytest

from app.domain.agents.search.engines.registry import SearchEngines
from app.main import create_app
from app.services import Services
from tests.agents.definition.api_calls import list_event_data
from tests.agents.search.configs import (
    DEFAULTS,
    NO_AGENT,
    add_search_key,
    create_agent,
    get_config,
    insert_foreign_config,
    search_path,
    set_config,
)
from tests.assertions import refused
from tests.database import fetch_rows
from tests.stores import Stores
from tests.world import Client, World


@pytest.fixture
async def agent_id(admin: Client) -> str:
    return await create_agent(admin)


async def _count_configs(services: Services, agent_id: str) -> int:
    sql = "SELECT 1 FROM web_search_configs WHERE agent_id = $1"
    return len(await fetch_rows(services, sql, agent_id))


async def test_a_new_agent_has_the_defaults(admin: Client, agent_id: str) -> None:
    assert await get_config(admin, agent_id) == DEFAULTS


_CHANGES: list[dict[str, Any]] = [
    {"enabled": True},
    {"search_engine": "searxng"},
    {"max_results": 1},
    {"max_results": 20},
    {"safe_search": False},
    {"enabled": True, "search_engine": "searxng", "max_results": 3, "safe_search": False},
    {},
]


async def test_fields_left_out_of_a_put_stay_unchanged(
    admin: Client, subtests: pytest.Subtests
) -> None:
    for change in _CHANGES:
        with subtests.test(change=change):
            agent_id = await create_agent(admin)
            assert await set_config(admin, agent_id, **change) == {**DEFAULTS, **change}
            assert await get_config(admin, agent_id) == {**DEFAULTS, **change}
            assert await set_config(admin, agent_id, max_results=9) == (
                {**DEFAULTS, **change, "max_results": 9}
            )


async def test_search_is_enabled_and_disabled_without_a_body(admin: Client, agent_id: str) -> None:
    await set_config(admin, agent_id, max_results=9)
    for action, enabled in (("enable", True), ("disable", False), ("enable", True)):
        answer = await admin.post(f"{search_path(agent_id)}/{action}")
        expected = {**DEFAULTS, "max_results": 9, "enabled": enabled}
        assert (answer.status_code, answer.json()) == (200, expected)
        assert await get_config(admin, agent_id) == expected


_INVALID_FIELDS: list[tuple[str, object]] = [
    ("enabled", None),
    ("enabled", "true"),
    ("enabled", 1),
    ("search_engine", None),
    ("search_engine", ""),
    ("search_engine", "google"),
    ("search_engine", "DuckDuckGo"),
    ("search_engine", 5),
    ("max_results", None),
    ("max_results", 0),
    ("max_results", 21),
    ("max_results", -1),
    ("max_results", 2.5),
    ("max_results", "5"),
    ("max_results", True),
    ("max_results", 10**30),
    ("safe_search", None),
    ("safe_search", "no"),
    ("safe_search", 0),
]


async def test_a_wrong_field_is_named_and_nothing_changes(
    admin: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for field, value in _INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            body = {"max_results": 7, "safe_search": False, field: value}
            answer = await admin.put(f"{search_path(agent_id)}/config", body)
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert await get_config(admin, agent_id) == DEFAULTS


# Events


async def test_each_change_emits_one_event(admin: Client, agent_id: str) -> None:
    await set_config(admin, agent_id, enabled=True, max_results=9)
    await admin.post(f"{search_path(agent_id)}/disable")
    events = await list_event_data(admin, "agent.updated")
    assert [data["changed"] for data in events] == [["web_search"]] * 2
    assert {(data["agent_id"], data["version"]) for data in events} == {(agent_id, 1)}


async def test_a_request_that_changes_nothing_stores_and_emits_nothing(
    admin: Client, agent_id: str, services: Services
) -> None:
    await admin.post(f"{search_path(agent_id)}/disable")
    await set_config(admin, agent_id)
    await set_config(admin, agent_id, **DEFAULTS)
    assert await _count_configs(services, agent_id) == 0
    assert await list_event_data(admin, "agent.updated") == []
    for _ in range(3):
        answer = await admin.post(f"{search_path(agent_id)}/enable")
        assert answer.json() == {**DEFAULTS, "enabled": True}
    assert len(await list_event_data(admin, "agent.updated")) == 1


async def test_requests_at_the_same_time_store_one_config(
    admin: Client, agent_id: str, services: Services
) -> None:
    answers = await asyncio.gather(
        *(admin.post(f"{search_path(agent_id)}/enable") for _ in range(5))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert await _count_configs(services, agent_id) == 1
    assert len(await list_event_data(admin, "agent.updated")) == 1


async def test_the_config_is_deleted_with_its_agent(
    admin: Client, agent_id: str, services: Services
) -> None:
    await set_config(admin, agent_id, enabled=True)
    assert (await admin.delete(f"/api/v1/agents/{agent_id}")).status_code == 204
    assert await _count_configs(services, agent_id) == 0
    refused(await admin.get(f"{search_path(agent_id)}/config"), 404, "agent_not_found")


# Engines that lack something


async def test_an_engine_without_a_key_cannot_be_enabled(
    admin: Client, subtests: pytest.Subtests
) -> None:
    for engine_name in ("brave", "tavily"):
        with subtests.test(engine_name=engine_name):
            agent_id = await create_agent(admin)
            path, code = search_path(agent_id), "search_engine_not_configured"
            body = {"enabled": True, "search_engine": engine_name}
            error = refused(await admin.put(f"{path}/config", body), 409, code)
            assert f"provider {engine_name}" in error["message"]
            assert "/api/v1/api-keys" in error["message"]
            assert await get_config(admin, agent_id) == DEFAULTS
            await set_config(admin, agent_id, search_engine=engine_name)
            refused(await admin.post(f"{path}/enable"), 409, code)
            assert await get_config(admin, agent_id) == {**DEFAULTS, "search_engine": engine_name}
            await add_search_key(admin, engine_name)
            assert (await admin.post(f"{path}/enable")).json()["enabled"] is True


async def test_an_enabled_search_cannot_change_to_an_engine_without_a_key(
    admin: Client, agent_id: str
) -> None:
    await set_config(admin, agent_id, enabled=True)
    answer = await admin.put(f"{search_path(agent_id)}/config", {"search_engine": "brave"})
    refused(answer, 409, "search_engine_not_configured")
    assert await get_config(admin, agent_id) == {**DEFAULTS, "enabled": True}


async def test_a_search_whose_key_was_deleted_can_only_be_disabled_or_moved(
    admin: Client, agent_id: str
) -> None:
    key_id = await add_search_key(admin, "brave")
    await set_config(admin, agent_id, enabled=True, search_engine="brave")
    assert (await admin.delete(f"/api/v1/api-keys/{key_id}")).status_code == 204
    path = search_path(agent_id)
    answer = await admin.put(f"{path}/config", {"max_results": 3})
    refused(answer, 409, "search_engine_not_configured")
    refused(await admin.post(f"{path}/enable"), 409, "search_engine_not_configured")
    assert (await set_config(admin, agent_id, search_engine="searxng"))["enabled"] is True
    assert (await admin.post(f"{path}/disable")).json()["enabled"] is False


async def test_the_key_of_another_tenant_does_not_count(
    admin: Client, agent_id: str, world: World, super_admin: Client
) -> None:
    other = await world.user("tenant_admin")
    await add_search_key(other, "brave")
    await add_search_key(super_admin, "brave")
    body = {"enabled": True, "search_engine": "brave"}
    for caller in (admin, super_admin):
        answer = await caller.put(f"{search_path(agent_id)}/config", body)
        refused(answer, 409, "search_engine_not_configured")


async def test_searxng_cannot_be_enabled_without_its_address(stores: Stores, world: World) -> None:
    product = World(create_app(msgspec.structs.replace(stores.settings, searxng_url="")))
    caller = await product.user("tenant_admin")
    agent_id = await create_agent(caller)
    assert product.services.get(SearchEngines).find("searxng") is None
    body = {"enabled": True, "search_engine": "searxng"}
    answer = await caller.put(f"{search_path(agent_id)}/config", body)
    error = refused(answer, 409, "search_engine_not_configured")
    assert "PARLEY_SEARXNG_URL" in error["message"]
    await product.services.close()


# Tenants and permissions


_ACTIONS: list[tuple[str, str, Any]] = [
    ("GET", "config", None),
    ("PUT", "config", {"max_results": 3}),
    ("POST", "enable", None),
    ("POST", "disable", None),
]


async def test_a_foreign_or_unknown_agent_is_not_found(
    admin: Client, world: World, subtests: pytest.Subtests
) -> None:
    other = await world.user("tenant_admin")
    foreign_id = await create_agent(other)
    for agent_id in (foreign_id, NO_AGENT):
        for method, action, body in _ACTIONS:
            with subtests.test(agent_id=agent_id, method=method, action=action):
                answer = await admin(method, f"{search_path(agent_id)}/{action}", json=body)
                refused(answer, 404, "agent_not_found")
    assert await get_config(other, foreign_id) == DEFAULTS


async def test_a_config_of_another_tenant_is_not_shown(
    admin: Client, agent_id: str, world: World, services: Services
) -> None:
    """No request stores one; every table of a statement has its tenant condition all the same."""
    await insert_foreign_config(services, await world.tenant(), agent_id)
    assert await get_config(admin, agent_id) == DEFAULTS


async def test_a_reading_role_neither_sees_nor_changes_the_config(
    admin: Client, agent_id: str, world: World, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "agent_user"):
        with subtests.test(role=role):
            caller = await world.user(role, admin.tenant_id)
            for method, action, body in _ACTIONS:
                answer = await caller(method, f"{search_path(agent_id)}/{action}", json=body)
                error = refused(answer, 403, "forbidden")
                assert error["details"] == {"required": "agents:write", "your_role": role}
            assert await get_config(admin, agent_id) == DEFAULTS


async def test_super_admin_configures_an_agent_of_any_tenant(
    admin: Client, agent_id: str, super_admin: Client, services: Services
) -> None:
    assert await set_config(super_admin, agent_id, enabled=True) == {**DEFAULTS, "enabled": True}
    assert await get_config(admin, agent_id) == {**DEFAULTS, "enabled": True}
    sql = "SELECT tenant_id FROM web_search_configs WHERE agent_id = $1"
    assert await fetch_rows(services, sql, agent_id) == [{"tenant_id": admin.tenant_id}]
