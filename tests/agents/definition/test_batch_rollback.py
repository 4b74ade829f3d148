"""A failed operation of a batch is rolled back completely."""

from collections.abc import AsyncIterator

import pytest

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.definition.batch_requests import (
    build_create,
    build_delete,
    build_update,
    list_sorted_names,
    run_batch,
)
from tests.agents.definition.database import count_rows
from tests.agents.definition.factories import PATH, create_agent
from tests.world import Client


@pytest.fixture
async def refused_name(services: Services) -> AsyncIterator[str]:
    """A name that a trigger on the event log refuses, so that an operation fails late."""
    name = new_id("refused")
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute(
            """
            CREATE FUNCTION refuse_event() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation'; END $$
            """
        )
        await raw.execute(
            f"""
            CREATE TRIGGER refuse_event BEFORE INSERT ON event_log
            FOR EACH ROW WHEN (NEW.data->>'name' = '{name}') EXECUTE FUNCTION refuse_event()
            """
        )
    yield name
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("DROP TRIGGER refuse_event ON event_log")
        await raw.execute("DROP FUNCTION refuse_event")


async def test_a_create_that_fails_halfway_is_rolled_back(
    developer: Client, services: Services, refused_name: str
) -> None:
    results = await run_batch(
        developer,
        build_create(name="Before"),
        build_create(name=refused_name),
        build_create(name="After"),
    )
    assert [result["status"] for result in results] == [201, 409, 201]
    assert results[1]["error"]["code"] == "conflict"
    assert await list_sorted_names(developer) == ["After", "Before"]
    assert await count_rows(services, "agent_versions", "tenant_id", developer.tenant_id) == 2


async def test_an_update_that_fails_halfway_is_rolled_back(
    developer: Client, services: Services, refused_name: str
) -> None:
    agent = await create_agent(developer)
    results = await run_batch(
        developer,
        build_update(agent["id"], description="Before"),
        build_update(agent["id"], name=refused_name, temperature=0.1),
        build_update(agent["id"], max_tokens=5),
    )
    assert [result["status"] for result in results] == [200, 409, 200]
    stored = (await developer.get(f"{PATH}/{agent['id']}")).json()
    assert (stored["name"], stored["temperature"]) == ("Shop", 0.7)
    assert (stored["description"], stored["max_tokens"]) == ("Before", 5)
    assert stored["version"] == results[2]["data"]["version"] == 2
    assert await count_rows(services, "agent_versions", "agent_id", agent["id"]) == 2


async def test_a_delete_that_fails_halfway_is_rolled_back(
    developer: Client, services: Services, refused_name: str
) -> None:
    agent = await create_agent(developer)
    async with services.db.tx(ALL_TENANTS) as tx:
        sql = "UPDATE agents SET name = $1 WHERE id = $2"
        await (await tx.raw()).execute(sql, refused_name, agent["id"])
    results = await run_batch(developer, build_delete(agent["id"]), build_create(name="After"))
    assert [result["status"] for result in results] == [409, 201]
    assert (await developer.get(f"{PATH}/{agent['id']}")).status_code == 200
