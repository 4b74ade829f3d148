"""Who may call /v1/credentials: tenants and permissions."""

from typing import Any

import httpx
import pytest

from app.services import Services
from tests.agents.vault.api import (
    PATH,
    get_credential,
    list_audit,
    list_credentials,
    reveal_secrets,
    unseal_credential,
)
from tests.agents.vault.factories import VALID_SECRETS, build_body, create_credential, grant_access
from tests.assertions import refused
from tests.world import Client, World

ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
WRITERS = {"super_admin", "tenant_admin", "agent_developer"}
REVEALERS = {"super_admin", "tenant_admin"}


# Missing credentials and other tenants


def _list_requests(credential_id: str, access_id: str = "acr_x") -> list[tuple[str, str, Any]]:
    path = f"{PATH}/{credential_id}"
    rule = {"integration_type": "workflow", "integration_id": "wfl_2"}
    return [
        ("GET", path, None),
        ("PUT", path, {"name": "Stolen"}),
        ("GET", f"{path}/reveal", None),
        ("PUT", f"{path}/secrets", {"secrets": {"token": "stolen"}}),
        ("POST", f"{path}/test", None),
        ("GET", f"{path}/audit", None),
        ("GET", f"{path}/access", None),
        ("POST", f"{path}/access", rule),
        ("DELETE", f"{path}/access/{access_id}", None),
        ("DELETE", path, None),
    ]


async def test_a_credential_that_does_not_exist_is_404(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["crd_nothing", "x", "crd_" + "0" * 500, "ü"]
    for credential_id in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(credential_id=credential_id):
            for method, path, body in _list_requests(credential_id):
                refused(await admin(method, path, json=body), 404, "credential_not_found")


async def test_an_id_with_a_nul_character_is_refused(admin: Client) -> None:
    for method, path, body in _list_requests("%00"):
        refused(await admin(method, path, json=body), 422, "validation_error")


async def test_another_tenant_s_credential_is_not_found(world: World, services: Services) -> None:
    owner, stranger = await world.user("tenant_admin"), await world.user("tenant_admin")
    credential = await create_credential(owner)
    rule = await grant_access(owner, credential["id"])
    expected = await get_credential(owner, credential["id"])
    for method, path, body in _list_requests(credential["id"], rule["id"]):
        refused(await stranger(method, path, json=body), 404, "credential_not_found")
    assert await get_credential(owner, credential["id"]) == expected
    assert await list_credentials(stranger) == []
    assert await list_audit(stranger) == []
    assert await reveal_secrets(owner, credential["id"]) == VALID_SECRETS["bearer_token"]
    await unseal_credential(services, owner, credential["id"])


async def test_only_super_admin_names_a_tenant(world: World) -> None:
    owner, stranger = await world.user("tenant_admin"), await world.user("tenant_admin")
    credential = await create_credential(owner)
    headers = {"x-tenant-id": owner.tenant_id}
    assert credential["id"] not in (await stranger.get(PATH, headers=headers)).text
    answer = await stranger.get(f"{PATH}/{credential['id']}/reveal", headers=headers)
    refused(answer, 404, "credential_not_found")


async def test_super_admin_acts_in_a_tenant_and_is_in_its_audit_log(
    super_admin: Client, admin: Client
) -> None:
    headers = {"x-tenant-id": admin.tenant_id}
    credential = (await super_admin.post(PATH, build_body(), headers=headers)).json()
    assert [item["id"] for item in await list_credentials(admin)] == [credential["id"]]
    assert await reveal_secrets(super_admin, credential["id"]) == VALID_SECRETS["bearer_token"]
    rows = await list_audit(admin)
    assert [row["action"] for row in rows] == ["revealed", "created"]
    assert {row["actor_id"] for row in rows} == {super_admin.user_id}
    assert await list_audit(super_admin, credential["id"]) == rows


# Permissions


def _assert_forbidden(answer: httpx.Response, role: str, permission: str) -> None:
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": permission, "your_role": role}


async def test_reading_needs_a_permission(world: World, subtests: pytest.Subtests) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            admin = await world.user("tenant_admin")
            caller = await world.user(role, admin.tenant_id)
            credential_path = f"{PATH}/{(await create_credential(admin))['id']}"
            for url in (
                PATH,
                f"{PATH}/types",
                f"{PATH}/audit",
                credential_path,
                f"{credential_path}/audit",
                f"{credential_path}/access",
            ):
                answer = await caller.get(url)
                if role in WRITERS:
                    assert answer.status_code == 200
                else:
                    _assert_forbidden(answer, role, "credentials:read")


async def test_writing_needs_a_permission(world: World, subtests: pytest.Subtests) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            admin = await world.user("tenant_admin")
            caller = await world.user(role, admin.tenant_id)
            # With allowed_hosts, a grant needs no other permission.
            metadata = {"test_url": "http://127.0.0.1:1/", "allowed_hosts": ["127.0.0.1"]}
            credential = await create_credential(admin, metadata=metadata)
            rule = await grant_access(admin, credential["id"])
            steps = [("POST", PATH, build_body())] + [
                step for step in _list_requests(credential["id"], rule["id"]) if step[0] != "GET"
            ]
            for method, path, body in steps:
                answer = await caller(method, path, json=body)
                if role in WRITERS:
                    assert answer.status_code in {200, 201, 204}, answer.text
                else:
                    _assert_forbidden(answer, role, "credentials:write")
                    assert await get_credential(admin, credential["id"]) == credential


async def test_revealing_needs_a_permission_of_its_own(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            admin = await world.user("tenant_admin")
            caller = await world.user(role, admin.tenant_id)
            credential = await create_credential(admin)
            answer = await caller.get(f"{PATH}/{credential['id']}/reveal")
            if role in REVEALERS:
                assert answer.status_code == 200
                assert answer.json() == {
                    "id": credential["id"],
                    "type": "bearer_token",
                    "secrets": VALID_SECRETS["bearer_token"],
                }
            else:
                _assert_forbidden(answer, role, "credentials:reveal")
                assert "planted-token" not in answer.text


async def test_a_refused_reveal_is_in_the_audit_log(world: World) -> None:
    admin = await world.user("tenant_admin")
    developer = await world.user("agent_developer", admin.tenant_id)
    credential = await create_credential(admin)
    await developer.get(f"{PATH}/{credential['id']}/reveal")
    (latest, _created) = await list_audit(admin, credential["id"])
    assert (latest["action"], latest["success"]) == ("denied", False)
    assert (latest["actor_type"], latest["actor_id"]) == ("user", developer.user_id)
    assert latest["ip_address"] == developer.address


async def test_a_developer_learns_nothing_of_another_tenant_by_trying_to_reveal(
    world: World,
) -> None:
    admin = await world.user("tenant_admin")
    developer = await world.user("agent_developer")
    credential = await create_credential(admin)
    foreign = await developer.get(f"{PATH}/{credential['id']}/reveal")
    missing = await developer.get(f"{PATH}/crd_nothing/reveal")
    _assert_forbidden(foreign, "agent_developer", "credentials:reveal")
    assert missing.json() == foreign.json()
    assert [entry["action"] for entry in await list_audit(admin)] == ["created"]


async def test_callers_who_are_not_signed_in_get_401(
    world: World, subtests: pytest.Subtests
) -> None:
    for path in ("", "/types", "/audit", "/crd_x", "/crd_x/reveal"):
        anonymous = world.anonymous()
        with subtests.test(path=path):
            refused(await anonymous.get(PATH + path), 401, "unauthorized")
