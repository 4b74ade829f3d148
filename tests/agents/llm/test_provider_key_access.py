"""Permissions and tenant isolation of provider keys."""

import itertools

import httpx
import pytest

from tests.agents.llm.provider_keys import (
    MODELS,
    PATH,
    SECRET,
    create_key,
    find_default,
    key_body,
    list_keys,
)
from tests.model_server import ModelServer
from tests.world import Client, World

READERS = {"super_admin", "tenant_admin", "agent_developer"}

WRITERS = {"super_admin", "tenant_admin"}

ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]


def _check_refusal(answer: httpx.Response, role: str, permission: str) -> None:
    assert answer.status_code == 403, answer.text
    assert answer.json()["error"]["code"] == "forbidden"
    assert answer.json()["error"]["details"] == {"required": permission, "your_role": role}


# Permissions


async def test_reading_needs_a_permission(world: World, subtests: pytest.Subtests) -> None:
    for path, role in itertools.product((PATH, MODELS), ROLES):
        with subtests.test(path=path, role=role):
            caller = await world.user(role)
            headers = {"x-tenant-id": caller.tenant_id} if role == "super_admin" else {}
            answer = await caller.get(path, headers=headers)
            if role in READERS:
                assert answer.status_code == 200
            else:
                _check_refusal(answer, role, "models:read")


async def test_adding_testing_and_deleting_need_a_permission(
    world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            admin = await world.user("tenant_admin")
            caller = await world.user(role, admin.tenant_id)
            key = await create_key(admin, provider="scripted", base_url=models.url)
            answers = [
                await caller.post(PATH, key_body()),
                await caller.post(f"{PATH}/{key['id']}/test"),
                await caller.delete(f"{PATH}/{key['id']}"),
            ]
            if role in WRITERS:
                assert [answer.status_code for answer in answers] == [201, 200, 204]
            else:
                for answer in answers:
                    _check_refusal(answer, role, "models:write")
                assert [item["id"] for item in await list_keys(admin)] == [key["id"]]


async def test_an_anonymous_caller_is_unauthorized(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("GET", PATH),
        ("POST", PATH),
        ("DELETE", f"{PATH}/pvk_x"),
        ("POST", f"{PATH}/pvk_x/test"),
        ("GET", MODELS),
    ]
    for method, path in cases:
        with subtests.test(method=method, path=path):
            answer = await anonymous(method, path)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "unauthorized"


async def test_a_provider_key_does_not_authenticate(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [PATH, MODELS, "/api/v1/agents"]
    for path in cases:
        admin = await world.user("tenant_admin")
        anonymous = world.anonymous()
        with subtests.test(path=path):
            key = await create_key(admin)
            for token in (SECRET, key["id"]):
                headers = {"authorization": f"Bearer {token}", "x-api-key": token}
                assert (await anonymous.get(path, headers=headers)).status_code == 401


async def test_other_methods_are_not_allowed(admin: Client, subtests: pytest.Subtests) -> None:
    for path in (f"{PATH}/pvk_x", f"{PATH}/pvk_x/test"):
        with subtests.test(path=path):
            answer = await admin("PUT", path, json={})
            assert answer.status_code == 405
            assert answer.json()["error"]["code"] == "method_not_allowed"


# Tenants


async def test_another_tenant_s_keys_are_not_found(world: World, models: ModelServer) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    key = await create_key(here, provider="scripted", base_url=models.url)
    assert await list_keys(there) == []
    for answer in (
        await there.delete(f"{PATH}/{key['id']}"),
        await there.post(f"{PATH}/{key['id']}/test"),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "provider_key_not_found"
    assert (await there.get(MODELS)).json() == {"data": []}
    assert [item["id"] for item in await list_keys(here)] == [key["id"]]


async def test_only_super_admin_selects_a_tenant(world: World) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    key = await create_key(here)
    headers = {"x-tenant-id": here.tenant_id}
    response = await there.get(PATH, headers=headers)
    assert key["id"] not in response.text
    await there.post(PATH, key_body(), headers=headers)
    assert [item["id"] for item in await list_keys(here)] == [key["id"]]


async def test_super_admin_manages_the_keys_of_a_tenant(
    super_admin: Client, admin: Client, models: ModelServer
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    body = key_body(provider="scripted", base_url=models.url)
    key = (await super_admin.post(PATH, body, headers=headers)).json()
    assert [item["id"] for item in await list_keys(admin)] == [key["id"]]
    assert (await super_admin.get(PATH, headers=headers)).json()["data"] == [key]
    assert key["id"] in [item["id"] for item in await list_keys(super_admin)]
    listed_models = (await super_admin.get(MODELS, headers=headers)).json()["data"]
    assert [model["id"] for model in listed_models] == ["scripted/one", "scripted/two"]
    assert (await super_admin.post(f"{PATH}/{key['id']}/test")).json()["success"] is True
    assert (await super_admin.delete(f"{PATH}/{key['id']}")).status_code == 204
    assert await list_keys(admin) == []


async def test_super_admin_s_own_default_leaves_the_others_alone(
    super_admin: Client, admin: Client
) -> None:
    tenant_key = await create_key(admin)
    admin_key = await create_key(super_admin, is_default=True)
    assert await find_default(admin) == tenant_key["id"]
    await super_admin.delete(f"{PATH}/{admin_key['id']}")
    assert await find_default(admin) == tenant_key["id"]


async def test_a_deletion_by_super_admin_is_in_the_tenant_s_event_log(
    super_admin: Client, admin: Client
) -> None:
    key = await create_key(admin)
    await super_admin.delete(f"{PATH}/{key['id']}")
    log = (await admin.get("/api/v1/event-log")).json()["data"]
    assert "system.provider_key.deleted" in [entry["type"] for entry in log]
