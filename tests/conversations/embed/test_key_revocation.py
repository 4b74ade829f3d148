"""DELETE /api/v1/embed/api-keys, and the events of embed keys."""

import asyncio

import pytest

from tests.conversations.embed.factories import (
    KEYS_PATH,
    create_embed_key,
    list_embed_keys,
    list_key_events,
    revoke_key,
    use_key,
)
from tests.world import Client, World

# Revoke


async def test_a_key_is_revoked_by_its_id_in_the_query(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    answer = await revoke_key(developer, key["id"])
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_embed_keys(developer) == []


async def test_a_key_is_revoked_by_its_id_in_a_body(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    answer = await developer("DELETE", KEYS_PATH, json={"id": key["id"]})
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_embed_keys(developer) == []


async def test_the_query_precedes_the_body(developer: Client, agent_id: str) -> None:
    first, second = (
        await create_embed_key(developer, agent_id),
        await create_embed_key(developer, agent_id),
    )
    answer = await developer(
        "DELETE", KEYS_PATH, params={"id": first["id"]}, json={"id": second["id"]}
    )
    assert answer.status_code == 204
    assert [item["id"] for item in await list_embed_keys(developer)] == [second["id"]]


async def test_revoking_needs_an_id(developer: Client, agent_id: str) -> None:
    await create_embed_key(developer, agent_id)
    answer = await developer.delete(KEYS_PATH)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"id"}
    assert len(await list_embed_keys(developer)) == 1


_INVALID_BODIES: list[tuple[bytes, str]] = [
    (b"{}", "id"),
    (b'{"id": null}', "id"),
    (b'{"id": 7}', "id"),
    (b'{"id": ["a"]}', "id"),
    (b"[]", "body"),
    (b'"emk_x"', "body"),
    (b"emk_x", "body"),
    (b'{"id": "\\u0000"}', "body"),
]


async def test_a_body_that_names_no_key_is_refused(
    developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    await create_embed_key(developer, agent_id)
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            headers = {"content-type": "application/json"}
            answer = await developer("DELETE", KEYS_PATH, content=body, headers=headers)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}
    assert len(await list_embed_keys(developer)) == 1


async def test_an_unknown_key_is_not_found(developer: Client, subtests: pytest.Subtests) -> None:
    for key_id in ["emk_none", "", "'; DROP TABLE embed_keys; --"]:
        with subtests.test(key_id=key_id):
            answer = await revoke_key(developer, key_id)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "embed_key_not_found"


async def test_an_id_that_is_too_long_is_named(developer: Client) -> None:
    answer = await revoke_key(developer, "x" * 65)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"id"}


async def test_a_key_is_revoked_once(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    assert (await revoke_key(developer, key["id"])).status_code == 204
    assert (await revoke_key(developer, key["id"])).status_code == 404


async def test_concurrent_requests_revoke_a_key_once(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    answers = await asyncio.gather(*[revoke_key(developer, key["id"]) for _ in range(4)])
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404, 404]
    log = (await developer.get("/api/v1/event-log")).json()["data"]
    assert [entry["type"] for entry in log].count("system.embed_key.revoked") == 1


async def test_a_key_cannot_be_revoked_by_its_value(
    developer: Client, agent_id: str, world: World
) -> None:
    """Neither the key nor its prefix is an id."""
    key = await create_embed_key(developer, agent_id)
    for name in ("api_key", "key_prefix"):
        assert (await revoke_key(developer, key[name])).status_code == 404
    assert (await use_key(world, agent_id, key["api_key"])).status_code == 200


async def test_a_revoked_key_stops_at_once(developer: Client, agent_id: str, world: World) -> None:
    key = await create_embed_key(developer, agent_id)
    assert (await use_key(world, agent_id, key["api_key"])).status_code == 200
    await revoke_key(developer, key["id"])
    answer = await use_key(world, agent_id, key["api_key"])
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_other_keys_of_the_agent_still_work(
    developer: Client, agent_id: str, world: World
) -> None:
    first, second = (
        await create_embed_key(developer, agent_id),
        await create_embed_key(developer, agent_id),
    )
    await revoke_key(developer, first["id"])
    assert (await use_key(world, agent_id, second["api_key"])).status_code == 200


async def test_the_keys_of_a_deleted_agent_are_deleted(
    developer: Client, agent_id: str, world: World
) -> None:
    key = await create_embed_key(developer, agent_id)
    assert (await developer.delete(f"/api/v1/agents/{agent_id}")).status_code == 204
    assert await list_embed_keys(developer) == []
    assert (await use_key(world, agent_id, key["api_key"])).status_code == 401


# Events


async def test_creating_and_revoking_are_in_the_event_log(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id, "Shop", allowed_domains=["A.com"])
    await revoke_key(developer, key["id"])
    data = {"key_id": key["id"], "agent_id": agent_id, "name": "Shop"}
    assert await list_key_events(developer) == [
        ("system.embed_key.created", {**data, "allowed_domains": ["a.com"]}),
        ("system.embed_key.revoked", data),
    ]


async def test_the_key_is_not_in_the_event_log(developer: Client, agent_id: str) -> None:
    key = await create_embed_key(developer, agent_id)
    await revoke_key(developer, key["id"])
    answer = await developer.get("/api/v1/event-log", params={"per_page": 100})
    assert key["id"] in answer.text
    assert key["api_key"] not in answer.text
    assert key["api_key"][4:] not in answer.text


async def test_a_refused_creation_emits_no_event(developer: Client, agent_id: str) -> None:
    body = {"agent_id": agent_id, "name": "x", "allowed_domains": ["*.com"]}
    await developer.post(KEYS_PATH, body)
    assert await list_key_events(developer) == []
