"""How requests are counted: once each, when they were admitted."""

import asyncio
import math

import pytest

from app.domain.agents.usage import count_queries
from app.domain.agents.usage.request_counter import RequestCounter
from app.kit import clock
from app.main import create_app
from app.services import Services
from tests.agents.usage.rows import get_usage, store_requests
from tests.agents.usage.test_report import NOON
from tests.assertions import wait_until
from tests.conversations.embed.factories import use_key
from tests.conversations.embed.sites import create_site
from tests.database import run_sql
from tests.scripted_agents import Talker
from tests.stores import Stores
from tests.world import Client, World

_SUMS = """
SELECT coalesce((SELECT sum(amount) FROM usage_count_hours
                 WHERE tenant_id = $1 AND kind = 'requests'), 0)::int AS hours,
       coalesce((SELECT sum(amount) FROM usage_count_days
                 WHERE tenant_id = $1 AND kind = 'requests'), 0)::int AS days
"""


async def _count_stored(services: Services, tenant_id: str) -> int:
    (row,) = await run_sql(services, _SUMS, tenant_id)
    assert row["hours"] == row["days"]
    return int(row["days"])


async def test_each_request_of_a_tenant_counts_once_whatever_its_answer(
    world: World, services: Services
) -> None:
    client = await world.user("agent_user")
    colleague = await world.user("tenant_admin", client.tenant_id)
    answers = [
        await client.get("/auth/me"),
        await client.get("/api/v1/agents/agt_unknown"),
        await client.get("/api/v1/usage"),
        await client.post("/api/v1/agents/agt_unknown/chat", {}),
        await colleague.get("/auth/me"),
        await client.get("/nothing/here"),
    ]
    assert {answer.status_code for answer in answers} == {200, 403, 404, 422}
    await client.get("/health/live")
    await store_requests(services)
    assert await _count_stored(services, client.tenant_id) == len(answers)


async def test_refused_requests_do_not_count(world: World, services: Services) -> None:
    limits = {"requests_per_minute": 3, "burst_multiplier": 1}
    client = await world.user("agent_user", await world.tenant(limits=limits))
    statuses = [(await client.get("/auth/me")).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    await store_requests(services)
    assert await _count_stored(services, client.tenant_id) == 3


async def test_callers_without_a_valid_session_count_for_no_tenant(
    world: World, services: Services
) -> None:
    client = await world.user("agent_user")
    ended = "UPDATE sessions SET ended_at = now() WHERE id = $1"
    await run_sql(services, ended, client.session_id)
    assert (await client.get("/auth/me")).status_code == 401
    await store_requests(services)
    assert await _count_stored(services, client.tenant_id) == 0


async def test_requests_of_super_admin_count_for_its_own_tenant(
    world: World, services: Services, super_admin: Client
) -> None:
    tenant_id = await world.tenant()
    await super_admin.get("/api/v1/agents", headers={"x-tenant-id": tenant_id})
    await store_requests(services)
    assert await _count_stored(services, tenant_id) == 0
    assert await _count_stored(services, super_admin.tenant_id) == 1


async def test_requests_of_visitors_count_for_the_tenant_of_their_embed_key(
    talk: Talker, services: Services, world: World
) -> None:
    site = await create_site(talk)
    await store_requests(services)
    before = await _count_stored(services, talk.client.tenant_id)
    for _ in range(3):
        assert (await use_key(world, talk.agent_id, site.api_key)).status_code == 200
    await store_requests(services)
    assert await _count_stored(services, talk.client.tenant_id) == before + 3


async def test_requests_count_in_the_hour_in_which_they_arrive(
    world: World, services: Services
) -> None:
    tenant_id, counter = await world.tenant(), RequestCounter(services.db, math.inf)
    with clock.frozen(NOON):
        counter.add_request(tenant_id)
    with clock.frozen(NOON.replace(hour=23, minute=59)):
        counter.add_request(tenant_id)
        counter.add_request(tenant_id)
    await counter.close()
    sql = "SELECT hour, amount FROM usage_count_hours WHERE tenant_id = $1 ORDER BY hour"
    hours = [tuple(row.values()) for row in await run_sql(services, sql, tenant_id)]
    assert hours == [(NOON.replace(minute=0), 1), (NOON.replace(hour=23, minute=0), 2)]


# Storing


async def test_counts_are_stored_after_a_while(world: World, services: Services) -> None:
    tenant_id, counter = await world.tenant(), RequestCounter(services.db, 0.05)
    for expected in (1, 2):
        counter.add_request(tenant_id)

        async def is_stored(expected: int = expected) -> bool:
            return await _count_stored(services, tenant_id) == expected

        await wait_until(is_stored)
    await counter.close()


async def test_a_process_that_stops_stores_its_counts(
    world: World, services: Services, stores: Stores
) -> None:
    client = await world.user("agent_user")
    app = create_app(stores.settings)
    caller = Client(app, client.token)
    for _ in range(5):
        assert (await caller.get("/auth/me")).status_code == 200
    await app.state.services.close()
    assert await _count_stored(services, client.tenant_id) == 5


async def test_counts_that_postgres_did_not_accept_are_stored_later(
    world: World, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id, counter = await world.tenant(), RequestCounter(services.db, math.inf)

    async def fail(*_arguments: object) -> None:
        raise OSError("the connection was closed")

    counter.add_request(tenant_id)
    with monkeypatch.context() as patched:
        patched.setattr(count_queries, "add_requests", fail)
        await counter.store()
        counter.add_request(tenant_id)
    assert await _count_stored(services, tenant_id) == 0
    await counter.close()
    assert await _count_stored(services, tenant_id) == 2


async def test_a_deleted_tenant_does_not_stop_the_others(world: World, services: Services) -> None:
    tenant_id, counter = await world.tenant(), RequestCounter(services.db, math.inf)
    for name in ("ten_deleted", tenant_id):
        counter.add_request(name)
    await counter.close()
    assert await _count_stored(services, tenant_id) == 1


async def test_counts_of_many_processes_add_up(world: World, services: Services) -> None:
    tenants = [await world.tenant() for _ in range(5)]
    counters = [RequestCounter(services.db, math.inf) for _ in range(50)]

    async def count(counter: RequestCounter) -> None:
        for _ in range(3):
            for tenant_id in tenants:
                counter.add_request(tenant_id)
            await counter.store()

    await asyncio.gather(*map(count, counters))
    assert [await _count_stored(services, tenant_id) for tenant_id in tenants] == [150] * 5


async def test_the_report_has_the_requests_of_each_day(
    world: World, services: Services, super_admin: Client
) -> None:
    client = await world.user("tenant_admin")
    await client.get("/auth/me")
    await client.get("/auth/me")
    await store_requests(services)
    header = {"x-tenant-id": client.tenant_id}
    report = (await super_admin.get("/api/v1/usage", headers=header)).json()
    assert report["totals"]["requests"] == 2
    assert sum(day["requests"] for day in report["by_day"]) == 2
    assert (await get_usage(client, period="24h"))["totals"]["requests"] >= 2
