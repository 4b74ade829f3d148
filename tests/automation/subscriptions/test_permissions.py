"""Who may see and change subscriptions."""

import pytest

from tests.assertions import refused
from tests.automation.subscriptions.factories import (
    PATH,
    WORKFLOW,
    create_subscription,
    list_ids,
    read_subscription,
    update_subscription,
)
from tests.world import Client, World

ROLES = ["super_admin", "tenant_admin", "agent_developer"]
OTHER_ROLES = ["agent_user", "viewer"]


_REQUESTS: list[tuple[str, str, str]] = [
    ("GET", "", "events:read"),
    ("POST", "", "events:write"),
    ("GET", "/sub_x", "events:read"),
    ("PUT", "/sub_x", "events:write"),
    ("DELETE", "/sub_x", "events:write"),
    ("GET", "/sub_x/executions", "events:read"),
    ("GET", "/sub_x/executions/dlv_x", "events:read"),
    ("POST", "/sub_x/executions/dlv_x/redeliver", "events:write"),
]


async def test_a_role_without_permission_gets_403(world: World, subtests: pytest.Subtests) -> None:
    for role in OTHER_ROLES:
        for method, path, permission in _REQUESTS:
            with subtests.test(role=role, method=method):
                error = refused(
                    await (await world.user(role))(method, PATH + path, json={}), 403, "forbidden"
                )
                assert error["details"] == {"required": permission, "your_role": role}


async def test_a_role_with_permission_manages_subscriptions(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            caller = await world.user(role)
            subscription = await create_subscription(caller)
            assert (await update_subscription(caller, subscription["id"], active=False))[
                "active"
            ] is False
            assert (await caller.delete(f"{PATH}/{subscription['id']}")).status_code == 204


async def test_another_tenants_subscription_is_not_found(
    world: World, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "PUT", "DELETE"):
        with subtests.test(method=method):
            developer = await world.user()
            admin = await world.user("tenant_admin")
            subscription = await create_subscription(developer)
            answer = await admin(method, f"{PATH}/{subscription['id']}", json={"active": False})
            refused(answer, 404, "subscription_not_found")
            assert await read_subscription(developer, subscription["id"]) == subscription
            assert await list_ids(admin) == []


async def test_super_admin_reads_any_tenant_and_creates_in_the_one_of_the_header(
    super_admin: Client, developer: Client
) -> None:
    subscription = await create_subscription(developer)
    assert (await read_subscription(super_admin, subscription["id"]))["id"] == subscription["id"]
    headers = {"X-Tenant-ID": developer.tenant_id}
    body = {**WORKFLOW, "action_config": subscription["action_config"]}
    answer = await super_admin.post(PATH, body, headers=headers)
    assert answer.status_code == 201
    assert await list_ids(developer) == [answer.json()["id"], subscription["id"]]
    own = await create_subscription(super_admin)
    refused(await developer.get(f"{PATH}/{own['id']}"), 404, "subscription_not_found")
