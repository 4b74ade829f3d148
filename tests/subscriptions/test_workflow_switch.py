"""All subscriptions of one workflow switched on or off at once."""

import pytest

from app.services import Services
from tests.asking import refused
from tests.events.database import load_events, load_work
from tests.events.factories import create_agent_and_wait
from tests.subscriptions.factories import create_subscription, read_subscription, subscribe_url
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")

BOTH = ["activate", "deactivate"]


def _path(workflow_id: str, way: str) -> str:
    return f"/api/v1/workflows/{workflow_id}/subscriptions/{way}"


async def _switch(client: Client, workflow_id: str, way: str) -> object:
    answer = await client.post(_path(workflow_id, way))
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_all_of_a_workflow_are_switched_and_counted(developer: Client) -> None:
    made = [await create_subscription(developer, active=on) for on in (True, True, False)]
    other = await create_subscription(developer, action_config={"workflow_id": "wfl_2"})
    told = await _switch(developer, "wfl_1", "deactivate")
    assert told == {"workflow_id": "wfl_1", "updated": 2}
    assert [(await read_subscription(developer, one["id"]))["active"] for one in made] == [
        False
    ] * 3
    assert (await read_subscription(developer, other["id"]))["active"] is True
    told = await _switch(developer, "wfl_1", "activate")
    assert told == {"workflow_id": "wfl_1", "updated": 3}
    assert [(await read_subscription(developer, one["id"]))["active"] for one in made] == [True] * 3


@pytest.mark.parametrize("way", BOTH)
async def test_what_is_already_so_is_not_counted_and_not_told(
    developer: Client, services: Services, way: str
) -> None:
    made = await create_subscription(developer, active=way == "activate")
    assert await _switch(developer, "wfl_1", way) == {"workflow_id": "wfl_1", "updated": 0}
    assert await read_subscription(developer, made["id"]) == made
    assert await load_events(services, developer.tenant_id, "system.subscription.updated") == []


async def test_each_one_that_is_switched_is_told(developer: Client, services: Services) -> None:
    made = [
        await create_subscription(developer, event_type=name)
        for name in ("agent.created", "agent.deleted")
    ]
    await _switch(developer, "wfl_1", "deactivate")
    found = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert [row["data"] for row in found] == [
        {
            "subscription_id": one["id"],
            "event_type": one["event_type"],
            "action_type": "workflow",
            "changed": ["active"],
        }
        for one in made
    ]
    assert (await read_subscription(developer, made[0]["id"]))["updated_at"] > made[0]["updated_at"]


async def test_what_is_switched_off_does_nothing_until_it_is_on_again(
    developer: Client, services: Services
) -> None:
    made = await create_subscription(developer)
    await _switch(developer, "wfl_1", "deactivate")
    await create_agent_and_wait(services, developer)
    assert await load_work(services, developer.tenant_id) == []
    await _switch(developer, "wfl_1", "activate")
    await create_agent_and_wait(services, developer)
    assert (await read_subscription(developer, made["id"]))["trigger_count"] == 1


async def test_other_actions_that_name_it_somewhere_are_not_switched(developer: Client) -> None:
    other = await subscribe_url(developer, "https://example.com/wfl_1")
    note = await create_subscription(
        developer,
        action_type="notification",
        action_config={"role": "viewer", "title": "wfl_1", "message": "wfl_1"},
    )
    refused(await developer.post(_path("wfl_1", "deactivate")), 404, "workflow_not_found")
    for one in (other, note):
        assert (await read_subscription(developer, one["id"]))["active"] is True


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("workflow_id", ["wfl_nothing", "x" * 3000, "%25", "wfl_1'--", "ü"])
async def test_an_unknown_workflow_is_404(developer: Client, way: str, workflow_id: str) -> None:
    await create_subscription(developer)
    refused(await developer.post(_path(workflow_id, way)), 404, "workflow_not_found")


@pytest.mark.parametrize("way", BOTH)
async def test_another_tenants_workflow_is_404_and_stays_as_it_is(
    developer: Client, admin: Client, way: str
) -> None:
    made = [await create_subscription(developer, active=on) for on in (True, False)]
    refused(await admin.post(_path("wfl_1", way)), 404, "workflow_not_found")
    assert [await read_subscription(developer, one["id"]) for one in made] == made


async def test_two_tenants_that_use_the_same_id_switch_their_own(
    developer: Client, admin: Client
) -> None:
    mine, theirs = await create_subscription(developer), await create_subscription(admin)
    assert await _switch(admin, "wfl_1", "deactivate") == {"workflow_id": "wfl_1", "updated": 1}
    assert (await read_subscription(developer, mine["id"]))["active"] is True
    assert (await read_subscription(admin, theirs["id"]))["active"] is False


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_who_may_not_gets_403(world: World, way: str, role: str) -> None:
    answer = await (await world.user(role)).post(_path("wfl_1", way))
    error = refused(answer, 403, "forbidden")
    assert error["details"] == {"required": "events:write", "your_role": role}


async def test_super_admin_switches_within_the_tenant_that_is_named(
    super_admin: Client, developer: Client, admin: Client
) -> None:
    config = {"workflow_id": f"wfl_{developer.tenant_id}"}
    mine = await create_subscription(developer, action_config=config)
    theirs = await create_subscription(admin, action_config=config)
    path = _path(config["workflow_id"], "deactivate")
    answer = await super_admin.post(path, headers={"X-Tenant-ID": developer.tenant_id})
    assert answer.json()["updated"] == 1
    assert (await read_subscription(developer, mine["id"]))["active"] is False
    assert (await read_subscription(admin, theirs["id"]))["active"] is True
    assert (await super_admin.post(path)).json()["updated"] == 1
    assert (await read_subscription(admin, theirs["id"]))["active"] is False
