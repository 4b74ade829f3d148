"""What an action needs to know, checked by its type; each wrong key is named."""

from typing import Any

import pytest

from app.services import Services
from tests.asking import refused
from tests.events.database import fetch_rows, load_events
from tests.events.responses import read_field_errors
from tests.subscriptions.factories import (
    PATH,
    WORKFLOW,
    create_subscription,
    create_webhook_for,
    read_subscription,
    subscribe_url,
    subscribe_webhook,
    update_subscription,
)
from tests.world import Client, World

URL = "https://example.com/hook"
MASK = "********"
TITLES = {"title": "Look", "message": "An agent: {{ event.data.name }}"}


def _body(action_type: str, config: Any) -> dict[str, Any]:
    return {**WORKFLOW, "action_type": action_type, "action_config": config}


async def _refused(client: Client, action_type: str, config: Any) -> set[str]:
    """The keys that are wrong, without what they all begin with."""
    found = read_field_errors(await client.post(PATH, _body(action_type, config)))
    assert all(name.startswith("action_config") for name in found)
    return {name.removeprefix("action_config").removeprefix(".") for name in found}


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


# Each type


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, {"workflow_id"}),
        ({"workflow_id": ""}, {"workflow_id"}),
        ({"workflow_id": 7}, {"workflow_id"}),
        ({"workflow_id": None}, {"workflow_id"}),
        ({"workflow_id": "x" * 101}, {"workflow_id"}),
        ({"workflow_id": "wfl_1", "input": []}, {"input"}),
        ({"workflow_id": "wfl_1", "input": "text"}, {"input"}),
        ({"workflow_id": "wfl_1", "input": _nested(20)}, {"input"}),
        ({"workflow_id": "wfl_1", "inputs": {}}, {"inputs"}),
        ({"workflow_id": "wfl_1", "url": URL}, {"url"}),
        ({"input": 1, "other": 2}, {"workflow_id", "input", "other"}),
    ],
)
async def test_what_is_wrong_with_a_workflow_action_is_named(
    developer: Client, config: dict[str, Any], names: set[str]
) -> None:
    assert await _refused(developer, "workflow", config) == names


@pytest.mark.parametrize("given", [{}, {"a": [1, None, {"b": "ünïcode"}]}, _nested(10)], ids=repr)
async def test_a_workflow_may_be_given_input(developer: Client, given: dict[str, Any]) -> None:
    config = {"workflow_id": "wfl_1", "input": given}
    assert (await create_subscription(developer, action_config=config))["action_config"] == config


async def test_filters_are_bounded_in_size(developer: Client) -> None:
    body = {**WORKFLOW, "filters": {"name": {"in": ["x" * 100] * 100}}}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    assert set(error["details"]) == {"filters"}


async def test_what_a_workflow_is_given_is_bounded_in_size(developer: Client) -> None:
    config = {"workflow_id": "wfl_1", "input": {"text": "x" * 70_000}}
    answer = await developer.post(PATH, {**WORKFLOW, "action_config": config})
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"action_config.input"}


@pytest.mark.parametrize(
    ("config", "names"),
    [
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
    ],
)
async def test_what_is_wrong_with_a_webhook_action_is_named(
    developer: Client, config: dict[str, Any], names: set[str]
) -> None:
    assert await _refused(developer, "webhook", config) == names


@pytest.mark.parametrize(
    ("config", "names"),
    [
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
        ({"title": "", "message": "", "role": "viewer"}, {"title", "message"}),
        ({"title": "x" * 201, "message": "x" * 10_001, "role": "viewer"}, {"title", "message"}),
        ({**TITLES, "role": "viewer", "subject": "x"}, {"subject"}),
    ],
)
async def test_what_is_wrong_with_a_notification_is_named(
    developer: Client, config: dict[str, Any], names: set[str]
) -> None:
    assert await _refused(developer, "notification", config) == names


