"""Lists of incoming webhooks, tenants and permissions."""

import pytest

from tests.assertions import refused
from tests.automation.incoming.api import PATH
from tests.automation.incoming.factories import create_webhook
from tests.world import Client, World

# Lists


async def test_the_list_has_the_newest_first_in_pages(developer: Client) -> None:
    webhooks = [await create_webhook(developer, name=f"N{number}") for number in range(3)]
    first = (await developer.get(PATH, params={"per_page": 2})).json()
    assert first == {
        "data": [webhooks[2], webhooks[1]],
        "pagination": {"page": 1, "per_page": 2, "total": 3, "total_pages": 2},
    }
    second = (await developer.get(PATH, params={"per_page": 2, "page": 2})).json()
    assert second["data"] == [webhooks[0]]


async def test_the_list_can_be_sorted_and_filtered(developer: Client) -> None:
    for name, active in (("B", True), ("A", False), ("C", True)):
        await create_webhook(developer, name=name, active=active)

    async def list_names(**params: str) -> list[str]:
        return [item["name"] for item in (await developer.get(PATH, params=params)).json()["data"]]

    assert await list_names(sort="name") == ["A", "B", "C"]
    assert await list_names(sort="-name") == ["C", "B", "A"]
    assert await list_names(sort="created_at", active="true") == ["B", "C"]
    assert await list_names(active="false") == ["A"]


async def test_a_parameter_out_of_bounds_is_named(world: World, subtests: pytest.Subtests) -> None:
    for name in ("sort", "active", "page", "per_page"):
        with subtests.test(name=name):
            developer = await world.user()
            answer = await developer.get(PATH, params={name: "secret"})
            assert set(refused(answer, 422, "validation_error")["details"]) == {name}


# Tenants and permissions


async def test_webhooks_of_another_tenant_are_not_found(developer: Client, admin: Client) -> None:
    webhook = await create_webhook(admin)
    path = f"{PATH}/{webhook['id']}"
    for method, url, body in (
        ("GET", path, None),
        ("PUT", path, {"name": "Mine"}),
        ("DELETE", path, None),
        ("GET", f"{path}/events", None),
        ("POST", f"{path}/events/evt_1/replay", None),
    ):
        answer = await developer(method, url, json=body)
        refused(answer, 404, "incoming_webhook_not_found")
    assert (await developer.get(PATH)).json()["data"] == []
    assert (await admin.get(path)).json() == webhook


async def test_super_admin_reads_webhooks_and_creates_them_in_the_tenant_of_the_header(
    super_admin: Client, developer: Client
) -> None:
    webhook = await create_webhook(developer)
    assert (await super_admin.get(f"{PATH}/{webhook['id']}")).json() == webhook
    answer = await super_admin.post(
        PATH, {"name": "For them"}, headers={"x-tenant-id": developer.tenant_id}
    )
    assert (await developer.get(f"{PATH}/{answer.json()['id']}")).status_code == 200


async def test_roles_without_webhook_permissions_get_403(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("agent_user", "viewer"):
        with subtests.test(role=role):
            caller = await world.user(role)
            for method, path, permission in (
                ("GET", PATH, "webhooks:read"),
                ("POST", PATH, "webhooks:write"),
                ("GET", f"{PATH}/inh_1", "webhooks:read"),
                ("PUT", f"{PATH}/inh_1", "webhooks:write"),
                ("DELETE", f"{PATH}/inh_1", "webhooks:write"),
                ("GET", f"{PATH}/inh_1/events", "webhooks:read"),
                ("POST", f"{PATH}/inh_1/events/evt_1/replay", "webhooks:write"),
            ):
                error = refused(await caller(method, path, json={"name": "x"}), 403, "forbidden")
                assert error["details"] == {"required": permission, "your_role": role}


async def test_a_list_without_signing_in_is_401(anonymous: Client) -> None:
    refused(await anonymous.get(PATH), 401, "unauthorized")
