"""Validation of `action_config` by the type of the action, and its updates."""

from typing import Any

import pytest

from app.services import Services
from tests.automation.subscriptions.factories import (
    PATH,
    WORKFLOW,
    build_nested,
    create_subscription,
    create_webhook_for,
    find_draft,
    read_subscription,
    subscribe_url,
    subscribe_webhook,
    update_subscription,
)
from tests.database import fetch_rows
from tests.messaging.webhooks.factories import unseal_keys
from tests.platform.events.database import load_events
from tests.platform.events.responses import read_field_errors
from tests.world import Client, World

URL = "https://example.com/hook"
MASK = "********"
TITLES = {"title": "Look", "message": "An agent: {{ event.data.name }}"}


def _body(action_type: str, config: Any) -> dict[str, Any]:
    return {**WORKFLOW, "action_type": action_type, "action_config": config}


async def _find_refused_keys(client: Client, action_type: str, config: Any) -> set[str]:
    """Returns the refused keys without the prefix `action_config`."""
    errors = read_field_errors(await client.post(PATH, _body(action_type, config)))
    assert all(name.startswith("action_config") for name in errors)
    return {name.removeprefix("action_config").removeprefix(".") for name in errors}


# Config of each action type


_INVALID_WORKFLOW_CONFIGS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"workflow_id"}),
    ({"workflow_id": ""}, {"workflow_id"}),
    ({"workflow_id": 7}, {"workflow_id"}),
    ({"workflow_id": None}, {"workflow_id"}),
    ({"workflow_id": "x" * 101}, {"workflow_id"}),
    ({"workflow_id": "wfl_1", "input": []}, {"input"}),
    ({"workflow_id": "wfl_1", "input": "text"}, {"input"}),
    ({"workflow_id": "wfl_1", "input": build_nested(21)}, {"input"}),
    ({"workflow_id": "wfl_1", "inputs": {}}, {"inputs"}),
    ({"workflow_id": "wfl_1", "url": URL}, {"url"}),
    ({"input": 1, "other": 2}, {"workflow_id", "input", "other"}),
]


async def test_a_wrong_workflow_config_names_the_field(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for config, names in _INVALID_WORKFLOW_CONFIGS:
        with subtests.test(config=config, names=names):
            assert await _find_refused_keys(developer, "workflow", config) == names


async def test_a_workflow_may_have_input(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [{}, {"a": [1, None, {"b": "ünïcode"}]}, build_nested(11)]
    for workflow_input in cases:
        with subtests.test(workflow_input=workflow_input):
            developer = await world.user()
            config = {"workflow_id": await find_draft(developer), "input": workflow_input}
            assert (await create_subscription(developer, action_config=config))[
                "action_config"
            ] == config


async def test_a_workflow_that_the_tenant_does_not_have_is_refused(
    developer: Client, admin: Client, subtests: pytest.Subtests
) -> None:
    for workflow_id in ("wfl_nothing", await find_draft(admin)):
        with subtests.test(workflow_id=workflow_id):
            config = {"workflow_id": workflow_id}
            assert await _find_refused_keys(developer, "workflow", config) == {"workflow_id"}


async def test_a_template_of_the_input_that_cannot_be_rendered_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for text in ("{{ event.data.", "{{ nodes.a }}", "{% if %}"):
        with subtests.test(text=text):
            config = {"workflow_id": await find_draft(developer), "input": {"a": [text]}}
            assert await _find_refused_keys(developer, "workflow", config) == {"input"}


async def test_the_size_of_filters_is_limited(developer: Client) -> None:
    config = {"workflow_id": await find_draft(developer)}
    filters = {"name": {"in": ["x" * 100] * 100}}
    body = {**WORKFLOW, "action_config": config, "filters": filters}
    assert set(read_field_errors(await developer.post(PATH, body))) == {"filters"}


async def test_the_size_of_workflow_input_is_limited(developer: Client) -> None:
    config = {"workflow_id": "wfl_1", "input": {"text": "x" * 70_000}}
    answer = await developer.post(PATH, {**WORKFLOW, "action_config": config})
    assert set(read_field_errors(answer)) == {"action_config.input"}


_INVALID_WEBHOOK_CONFIGS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {""}),
    ({"headers": {}}, {""}),
    ({"url": URL, "webhook_id": "whk_x"}, {""}),
    ({"url": ""}, {"url"}),
    ({"url": 7}, {"url"}),
    ({"url": "not an address"}, {"url"}),
    ({"url": "ftp://example.com"}, {"url"}),
    ({"url": "javascript:alert(1)"}, {"url"}),
    ({"url": "http://example.com/hook"}, {"url"}),
    ({"url": "https://user:secret@example.com/"}, {"url"}),
    ({"url": "https://10.0.0.1/hook"}, {"url"}),
    ({"url": "https://169.254.169.254/latest"}, {"url"}),
    ({"url": "https://[::1]/hook"}, {"url"}),
    ({"url": "https://example.com/" + "x" * 2000}, {"url"}),
    ({"webhook_id": "whk_nothing"}, {"webhook_id"}),
    ({"webhook_id": ""}, {"webhook_id"}),
    ({"webhook_id": 7}, {"webhook_id"}),
    ({"url": URL, "secret": "whsec_mine"}, {"secret"}),
    ({"url": URL, "headers": []}, {"headers"}),
    ({"url": URL, "headers": {"X-One": 1}}, {"headers.X-One"}),
    ({"url": URL, "headers": {"X One": "1"}}, {"headers.X One"}),
    ({"url": URL, "headers": {"X-One": "a\r\nX-Two: b"}}, {"headers.X-One"}),
    ({"url": URL, "headers": {"Host": "x"}}, {"headers.Host"}),
    ({"url": URL, "headers": {"X-Service-Test": "1"}}, {"headers.X-Service-Test"}),
    ({"url": URL, "headers": {"webhook-id": "1"}}, {"headers.webhook-id"}),
    ({"url": URL, "headers": {"Authorization": MASK}}, {"headers.Authorization"}),
    ({"url": URL, "headers": {f"X-{n}": "v" for n in range(21)}}, {"headers"}),
]


