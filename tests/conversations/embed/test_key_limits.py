"""/api/v1/embed/api-keys: pages of the list, and how many keys an agent has at most."""

import asyncio

import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import EmbedKey
from db.session import ALL_TENANTS
from tests.conversations.embed.factories import KEYS_PATH, create_agent, create_embed_key
from tests.world import Client

_MAX_KEYS = 100


async def _add_keys(services: Services, owner: Client, agent_id: str, count: int) -> None:
    rows = [
        EmbedKey(
            id=new_id("emk"),
            tenant_id=owner.tenant_id,
            agent_id=agent_id,
            name="x",
            key_prefix="emb_x",
            key_hash=new_id("hash"),
            created_at=clock.now(),
        )
        for _ in range(count)
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        (await tx.session()).add_all(rows)


async def _list_ids(caller: Client, **params: object) -> list[str]:
    answer = await caller.get(KEYS_PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [key["id"] for key in answer.json()["data"]]


async def test_the_list_has_pages_that_do_not_overlap(
    developer: Client, agent_id: str, services: Services
) -> None:
    await _add_keys(services, developer, agent_id, 5)
    first = await developer.get(KEYS_PATH, params={"page": 1, "per_page": 2})
    assert first.json()["pagination"] == {"page": 1, "per_page": 2, "total": 5, "total_pages": 3}
    pages = [await _list_ids(developer, page=page, per_page=2) for page in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [key_id for page in pages for key_id in page] == await _list_ids(developer)


async def test_a_caller_without_a_page_gets_all_keys_of_an_agent(
    developer: Client, agent_id: str, services: Services
) -> None:
    """The list had no pages before: clients that know none must not lose keys."""
    other = await create_agent(developer, "Other")
    await _add_keys(services, developer, agent_id, _MAX_KEYS)
    await _add_keys(services, developer, other, 3)
    assert len(await _list_ids(developer, agent_id=agent_id)) == _MAX_KEYS
    assert len(await _list_ids(developer)) == _MAX_KEYS
    assert len(await _list_ids(developer, page=2)) == 3


async def test_a_wrong_page_is_named(developer: Client, subtests: pytest.Subtests) -> None:
    for params in ({"page": 0}, {"per_page": 0}, {"per_page": 101}, {"page": "x"}):
        with subtests.test(**params):
            answer = await developer.get(KEYS_PATH, params=params)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == set(params)


async def test_an_agent_has_at_most_a_hundred_keys(
    developer: Client, agent_id: str, services: Services
) -> None:
    await _add_keys(services, developer, agent_id, _MAX_KEYS)
    answer = await developer.post(KEYS_PATH, {"agent_id": agent_id, "name": "One more"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"
    expected = "An agent has at most 100 embed keys; delete one first"
    assert answer.json()["error"]["message"] == expected
    other = await create_agent(developer, "Other")
    assert (await create_embed_key(developer, other))["agent_id"] == other
    [newest, *_] = await _list_ids(developer, agent_id=agent_id)
    assert (await developer.delete(KEYS_PATH, params={"id": newest})).status_code == 204
    assert (await create_embed_key(developer, agent_id))["agent_id"] == agent_id


async def test_creations_at_the_same_time_do_not_exceed_the_limit(
    developer: Client, agent_id: str, services: Services
) -> None:
    await _add_keys(services, developer, agent_id, _MAX_KEYS - 2)
    body = {"agent_id": agent_id, "name": "At once"}
    answers = await asyncio.gather(*(developer.post(KEYS_PATH, body) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] * 2 + [409] * 6
    assert len(await _list_ids(developer, agent_id=agent_id)) == _MAX_KEYS
