"""The default key of a provider, and the agents that use it."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.llm.provider_keys import PATH, create_key, find_default, key_body, list_keys
from tests.model_server import ModelServer
from tests.scripted_agents import Talker
from tests.world import Client, World

# The default


async def test_the_first_key_of_a_provider_is_its_default(admin: Client) -> None:
    first = await create_key(admin, is_default=False)
    second = await create_key(admin)
    other = await create_key(admin, provider="anthropic")
    assert [key["is_default"] for key in (first, second, other)] == [True, False, True]
    assert await find_default(admin) == first["id"]


async def test_a_new_default_takes_the_place_of_the_old_one(admin: Client) -> None:
    await create_key(admin)
    await create_key(admin)
    elsewhere = await create_key(admin, provider="anthropic")
    new = await create_key(admin, is_default=True)
    assert new["is_default"] is True
    assert await find_default(admin) == new["id"]
    assert await find_default(admin, "anthropic") == elsewhere["id"]


async def test_the_newest_takes_the_place_of_a_deleted_default(admin: Client) -> None:
    created = [await create_key(admin, name=str(number)) for number in range(4)]
    elsewhere = await create_key(admin, provider="anthropic")
    for deleted, successor in ((0, 3), (3, 2), (2, 1)):
        assert await find_default(admin) == created[deleted]["id"]
        await admin.delete(f"{PATH}/{created[deleted]['id']}")
        assert await find_default(admin) == created[successor]["id"]
    await admin.delete(f"{PATH}/{created[1]['id']}")
    assert await find_default(admin) is None
    assert await find_default(admin, "anthropic") == elsewhere["id"]


async def test_deleting_another_key_leaves_the_default(admin: Client) -> None:
    first = await create_key(admin)
    second = await create_key(admin)
    await admin.delete(f"{PATH}/{second['id']}")
    assert await find_default(admin) == first["id"]


async def test_after_the_last_one_the_next_key_is_the_default(admin: Client) -> None:
    first = await create_key(admin)
    await admin.delete(f"{PATH}/{first['id']}")
    assert (await create_key(admin))["is_default"] is True


async def test_another_tenant_s_default_is_its_own(world: World) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    first = await create_key(here)
    second = await create_key(there, is_default=True)
    assert (first["is_default"], second["is_default"]) == (True, True)
    await there.delete(f"{PATH}/{second['id']}")
    assert await find_default(here) == first["id"]


_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('provider_keys:' || $1, 0))"


async def _wait_for_lock_waiters(services: Services, count: int = 1) -> None:
    waiters = """SELECT count(*) FROM pg_stat_activity
                 WHERE wait_event_type = 'Lock' AND query ILIKE '%provider_keys%'"""
    deadline = time.monotonic() + 10
    while True:
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            if await (await tx.raw()).fetchval(waiters) >= count:
                return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def _run_concurrently(
    services: Services, tenant_id: str, *requests: Coroutine[Any, Any, Any]
) -> list[int]:
    """Starts all requests while the lock is taken, so that none has written before the others."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(_LOCK, tenant_id)
        tasks = [asyncio.create_task(request) for request in requests]
        await _wait_for_lock_waiters(services, len(tasks))
    return [answer.status_code for answer in await asyncio.gather(*tasks)]


# Concurrent requests


async def test_two_first_keys_at_the_same_moment_are_both_added(
    admin: Client, services: Services
) -> None:
    posts = [admin.post(PATH, key_body()) for _ in range(2)]
    assert await _run_concurrently(services, admin.tenant_id, *posts) == [201, 201]
    assert sorted(key["is_default"] for key in await list_keys(admin)) == [False, True]


async def test_two_new_defaults_at_the_same_moment_are_both_added(
    admin: Client, services: Services
) -> None:
    await create_key(admin)
    posts = [admin.post(PATH, key_body(is_default=True)) for _ in range(2)]
    assert await _run_concurrently(services, admin.tenant_id, *posts) == [201, 201]
    assert sorted(key["is_default"] for key in await list_keys(admin)) == [False, False, True]


async def test_when_a_default_and_its_successor_are_deleted_together_the_next_key_is_the_default(
    admin: Client, services: Services
) -> None:
    first, next_one, successor = [await create_key(admin) for _ in range(3)]
    deletes = [admin.delete(f"{PATH}/{key['id']}") for key in (first, successor)]
    assert await _run_concurrently(services, admin.tenant_id, *deletes) == [204, 204]
    assert await find_default(admin) == next_one["id"]


async def test_a_key_that_two_delete_at_the_same_moment_is_deleted_once(
    admin: Client, services: Services
) -> None:
    key, successor = [await create_key(admin) for _ in range(2)]
    deletes = [admin.delete(f"{PATH}/{key['id']}") for _ in range(2)]
    assert sorted(await _run_concurrently(services, admin.tenant_id, *deletes)) == [204, 404]
    assert await find_default(admin) == successor["id"]


async def test_a_successor_that_is_deleted_at_the_same_moment_is_skipped(
    admin: Client, services: Services
) -> None:
    first, next_one, successor = [await create_key(admin) for _ in range(3)]
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("DELETE FROM provider_keys WHERE id = $1", successor["id"])
        request = asyncio.create_task(admin.delete(f"{PATH}/{first['id']}"))
        await _wait_for_lock_waiters(services)
    assert (await request).status_code == 204
    assert await find_default(admin) == next_one["id"]


async def _send_and_read_authorization(talk: Talker) -> str:
    await talk.say("Hello")
    return talk.models.headers[-1]["Authorization"]


# Agents that use the default


async def test_agents_use_the_tenant_s_default_key(talk: Talker) -> None:
    first = await find_default(talk.client, "scripted")
    fields = {"provider": "scripted", "base_url": talk.models.url}
    assert await _send_and_read_authorization(talk) == "Bearer sk-scripted-0123456789"
    await create_key(talk.client, api_key="second-key", **fields)
    assert await _send_and_read_authorization(talk) == "Bearer sk-scripted-0123456789"
    third = await create_key(talk.client, api_key="third-key", is_default=True, **fields)
    assert await _send_and_read_authorization(talk) == "Bearer third-key"
    await talk.client.delete(f"{PATH}/{third['id']}")
    assert await _send_and_read_authorization(talk) == "Bearer second-key"
    await talk.client.delete(f"{PATH}/{await find_default(talk.client, 'scripted')}")
    assert await find_default(talk.client, "scripted") == first
    await talk.client.delete(f"{PATH}/{first}")
    answer = await talk.client.post(f"{talk.path}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


async def test_agents_never_use_another_tenant_s_key(
    talk: Talker, world: World, models: ModelServer
) -> None:
    other = await world.user("tenant_admin")
    body = {"name": "A", "primary_model": f"scripted/{talk.model}", "system_prompt": "x"}
    agent = await other.post("/api/v1/agents", body)
    requests_before = len(talk.asked)
    answer = await other.post(f"/api/v1/agents/{agent.json()['id']}/chat", {"message": "Hello"})
    assert answer.status_code == 409
    assert len(talk.asked) == requests_before