async def test_a_wrong_webhook_config_names_the_field(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for config, names in _INVALID_WEBHOOK_CONFIGS:
        with subtests.test(config=config, names=names):
            assert await _find_refused_keys(developer, "webhook", config) == names


_INVALID_NOTIFICATION_CONFIGS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"title", "message"}),
    (TITLES, {""}),
    ({**TITLES, "role": "viewer", "channel_id": "chn_1"}, {""}),
    ({**TITLES, "role": "emperor"}, {"role"}),
    ({**TITLES, "role": 7}, {"role"}),
    ({**TITLES, "user_ids": []}, {"user_ids"}),
    ({**TITLES, "user_ids": "usr_1"}, {"user_ids"}),
    ({**TITLES, "user_ids": ["usr_nothing"]}, {"user_ids"}),
    ({**TITLES, "user_ids": [7]}, {"user_ids.0"}),
    ({**TITLES, "user_ids": [""]}, {"user_ids.0"}),
    ({**TITLES, "channel_id": ""}, {"channel_id"}),
    ({**TITLES, "channel_id": "nch_nothing"}, {"channel_id"}),
    ({"title": "{{ event.data.", "message": "x", "role": "viewer"}, {"title"}),
    ({"title": "x", "message": "{% for a in b %}", "role": "viewer"}, {"message"}),
    ({"title": "{{ secrets }}", "message": "x", "role": "viewer"}, {"title"}),
    ({"title": "", "message": "", "role": "viewer"}, {"title", "message"}),
    ({"title": "x" * 201, "message": "x" * 10_001, "role": "viewer"}, {"title", "message"}),
    ({**TITLES, "role": "viewer", "subject": "x"}, {"subject"}),
]


