"""Activates or deactivates all subscriptions of one workflow."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import (
    create_draft,
    create_subscription,
    find_draft,
    read_subscription,
    subscribe_url,
)
from tests.platform.events.database import load_events, load_work
from tests.platform.events.factories import create_agent_and_wait
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")

SWITCHES = ["activate", "deactivate"]


def _path(workflow_id: str, switch: str) -> str:
    return f"/api/v1/workflows/{workflow_id}/subscriptions/{switch}"


async def _switch(client: Client, workflow_id: str, switch: str) -> object:
    answer = await client.post(_path(workflow_id, switch))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _read_active(client: Client, subscriptions: list[dict[str, Any]]) -> list[bool]:
    return [
        (await read_subscription(client, subscription["id"]))["active"]
        for subscription in subscriptions
    ]


async def test_all_subscriptions_of_a_workflow_are_switched_and_counted(developer: Client) -> None:
    subscriptions = [await create_subscription(developer, active=on) for on in (True, True, False)]
    other_config = {"workflow_id": await create_draft(developer)}
    other = await create_subscription(developer, action_config=other_config)
    workflow_id = await find_draft(developer)
    result = await _switch(developer, workflow_id, "deactivate")
    assert result == {"workflow_id": workflow_id, "updated": 2}
    assert await _read_active(developer, subscriptions) == [False] * 3
    assert (await read_subscription(developer, other["id"]))["active"] is True
    result = await _switch(developer, workflow_id, "activate")
    assert result == {"workflow_id": workflow_id, "updated": 3}
    assert await _read_active(developer, subscriptions) == [True] * 3


async def test_subscriptions_already_in_the_state_are_not_counted(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for switch in SWITCHES:
        with subtests.test(switch=switch):
            developer = await world.user()
            subscription = await create_subscription(developer, active=switch == "activate")
            workflow_id = await find_draft(developer)
            result = await _switch(developer, workflow_id, switch)
            assert result == {"workflow_id": workflow_id, "updated": 0}
            assert await read_subscription(developer, subscription["id"]) == subscription
            assert (
                await load_events(services, developer.tenant_id, "system.subscription.updated")
                == []
            )


async def test_each_switched_subscription_emits_an_event(
    developer: Client, services: Services
) -> None:
    subscriptions = [
        await create_subscription(developer, event_type=name)
        for name in ("agent.created", "agent.deleted")
    ]
    await _switch(developer, await find_draft(developer), "deactivate")
    events = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert [row["data"] for row in events] == [
        {
            "subscription_id": subscription["id"],
            "event_type": subscription["event_type"],
            "action_type": "workflow",
            "changed": ["active"],
        }
        for subscription in subscriptions
    ]
    stored = await read_subscription(developer, subscriptions[0]["id"])
    assert stored["updated_at"] > subscriptions[0]["updated_at"]


async def test_a_deactivated_subscription_does_nothing_until_activated(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    await _switch(developer, await find_draft(developer), "deactivate")
    await create_agent_and_wait(services, developer)
    assert await load_work(services, developer.tenant_id) == []
    await _switch(developer, await find_draft(developer), "activate")
    await create_agent_and_wait(services, developer)
    assert (await read_subscription(developer, subscription["id"]))["trigger_count"] == 1


async def test_other_actions_that_mention_the_workflow_are_not_switched(developer: Client) -> None:
    workflow_id = await find_draft(developer)
    other = await subscribe_url(developer, f"https://example.com/{workflow_id}")
    notification = await create_subscription(
        developer,
        action_type="notification",
        action_config={"role": "viewer", "title": workflow_id, "message": workflow_id},
    )
    result = await _switch(developer, workflow_id, "deactivate")
    assert result == {"workflow_id": workflow_id, "updated": 0}
    assert await _read_active(developer, [other, notification]) == [True, True]


async def test_an_unknown_workflow_is_404(developer: Client, subtests: pytest.Subtests) -> None:
    for switch in SWITCHES:
        for workflow_id in ("wfl_nothing", "x" * 3000, "%25", "wfl_1'--", "ü"):
            with subtests.test(switch=switch, workflow_id=workflow_id):
                await create_subscription(developer)
                refused(await developer.post(_path(workflow_id, switch)), 404, "workflow_not_found")


async def test_another_tenants_workflow_is_404_and_stays_as_it_is(
    world: World, subtests: pytest.Subtests
) -> None:
    for switch in SWITCHES:
        with subtests.test(switch=switch):
            developer = await world.user()
            admin = await world.user("tenant_admin")
            subscriptions = [
                await create_subscription(developer, active=on) for on in (True, False)
            ]
            path = _path(await find_draft(developer), switch)
            refused(await admin.post(path), 404, "workflow_not_found")
            assert [
                await read_subscription(developer, subscription["id"])
                for subscription in subscriptions
            ] == subscriptions


async def test_subscriptions_of_a_deleted_workflow_can_still_be_switched_off(
    developer: Client,
) -> None:
    workflow_id = await create_draft(developer)
    own = await create_subscription(developer, action_config={"workflow_id": workflow_id})
    assert (await developer.delete(f"/api/v1/workflows/{workflow_id}")).status_code == 204
    result = await _switch(developer, workflow_id, "deactivate")
    assert result == {"workflow_id": workflow_id, "updated": 1}
    assert (await read_subscription(developer, own["id"]))["active"] is False


async def test_a_role_without_permission_gets_403(world: World, subtests: pytest.Subtests) -> None:
    for switch in SWITCHES:
        for role in ("agent_user", "viewer"):
            with subtests.test(switch=switch, role=role):
                answer = await (await world.user(role)).post(_path("wfl_nothing", switch))
                error = refused(answer, 403, "forbidden")
                assert error["details"] == {"required": "events:write", "your_role": role}


async def test_super_admin_switches_within_the_tenant_that_is_named(
    super_admin: Client, developer: Client, admin: Client
) -> None:
    own = await create_subscription(developer)
    path = _path(await find_draft(developer), "deactivate")
    answer = await super_admin.post(path, headers={"X-Tenant-ID": admin.tenant_id})
    refused(answer, 404, "workflow_not_found")
    assert (await read_subscription(developer, own["id"]))["active"] is True
    answer = await super_admin.post(path, headers={"X-Tenant-ID": developer.tenant_id})
    assert answer.json()["updated"] == 1
    assert (await read_subscription(developer, own["id"]))["active"] is False