async def test_a_notification_may_name_a_channel_a_role_or_people(
    world: World, developer: Client
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    for target in (
        {"channel_id": "chn_1"},
        {"role": "viewer"},
        {"user_ids": [developer.user_id, colleague.user_id]},
    ):
        config = {**TITLES, **target}
        made = await create_subscription(
            developer, action_type="notification", action_config=config
        )
        assert made["action_config"] == config


async def test_people_of_another_tenant_cannot_be_notified(
    developer: Client, admin: Client
) -> None:
    config = {**TITLES, "user_ids": [developer.user_id, admin.user_id]}
    assert await _refused(developer, "notification", config) == {"user_ids"}


# Webhooks that there are


async def test_a_webhook_that_there_is_can_be_named(developer: Client) -> None:
    webhook_id = await create_webhook_for(developer, URL)
    made = await subscribe_webhook(developer, webhook_id)
    assert made["action_config"] == {"webhook_id": webhook_id}
    assert "secret" not in made


async def test_a_webhook_of_another_tenant_cannot_be_named(
    developer: Client, admin: Client
) -> None:
    theirs = await create_webhook_for(admin, URL)
    assert await _refused(developer, "webhook", {"webhook_id": theirs}) == {"webhook_id"}


async def test_super_admin_cannot_tie_two_tenants_together(
    super_admin: Client, developer: Client
) -> None:
    theirs = await create_webhook_for(developer, URL)
    assert await _refused(super_admin, "webhook", {"webhook_id": theirs}) == {"webhook_id"}
    mine = await create_subscription(super_admin)
    body = {"action_type": "webhook", "action_config": {"webhook_id": theirs}}
    assert set(read_field_errors(await super_admin.put(f"{PATH}/{mine['id']}", body))) == {
        "action_config.webhook_id"
    }


async def test_the_own_address_of_a_subscription_is_no_webhook_to_name(
    developer: Client, services: Services
) -> None:
    made = await subscribe_url(developer, URL)
    (hidden,) = await fetch_rows(
        services, "SELECT id FROM webhooks WHERE subscription_id = $1", made["id"]
    )
    assert await _refused(developer, "webhook", {"webhook_id": hidden["id"]}) == {"webhook_id"}
    for path in (f"/api/v1/webhooks/{hidden['id']}", f"/api/v1/webhooks/{hidden['id']}/executions"):
        assert (await developer.get(path)).status_code == 404
    assert (await developer.get("/api/v1/webhooks")).json()["data"] == []


async def test_headers_belong_to_the_webhook_that_is_named(developer: Client) -> None:
    webhook_id = await create_webhook_for(developer, URL)
    config = {"webhook_id": webhook_id, "headers": {"X-One": "1"}}
    assert await _refused(developer, "webhook", config) == {"headers"}


# Secrets


async def test_the_secret_is_shown_once(developer: Client) -> None:
    made = await subscribe_url(developer, URL)
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert await read_subscription(developer, made["id"]) == made
    answer = await developer.get(PATH)
    assert secret not in answer.text
    assert "secret" not in await update_subscription(developer, made["id"], active=False)


async def test_each_address_has_a_secret_of_its_own(developer: Client) -> None:
    assert (await subscribe_url(developer, URL))["secret"] != (await subscribe_url(developer, URL))[
        "secret"
    ]


async def test_headers_that_open_something_are_masked(developer: Client) -> None:
    headers = {"Authorization": "Bearer planted", "X-Api-Key": "planted", "X-Team": "sales"}
    made = await subscribe_url(developer, URL, config={"headers": headers})
    shown = {"Authorization": MASK, "X-Api-Key": MASK, "X-Team": "sales"}
    assert made["action_config"] == {"url": URL, "headers": shown}
    assert "planted" not in (await developer.get(PATH)).text
    assert "planted" not in str(await update_subscription(developer, made["id"], active=False))


async def test_nothing_secret_is_stored_in_the_open(developer: Client, services: Services) -> None:
    headers = {"Authorization": "Bearer planted-in-the-open"}
    made = await subscribe_url(developer, URL, config={"headers": headers})
    found = await fetch_rows(
        services,
        "SELECT s::text AS s, w::text AS w FROM event_subscriptions s "
        "JOIN webhooks w ON w.subscription_id = s.id WHERE s.id = $1",
        made["id"],
    )
    log = await load_events(services, developer.tenant_id)
    for secret in ("planted-in-the-open", made["secret"].removeprefix("whsec_")):
        assert secret not in str(found)
        assert secret not in str(log)


async def test_an_address_with_a_key_in_it_is_not_told_in_events(
    developer: Client, services: Services
) -> None:
    made = await subscribe_url(developer, f"{URL}?key=planted")
    await update_subscription(developer, made["id"], action_config={"url": f"{URL}?key=planted2"})
    await developer.delete(f"{PATH}/{made['id']}")
    assert "planted" not in str(await load_events(services, developer.tenant_id))


# Another action


async def test_an_address_that_changes_keeps_its_secret(developer: Client) -> None:
    made = await subscribe_url(developer, URL)
    after = await update_subscription(
        developer, made["id"], action_config={"url": f"{URL}/elsewhere"}
    )
    assert after["action_config"] == {"url": f"{URL}/elsewhere"}
    assert "secret" not in after


async def test_a_new_address_for_another_action_has_a_new_secret(developer: Client) -> None:
    made = await create_subscription(developer)
    config = {"url": URL, "headers": {"Authorization": "planted"}}
    after = await update_subscription(
        developer, made["id"], action_type="webhook", action_config=config
    )
    assert after["secret"].startswith("whsec_")
    assert after["action_config"]["headers"] == {"Authorization": MASK}
    gone = await update_subscription(
        developer, made["id"], action_type="workflow", action_config={"workflow_id": "wfl_1"}
    )
    assert gone["action_config"] == {"workflow_id": "wfl_1"}
    again = await update_subscription(
        developer, made["id"], action_type="webhook", action_config={"url": URL}
    )
    assert again["secret"] not in {None, after["secret"]}


async def test_an_address_that_is_given_up_leaves_nothing(
    developer: Client, services: Services
) -> None:
    made, webhook_id = await subscribe_url(developer, URL), await create_webhook_for(developer, URL)
    after = await update_subscription(
        developer, made["id"], action_config={"webhook_id": webhook_id}
    )
    assert after["action_config"] == {"webhook_id": webhook_id}
    sql = "SELECT 1 FROM webhooks WHERE subscription_id = $1"
    assert await fetch_rows(services, sql, made["id"]) == []
    other = await subscribe_url(developer, URL)
    await developer.delete(f"{PATH}/{other['id']}")
    assert await fetch_rows(services, sql, other["id"]) == []


async def test_a_masked_header_that_is_sent_back_stays_as_it_is(
    developer: Client, services: Services
) -> None:
    made = await subscribe_url(developer, URL, config={"headers": {"Authorization": "planted"}})
    after = await update_subscription(
        developer,
        made["id"],
        action_config={"url": URL, "headers": {"Authorization": MASK, "X-New": "1"}},
    )
    assert after["action_config"]["headers"] == {"Authorization": MASK, "X-New": "1"}
    (told,) = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert told["data"]["changed"] == ["action_config"]


async def test_another_value_behind_the_same_mask_is_told_as_a_change(
    developer: Client, services: Services
) -> None:
    made = await subscribe_url(developer, URL, config={"headers": {"Authorization": "planted"}})
    config = {"url": URL, "headers": {"Authorization": "another"}}
    await update_subscription(developer, made["id"], action_config=config)
    found = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert [row["data"]["changed"] for row in found] == [["action_config"]]


async def test_a_masked_header_does_not_move_to_another_host(developer: Client) -> None:
    made = await subscribe_url(developer, URL, config={"headers": {"Authorization": "planted"}})
    moved = {"url": "https://elsewhere.example.org/", "headers": {"Authorization": MASK}}
    answer = await developer.put(f"{PATH}/{made['id']}", {"action_config": moved})
    assert set(read_field_errors(answer)) == {"action_config.headers.Authorization"}
    assert (await read_subscription(developer, made["id"]))["action_config"]["url"] == URL
    bare = {"url": "https://elsewhere.example.org/"}
    assert (await update_subscription(developer, made["id"], action_config=bare))[
        "action_config"
    ] == bare


async def test_who_only_switches_it_need_not_say_its_action_again(developer: Client) -> None:
    made = await subscribe_url(developer, URL, config={"headers": {"Authorization": "planted"}})
    off = await update_subscription(developer, made["id"], active=False)
    assert (off["active"], off["action_config"]) == (False, made["action_config"])


@pytest.mark.parametrize("action", ["workflow", "notification"])
async def test_an_action_that_nothing_handles_yet_is_refused(
    developer: Client, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.undo()
    body = {"event_type": "agent.created", "action_type": action, "action_config": {"title": "x"}}
    refusal = refused(await developer.post(PATH, body), 422, "validation_error")
    assert refusal["details"] == {"action_type": f"nothing handles {action} actions yet"}


async def test_a_subscription_does_not_become_one_that_nothing_handles(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await create_subscription(developer, action_type="webhook", action_config={"url": URL})
    monkeypatch.undo()
    change = {"action_type": "workflow", "action_config": {"workflow_id": "wfl_1"}}
    answer = await developer.put(f"{PATH}/{made['id']}", change)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"action_type"}