async def test_a_wrong_notification_config_names_the_field(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for config, names in _INVALID_NOTIFICATION_CONFIGS:
        with subtests.test(config=config, names=names):
            assert await _find_refused_keys(developer, "notification", config) == names


async def test_a_notification_may_name_a_channel_a_role_or_users(
    world: World, developer: Client
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    channel = await developer.post(
        "/api/v1/notification-channels", {"name": "Center", "type": "in_app", "config": {}}
    )
    for target in (
        {"channel_id": channel.json()["id"]},
        {"role": "viewer"},
        {"user_ids": [developer.user_id, colleague.user_id]},
    ):
        config = {**TITLES, **target}
        subscription = await create_subscription(
            developer, action_type="notification", action_config=config
        )
        assert subscription["action_config"] == config


async def test_users_of_another_tenant_cannot_be_notified(developer: Client, admin: Client) -> None:
    config = {**TITLES, "user_ids": [developer.user_id, admin.user_id]}
    assert await _find_refused_keys(developer, "notification", config) == {"user_ids"}


# Existing webhooks


async def test_an_existing_webhook_can_be_named(developer: Client) -> None:
    webhook_id = await create_webhook_for(developer, URL)
    subscription = await subscribe_webhook(developer, webhook_id)
    assert subscription["action_config"] == {"webhook_id": webhook_id}
    assert "secret" not in subscription


async def test_a_webhook_of_another_tenant_cannot_be_named(
    developer: Client, admin: Client
) -> None:
    other_webhook_id = await create_webhook_for(admin, URL)
    assert await _find_refused_keys(developer, "webhook", {"webhook_id": other_webhook_id}) == {
        "webhook_id"
    }


async def test_super_admin_cannot_name_a_webhook_of_another_tenant(
    super_admin: Client, developer: Client
) -> None:
    other_webhook_id = await create_webhook_for(developer, URL)
    assert await _find_refused_keys(super_admin, "webhook", {"webhook_id": other_webhook_id}) == {
        "webhook_id"
    }
    subscription = await create_subscription(super_admin)
    body = {"action_type": "webhook", "action_config": {"webhook_id": other_webhook_id}}
    answer = await super_admin.put(f"{PATH}/{subscription['id']}", body)
    assert set(read_field_errors(answer)) == {"action_config.webhook_id"}


async def test_the_address_of_a_subscription_cannot_be_named_as_a_webhook(
    developer: Client, services: Services
) -> None:
    subscription = await subscribe_url(developer, URL)
    (endpoint,) = await fetch_rows(
        services, "SELECT id FROM webhooks WHERE subscription_id = $1", subscription["id"]
    )
    assert await _find_refused_keys(developer, "webhook", {"webhook_id": endpoint["id"]}) == {
        "webhook_id"
    }
    for path in (
        f"/api/v1/webhooks/{endpoint['id']}",
        f"/api/v1/webhooks/{endpoint['id']}/executions",
    ):
        assert (await developer.get(path)).status_code == 404
    assert (await developer.get("/api/v1/webhooks")).json()["data"] == []


async def test_headers_are_refused_with_a_named_webhook(developer: Client) -> None:
    webhook_id = await create_webhook_for(developer, URL)
    config = {"webhook_id": webhook_id, "headers": {"X-One": "1"}}
    assert await _find_refused_keys(developer, "webhook", config) == {"headers"}


# Updates of the action


async def test_changing_the_address_keeps_the_secret(developer: Client) -> None:
    subscription = await subscribe_url(developer, URL)
    updated = await update_subscription(
        developer, subscription["id"], action_config={"url": f"{URL}/elsewhere"}
    )
    assert updated["action_config"] == {"url": f"{URL}/elsewhere"}
    assert "secret" not in updated


async def test_a_new_address_for_another_action_has_a_new_secret(developer: Client) -> None:
    subscription = await create_subscription(developer)
    config = {"url": URL, "headers": {"Authorization": "planted"}}
    first = await update_subscription(
        developer, subscription["id"], action_type="webhook", action_config=config
    )
    assert first["secret"].startswith("whsec_")
    assert first["action_config"]["headers"] == {"Authorization": MASK}
    workflow = await update_subscription(
        developer,
        subscription["id"],
        action_type="workflow",
        action_config=subscription["action_config"],
    )
    assert workflow["action_config"] == subscription["action_config"]
    second = await update_subscription(
        developer, subscription["id"], action_type="webhook", action_config={"url": URL}
    )
    assert second["secret"] not in {None, first["secret"]}


async def test_removing_the_address_deletes_its_endpoint(
    developer: Client, services: Services
) -> None:
    subscription, webhook_id = (
        await subscribe_url(developer, URL),
        await create_webhook_for(developer, URL),
    )
    updated = await update_subscription(
        developer, subscription["id"], action_config={"webhook_id": webhook_id}
    )
    assert updated["action_config"] == {"webhook_id": webhook_id}
    sql = "SELECT 1 FROM webhooks WHERE subscription_id = $1"
    assert await fetch_rows(services, sql, subscription["id"]) == []
    other = await subscribe_url(developer, URL)
    await developer.delete(f"{PATH}/{other['id']}")
    assert await fetch_rows(services, sql, other["id"]) == []


async def test_a_masked_header_keeps_its_value(developer: Client, services: Services) -> None:
    subscription = await subscribe_url(
        developer, URL, config={"headers": {"Authorization": "planted"}}
    )
    updated = await update_subscription(
        developer,
        subscription["id"],
        action_config={"url": URL, "headers": {"Authorization": MASK, "X-New": "1"}},
    )
    assert updated["action_config"]["headers"] == {"Authorization": MASK, "X-New": "1"}
    sql = "SELECT id FROM webhooks WHERE subscription_id = $1"
    (endpoint,) = await fetch_rows(services, sql, subscription["id"])
    keys = await unseal_keys(services, developer, endpoint["id"])
    assert keys.headers == {"Authorization": "planted", "X-New": "1"}
    (event,) = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert event["data"]["changed"] == ["action_config"]


async def test_a_new_value_with_the_same_mask_is_a_change(
    developer: Client, services: Services
) -> None:
    subscription = await subscribe_url(
        developer, URL, config={"headers": {"Authorization": "planted"}}
    )
    config = {"url": URL, "headers": {"Authorization": "another"}}
    await update_subscription(developer, subscription["id"], action_config=config)
    events = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert [row["data"]["changed"] for row in events] == [["action_config"]]


async def test_a_masked_header_does_not_move_to_another_host(developer: Client) -> None:
    subscription = await subscribe_url(
        developer, URL, config={"headers": {"Authorization": "planted"}}
    )
    config = {"url": "https://elsewhere.example.org/", "headers": {"Authorization": MASK}}
    answer = await developer.put(f"{PATH}/{subscription['id']}", {"action_config": config})
    assert set(read_field_errors(answer)) == {"action_config.headers.Authorization"}
    assert (await read_subscription(developer, subscription["id"]))["action_config"]["url"] == URL
    without_headers = {"url": "https://elsewhere.example.org/"}
    updated = await update_subscription(
        developer, subscription["id"], action_config=without_headers
    )
    assert updated["action_config"] == without_headers


async def test_active_can_be_changed_without_the_action(developer: Client) -> None:
    subscription = await subscribe_url(
        developer, URL, config={"headers": {"Authorization": "planted"}}
    )
    updated = await update_subscription(developer, subscription["id"], active=False)
    assert (updated["active"], updated["action_config"]) == (False, subscription["action_config"])
