"""The notification action of subscriptions."""

from typing import Any

import pytest

from tests.automation.subscriptions.factories import PATH, create_subscription
from tests.messaging.notifications.center import api
from tests.messaging.notifications.center.api import list_notifications, list_titles
from tests.messaging.notifications.center.post_office import PostOffice
from tests.platform.events.database import load_events, load_work
from tests.platform.events.factories import create_agent
from tests.platform.events.responses import post_json, read_field_errors
from tests.world import Client

TEXTS = {
    "title": "New agent: {{ event.data.name }}",
    "message": "{{ event.type }} of {{ event.data.name | upper }}",
}


async def _subscribe(office: PostOffice, **config: Any) -> None:
    await create_subscription(
        office.admin, action_type="notification", action_config={**TEXTS, **config}
    )


async def _create_agent(office: PostOffice, name: str = "Ada") -> None:
    await create_agent(office.admin, name)
    await office.wait_until_idle()


async def test_users_get_the_texts_with_values_of_the_event(office: PostOffice) -> None:
    user, other = await office.user(), await office.user()
    await _subscribe(office, user_ids=[user.user_id])
    await _create_agent(office)
    (event,) = await load_events(office.services, office.tenant_id, "agent.created")
    (item,) = await list_notifications(user)
    assert (item["title"], item["message"]) == ("New agent: Ada", "agent.created of ADA")
    assert item["type"] == "message"
    assert item["data"] == {"event_id": event["id"], "event_type": "agent.created"}
    assert await list_titles(other) == []


async def test_users_with_a_role_get_it(office: PostOffice) -> None:
    viewers = [await office.user("viewer") for _ in range(2)]
    await _subscribe(office, role="viewer")
    await _create_agent(office)
    assert [await list_titles(user) for user in viewers] == [["New agent: Ada"]] * 2
    assert await list_titles(office.admin) == []


async def test_a_channel_gets_it_whatever_users_prefer(office: PostOffice) -> None:
    channel_id = await office.create_channel("slack_webhook")
    await _subscribe(office, channel_id=channel_id)
    await _create_agent(office)
    (post,) = office.posts()
    assert "New agent: Ada" in post
    assert await list_titles(office.admin) == []


async def test_an_in_app_channel_without_recipients_reaches_all_users(office: PostOffice) -> None:
    users = [office.admin, await office.user()]
    body = {"name": "All", "type": "in_app", "config": {}}
    channel = await post_json(office.admin, api.CHANNELS, body)
    await _subscribe(office, channel_id=channel["id"])
    await _create_agent(office)
    assert [await list_titles(user) for user in users] == [["New agent: Ada"]] * 2


async def test_each_subscription_sends_its_own_message_once(office: PostOffice) -> None:
    for title in ("One", "Two"):
        await _subscribe(office, user_ids=[office.admin.user_id], title=title)
    await _create_agent(office)
    assert await office.run_again("events.act") == 2
    assert sorted(await list_titles(office.admin)) == ["One", "Two"]


async def test_a_title_is_one_line_that_is_not_empty(
    office: PostOffice, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("{{ event.data.unknown }}", "agent.created"),
        ("a\n  b", "a b"),
        ("{{ event.data.name }}\n", "Ada"),
    ]
    for title, expected in cases:
        office = await office.reopen()
        with subtests.test(title=title, expected=expected):
            await _subscribe(office, user_ids=[office.admin.user_id], title=title)
            await _create_agent(office)
            assert await list_titles(office.admin) == [expected]


async def test_an_action_for_a_deleted_channel_is_dead_with_a_reason(office: PostOffice) -> None:
    channel_id = await office.create_channel("slack_webhook")
    await _subscribe(office, channel_id=channel_id)
    assert (await office.admin.delete(f"{api.CHANNELS}/{channel_id}")).status_code == 204
    await _create_agent(office)
    (action,) = await load_work(office.services, office.tenant_id, "events.act")
    assert (action["state"], action["attempt"]) == ("dead", 1)
    assert action["last_error"] == ("the channel that this subscription names no longer exists")
    (dead,) = await load_events(office.services, office.tenant_id, "system.work.dead")
    assert dead["data"]["error"] == action["last_error"]


async def test_a_channel_of_another_tenant_is_refused(office: PostOffice, admin: Client) -> None:
    channel_id = await office.create_channel("slack_webhook")
    body = {
        "event_type": "agent.created",
        "action_type": "notification",
        "action_config": TEXTS | {"channel_id": channel_id},
    }
    assert list(read_field_errors(await admin.post(PATH, body))) == ["action_config.channel_id"]
