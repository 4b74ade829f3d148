"""Permissions and tenant isolation of embed keys."""

import pytest

from tests.conversations.embed.factories import (
    KEYS_PATH,
    create_agent,
    create_embed_key,
    list_embed_keys,
    list_key_events,
    revoke_key,
    use_key,
)
from tests.conversations.embed.sites import key_options
from tests.world import Client, World

# Tenants


async def test_an_agent_of_another_tenant_is_not_found(world: World, developer: Client) -> None:
    foreign_agent_id = await create_agent(await world.user())
    answer = await developer.post(KEYS_PATH, {"agent_id": foreign_agent_id, "name": "x"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "agent_not_found"


async def test_an_unknown_agent_is_not_found(developer: Client, subtests: pytest.Subtests) -> None:
    for agent in ["agt_none", "", "x" * 500]:
        with subtests.test(agent=agent):
            answer = await developer.post(KEYS_PATH, {"agent_id": agent, "name": "x"})
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "agent_not_found"
            assert len(answer.json()["error"]["message"]) < 200


async def test_keys_of_another_tenant_are_not_listed(
    world: World, developer: Client, agent_id: str
) -> None:
    await create_embed_key(developer, agent_id)
    stranger = await world.user("tenant_admin")
    assert await list_embed_keys(stranger) == []
    assert await list_embed_keys(stranger, agent_id=agent_id) == []


async def test_a_key_of_another_tenant_is_not_revoked(
    world: World, developer: Client, agent_id: str
) -> None:
    key = await create_embed_key(developer, agent_id)
    stranger = await world.user("tenant_admin")
    assert (await revoke_key(stranger, key["id"])).status_code == 404
    by_body = await stranger("DELETE", KEYS_PATH, json={"id": key["id"]})
    assert by_body.status_code == 404
    assert (await use_key(world, agent_id, key["api_key"])).status_code == 200


async def test_a_super_admins_key_belongs_to_the_agents_tenant(
    super_admin: Client, developer: Client, agent_id: str
) -> None:
    key = await create_embed_key(super_admin, agent_id)
    assert [item["id"] for item in await list_embed_keys(developer)] == [key["id"]]
    assert [name for name, _ in await list_key_events(developer)] == ["system.embed_key.created"]
    assert (await revoke_key(super_admin, key["id"])).status_code == 204
    assert await list_embed_keys(developer) == []


async def test_a_super_admin_with_another_tenant_selected_does_not_find_a_key(
    super_admin: Client, developer: Client, agent_id: str
) -> None:
    key = await create_embed_key(developer, agent_id)
    headers = {"x-tenant-id": super_admin.tenant_id}
    answer = await super_admin.delete(KEYS_PATH, params={"id": key["id"]}, headers=headers)
    assert answer.status_code == 404
    assert (await super_admin.get(KEYS_PATH, headers=headers)).json()["data"] == []


# Permissions


async def test_roles_with_agents_write_create_and_revoke_keys(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ["super_admin", "tenant_admin", "agent_developer"]:
        with subtests.test(role=role):
            caller = await world.user(role)
            agent_id = await create_agent(caller)
            key = await create_embed_key(caller, agent_id)
            assert (await revoke_key(caller, key["id"])).status_code == 204


async def test_roles_without_agents_write_create_no_keys(
    world: World, developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    for role in ["agent_user", "viewer"]:
        with subtests.test(role=role):
            caller = await world.user(role, developer.tenant_id)
            answer = await caller.post(KEYS_PATH, {"agent_id": agent_id, "name": "x"})
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "forbidden"
            assert answer.json()["error"]["details"] == {
                "required": "agents:write",
                "your_role": role,
            }
            assert await list_embed_keys(developer) == []


async def test_roles_without_agents_write_revoke_no_keys(
    world: World, developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    key = await create_embed_key(developer, agent_id)
    for role in ["agent_user", "viewer"]:
        with subtests.test(role=role):
            caller = await world.user(role, developer.tenant_id)
            answer = await revoke_key(caller, key["id"])
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {
                "required": "agents:write",
                "your_role": role,
            }
            assert len(await list_embed_keys(developer)) == 1


async def test_roles_with_agents_write_list_keys(
    world: World, developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    key = await create_embed_key(developer, agent_id)
    for role in ["tenant_admin", "agent_developer"]:
        with subtests.test(role=role):
            caller = await world.user(role, developer.tenant_id)
            assert [item["id"] for item in await list_embed_keys(caller)] == [key["id"]]


async def test_anonymous_callers_are_unauthorized(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for method in ["GET", "POST", "DELETE"]:
        with subtests.test(method=method):
            answer = await anonymous(method, KEYS_PATH)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "unauthorized"


_ROUTES: list[tuple[str, str]] = [
    ("GET", KEYS_PATH),
    ("POST", KEYS_PATH),
    ("DELETE", KEYS_PATH),
    ("GET", "/api/v1/agents"),
    ("GET", "/api/v1/agents/{agent}"),
    ("POST", "/api/v1/agents/{agent}/chat"),
    ("POST", "/api/v1/agents/{agent}/chat/stream"),
    ("POST", "/api/v1/agents/{agent}/chat/async"),
    ("GET", "/api/v1/agents/{agent}/logs"),
    ("GET", "/api/v1/agents/{agent}/conversations"),
    ("DELETE", "/api/v1/agents/{agent}"),
    ("GET", "/auth/me"),
    ("GET", "/users"),
    ("GET", "/api/v1/event-log"),
    ("GET", "/api/v1/models"),
]


async def test_an_embed_key_does_not_authenticate_in_the_console(
    world: World, developer: Client, agent_id: str, subtests: pytest.Subtests
) -> None:
    key = (await create_embed_key(developer, agent_id))["api_key"]
    for method, path in _ROUTES:
        for transport in ("bearer", "header", "query"):
            with subtests.test(method=method, path=path, transport=transport):
                options = key_options(transport, key)
                answer = await world.anonymous()(method, path.format(agent=agent_id), **options)
                assert answer.status_code == 401
                assert answer.json()["error"]["code"] == "unauthorized"
                assert key not in answer.text


async def test_a_sign_in_beside_a_key_still_counts_in_the_console(
    developer: Client, agent_id: str
) -> None:
    key = (await create_embed_key(developer, agent_id))["api_key"]
    answer = await developer.get("/auth/me", headers={"x-api-key": key})
    assert answer.status_code == 200
