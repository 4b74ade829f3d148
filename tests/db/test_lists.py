"""Totals of lists: counted up to a bound, estimated beyond it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from app.services import Services
from db.lists import BOUND, Where
from db.session import ALL_TENANTS
from tests.platform.events.query_plans import record_statements
from tests.world import Client, World

PATH = "/api/v1/agents"
_ADD_AGENTS = """
INSERT INTO agents (tenant_id, id, name, primary_model, provider, system_prompt)
SELECT $1::text, 'agt_' || $1::text || number, 'Agent ' || number, 'local/smollm2', 'local', ''
FROM generate_series(1, $2::int) AS number
"""

_ADD_AGENT = """
INSERT INTO agents (tenant_id, id, name, primary_model, provider, system_prompt)
VALUES ($1::text, 'agt_' || gen_random_uuid(), $2, 'local/smollm2', 'local', '')
"""


@asynccontextmanager
async def _create_owner(world: World) -> AsyncIterator[Client]:
    owner = await world.user("tenant_admin", await world.tenant())
    yield owner
    async with world.services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        # No table refers to these agents; looking for references takes seconds.
        await raw.execute("SET LOCAL session_replication_role = replica")
        await raw.execute("DELETE FROM agents WHERE tenant_id = $1", owner.tenant_id)


@pytest.fixture
async def owner(world: World) -> AsyncIterator[Client]:
    async with _create_owner(world) as owner:
        yield owner


@pytest.fixture(scope="module")
async def owner_of_many(world: World) -> AsyncIterator[Client]:
    """The owner of twice as many agents as are counted."""
    async with _create_owner(world) as owner:
        await _run(world.services, _ADD_AGENTS, owner.tenant_id, 2 * BOUND)
        await _run(world.services, "ANALYZE agents")
        yield owner


async def _run(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await (await tx.raw()).execute(sql, *args)


async def test_a_list_of_mapped_rows_is_counted_up_to_the_bound(
    owner: Client, services: Services
) -> None:
    await _run(services, _ADD_AGENTS, owner.tenant_id, BOUND)
    pagination = (await owner.get(PATH)).json()["pagination"]
    assert pagination == {"page": 1, "per_page": 20, "total": BOUND, "total_pages": BOUND // 20}


async def test_a_list_of_mapped_rows_beyond_the_bound_is_estimated(owner_of_many: Client) -> None:
    answer = await owner_of_many.get(PATH, params={"page": 2, "per_page": 50})
    pagination = answer.json()["pagination"]
    assert len(answer.json()["data"]) == 50
    assert pagination["estimated"] is True
    assert BOUND < pagination["total"] < 4 * BOUND


async def test_the_estimate_follows_the_filter(owner_of_many: Client) -> None:
    answer = await owner_of_many.get(PATH, params={"search": "Agent 777"})
    pagination = answer.json()["pagination"]
    assert "estimated" not in pagination
    assert pagination["total"] == 11


async def test_a_page_beyond_the_last_has_the_total(owner: Client, services: Services) -> None:
    await _run(services, _ADD_AGENTS, owner.tenant_id, 3)
    answer = (await owner.get(PATH, params={"page": 9})).json()
    assert answer["data"] == []
    assert answer["pagination"]["total"] == 3


async def test_the_estimate_of_a_search_knows_how_many_rows_match(owner_of_many: Client) -> None:
    answer = await owner_of_many.get(PATH, params={"search": "AGENT"})
    pagination = answer.json()["pagination"]
    assert pagination["estimated"] is True
    assert 1.5 * BOUND < pagination["total"] < 4 * BOUND


async def test_a_page_far_beyond_the_last_of_a_short_list_has_the_total(
    owner: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _run(services, _ADD_AGENTS, owner.tenant_id, 3)
    with record_statements(monkeypatch, "agents") as statements:
        answer = (await owner.get(PATH, params={"page": 10_000_000, "per_page": 100})).json()
    assert answer["data"] == []
    assert answer["pagination"]["total"] == 3
    assert [statement.sql[:15] for statement in statements] == ["SELECT count(*)"]


async def test_wildcards_in_a_search_are_plain_characters(
    owner: Client, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, list[str]]] = [
        ("a_b", ["A_b"]),
        ("%", ["50%"]),
        ("\\", ["c\\d"]),
        ("B", ["A_b", "axb"]),
        ("'", []),
        ("éÀ", ["Éà"]),
    ]
    for name in ("A_b", "axb", "50%", "c\\d", "Éà"):
        await _run(services, _ADD_AGENT, owner.tenant_id, name)
    for search, names in cases:
        with subtests.test(search=search, names=names):
            answer = await owner.get(PATH, params={"search": search, "sort": "name"})
            assert sorted(agent["name"] for agent in answer.json()["data"]) == sorted(names)


async def test_a_search_of_rows_is_no_pattern() -> None:
    """LIKE takes the product of both lengths for a pattern of which every part almost matches."""
    where = Where("ten_1")
    where.contain("aaab", "name", "description")
    assert "LIKE" not in where.sql
    assert where.args == ["aaab"]


async def test_the_tenant_is_a_condition_of_every_list() -> None:
    assert Where("ten_1", "active").sql == "tenant_id = $1 AND active"
    assert Where(None).sql == "$1::text IS NULL"
