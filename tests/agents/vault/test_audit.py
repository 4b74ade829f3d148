"""GET /v1/credentials/audit: one row for every action, with its actor, the latest first."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.domain.agents.vault.decrypted import IntegrationRef
from app.domain.agents.vault.errors import AccessDenied
from app.services import Services
from tests.agents.vault.api import (
    PATH,
    list_actions,
    list_audit,
    read_invalid_fields,
    run_connection_test,
    unseal_credential,
)
from tests.agents.vault.factories import create_credential, create_tool, grant_access
from tests.agents.vault.servers import serve_response
from tests.world import Client, World

FIELDS = {
    "id",
    "credential_id",
    "credential_name",
    "action",
    "actor_id",
    "actor_type",
    "actor_name",
    "integration",
    "integration_name",
    "ip_address",
    "success",
    "created_at",
}


async def test_a_row_has_every_field(admin: Client) -> None:
    credential = await create_credential(admin)
    (row,) = await list_audit(admin, credential["id"])
    assert set(row) == FIELDS
    assert row["id"].startswith("aud_")
    assert row["credential_id"] == credential["id"]
    assert row["created_at"].endswith("Z")
    assert {name: row[name] for name in FIELDS - {"id", "credential_id", "created_at"}} == {
        "credential_name": "Ours",
        "action": "created",
        "actor_id": admin.user_id,
        "actor_type": "user",
        "actor_name": "Test User",
        "integration": None,
        "integration_name": None,
        "ip_address": admin.address,
        "success": True,
    }


async def _update(admin: Client, path: str, _rule: str) -> None:
    await admin.put(path, {"description": "New"})


async def _update_secrets(admin: Client, path: str, _rule: str) -> None:
    await admin.put(f"{path}/secrets", {"secrets": {"token": "new"}})


async def _reveal(admin: Client, path: str, _rule: str) -> None:
    await admin.get(f"{path}/reveal")


async def _grant(admin: Client, path: str, _rule: str) -> None:
    await grant_access(admin, path.rpartition("/")[2], IntegrationRef("channel", "chn_1"))


async def _revoke(admin: Client, path: str, rule: str) -> None:
    await admin.delete(f"{path}/access/{rule}")


async def _delete(admin: Client, path: str, _rule: str) -> None:
    await admin.delete(path)


Operation = Callable[[Client, str, str], Awaitable[None]]


_CASES: list[tuple[Operation, str, str | None]] = [
    (_update, "updated", None),
    (_update_secrets, "secrets_updated", None),
    (_reveal, "revealed", None),
    (_grant, "access_granted", "channel:chn_1"),
    (_revoke, "access_revoked", "workflow:wfl_1"),
    (_delete, "deleted", None),
]


async def test_an_action_is_one_audit_row_with_its_actor(
    world: World, subtests: pytest.Subtests
) -> None:
    names = {"deleted": None}
    for operation, action, integration in _CASES:
        admin = await world.user("tenant_admin")
        with subtests.test(operation=operation, action=action):
            credential = await create_credential(admin)
            rule = await grant_access(admin, credential["id"])
            await operation(admin, f"{PATH}/{credential['id']}", rule["id"])
            rows = await list_audit(admin)
            assert [row["action"] for row in rows] == [action, "access_granted", "created"]
            latest = {name: rows[0][name] for name in FIELDS - {"id", "created_at"}}
            assert latest == {
                "credential_id": credential["id"],
                "credential_name": names.get(action, "Ours"),
                "action": action,
                "actor_id": admin.user_id,
                "actor_type": "user",
                "actor_name": "Test User",
                "integration": integration,
                "integration_name": None,
                "ip_address": admin.address,
                "success": True,
            }


async def test_an_update_of_fields_and_secrets_is_two_audit_rows(admin: Client) -> None:
    credential = await create_credential(admin)
    await admin.put(f"{PATH}/{credential['id']}", {"name": "New", "secrets": {"token": "new"}})
    assert sorted(await list_actions(admin, credential["id"])) == [
        "created",
        "secrets_updated",
        "updated",
    ]


async def test_a_test_is_in_the_audit_log_with_its_result(
    world: World, subtests: pytest.Subtests
) -> None:
    for status, success in ((200, True), (401, False)):
        admin = await world.user("tenant_admin")
        with subtests.test(status=status, success=success):
            async with serve_response(status) as url:
                credential = await create_credential(admin, metadata={"test_url": url})
                await run_connection_test(admin, credential["id"])
            latest = (await list_audit(admin, credential["id"]))[0]
            assert (latest["action"], latest["success"]) == ("tested", success)
            assert (latest["actor_id"], latest["ip_address"]) == (admin.user_id, admin.address)


async def test_an_invalid_request_is_not_in_the_audit_log(admin: Client) -> None:
    credential = await create_credential(admin)
    path = f"{PATH}/{credential['id']}"
    await admin.put(path, {"name": ""})
    await admin.put(f"{path}/secrets", {"secrets": {}})
    await admin.post(f"{path}/access", {"integration_type": "tool", "integration_id": "x"})
    await admin.post(f"{path}/test")
    assert await list_actions(admin) == ["created"]


async def test_each_credential_has_its_own_audit_rows(admin: Client, services: Services) -> None:
    first, second = await create_credential(admin), await create_credential(admin)
    await grant_access(admin, first["id"])
    await unseal_credential(services, admin, first["id"])
    with pytest.raises(AccessDenied):
        await unseal_credential(services, admin, second["id"])
    assert await list_actions(admin, first["id"]) == ["used", "access_granted", "created"]
    assert await list_actions(admin, second["id"]) == ["denied", "created"]
    rows = await list_audit(admin)
    assert [row["credential_id"] for row in rows] == [
        second["id"],
        first["id"],
        first["id"],
        second["id"],
        first["id"],
    ]


async def test_the_audit_log_comes_in_pages(admin: Client) -> None:
    credential = await create_credential(admin)
    for number in range(6):
        await admin.put(f"{PATH}/{credential['id']}", {"name": str(number)})
    rows = await list_audit(admin)
    for path in (f"{PATH}/audit", f"{PATH}/{credential['id']}/audit"):
        pages: list[dict[str, Any]] = []
        for page in (1, 2, 3):
            body = (await admin.get(path, params={"page": page, "per_page": 3})).json()
            assert body["pagination"] == {
                "page": page,
                "per_page": 3,
                "total": 7,
                "total_pages": 3,
            }
            pages += body["data"]
        assert pages == rows
    times = [row["created_at"] for row in rows]
    assert times == sorted(times, reverse=True)


async def test_the_audit_log_is_filtered(admin: Client, services: Services) -> None:
    first, second = await create_credential(admin), await create_credential(admin)
    tool = await create_tool(admin)
    await grant_access(admin, first["id"], IntegrationRef("tool", tool))
    await unseal_credential(services, admin, first["id"], IntegrationRef("tool", tool))
    with pytest.raises(AccessDenied):
        await unseal_credential(services, admin, second["id"])
    rows = await list_audit(admin)
    middle = rows[2]["created_at"]
    for query, count in [
        ({"action": "created"}, 2),
        ({"action": "denied"}, 1),
        ({"actor_type": "tool"}, 1),
        ({"actor_type": "user", "action": "used"}, 0),
        ({"after": middle}, 2),
        ({"before": middle}, 2),
    ]:
        answer = await admin.get(f"{PATH}/audit", params=query)
        assert answer.json()["pagination"]["total"] == count, query
    answer = await admin.get(f"{PATH}/{first['id']}/audit", params={"actor_type": "tool"})
    (row,) = answer.json()["data"]
    assert (row["action"], row["actor_name"], row["integration_name"]) == ("used", "Add", "Add")
    invalid = {"action": "stolen", "actor_type": "visitor", "after": "soon"}
    for name, value in invalid.items():
        answer = await admin.get(f"{PATH}/audit", params={name: value})
        assert set(read_invalid_fields(answer)) == {name}


async def test_names_of_another_tenant_are_not_shown(world: World) -> None:
    """A super_admin works in the tenants of others."""
    admin, root = await world.user("tenant_admin"), await world.user("super_admin")
    credential = await create_credential(admin)
    path = f"{PATH}/{credential['id']}"
    headers = {"X-Tenant-ID": admin.tenant_id}
    answer = await root.put(path, {"description": "Changed"}, headers=headers)
    assert answer.status_code == 200
    changed, created = await list_audit(admin, credential["id"])
    assert (changed["actor_id"], changed["actor_name"]) == (root.user_id, None)
    assert created["actor_name"] == "Test User"


async def test_a_bad_page_is_named(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, int]] = [{"page": 0}, {"per_page": 0}, {"per_page": 101}]
    for query in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(query=query):
            credential = await create_credential(admin)
            for path in (f"{PATH}/audit", f"{PATH}/{credential['id']}/audit"):
                assert set(read_invalid_fields(await admin.get(path, params=query))) == set(query)


async def test_each_tenant_has_an_audit_log_of_its_own(world: World) -> None:
    first_admin, second_admin = await world.user("tenant_admin"), await world.user("tenant_admin")
    first, second = await create_credential(first_admin), await create_credential(second_admin)
    assert [row["credential_id"] for row in await list_audit(first_admin)] == [first["id"]]
    assert [row["credential_id"] for row in await list_audit(second_admin)] == [second["id"]]
