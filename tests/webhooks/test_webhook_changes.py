"""Webhooks changed and deleted, and the events that tell of it."""

from typing import Any

import pytest

from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver
from tests.events.database import run_sql
from tests.events.factories import create_agent
from tests.webhooks.factories import (
    PATH,
    VIEW_KEYS,
    create_webhook,
    list_events,
    read_webhook,
    rotate_secret,
    send_test_event,
    unseal_keys,
    update_webhook,
)
from tests.world import Client
from workers.main import WorkerProcess

URL = "https://example.com/hook?key=planted-in-query#planted-in-fragment"
PLAIN_URL = "https://example.com"
OTHER: dict[str, Any] = {
    "url": "https://example.com/other",
    "events": ["agent.updated", "agent.deleted"],
    "active": False,
    "description": "Other",
    "headers": {"X-Other": "other"},
}


async def _whole(client: Client) -> dict[str, Any]:
    made = await create_webhook(
        client, url=URL, description="Ours", headers={"X-Team": "a", "X-Region": "b"}
    )
    del made["secret"]
    return made


# Change


@pytest.mark.parametrize("field", OTHER)
async def test_one_field_is_changed_and_the_rest_stays(developer: Client, field: str) -> None:
    made = await _whole(developer)
    changed = await update_webhook(developer, made["id"], **{field: OTHER[field]})
    assert changed == await read_webhook(developer, made["id"])
    assert changed["updated_at"] > made["updated_at"]
    assert changed == {
        **made,
        field: OTHER[field],
        "updated_at": changed["updated_at"],
    }


async def test_all_fields_are_changed_together(developer: Client) -> None:
    made = await _whole(developer)
    changed = await update_webhook(developer, made["id"], **OTHER)
    assert {name: changed[name] for name in OTHER} == OTHER
    assert set(changed) == VIEW_KEYS


@pytest.mark.parametrize("body", [{}, {"unknown": 1}, {"url": URL, "headers": {"X-Team": "a"}}])
async def test_what_changes_nothing_is_no_change(developer: Client, body: dict[str, Any]) -> None:
    made = await create_webhook(developer, url=URL, headers={"X-Team": "a"})
    changed = await update_webhook(developer, made["id"], **body)
    assert changed == {name: value for name, value in made.items() if name != "secret"}
    assert await list_events(developer, "system.webhook.updated") == []


async def test_an_event_type_named_twice_at_change_is_kept_once(developer: Client) -> None:
    made = await create_webhook(developer)
    named = ["agent.updated", "agent.updated"]
    assert (await update_webhook(developer, made["id"], events=named))["events"] == named[:1]


async def test_a_change_cannot_set_what_is_not_listed(
    developer: Client, services: Services
) -> None:
    made = await create_webhook(developer)
    sly = {"secret": "whsec_mine", "id": "whk_mine", "disabled_reason": "gone", "created_by": "x"}
    changed = await update_webhook(developer, made["id"], **sly, description="Other")
    assert (changed["id"], changed["disabled_reason"]) == (made["id"], None)
    assert (await unseal_keys(services, developer, made["id"])).secret == made["secret"]


async def test_a_change_of_headers_keeps_the_secrets(developer: Client, services: Services) -> None:
    made = await create_webhook(developer)
    renewed = await rotate_secret(developer, made["id"])
    await update_webhook(developer, made["id"], headers={"X-Team": "a"})
    sealed = await unseal_keys(services, developer, made["id"])
    assert (sealed.secret, sealed.previous) == (renewed["secret"], made["secret"])


_FAILED = """
UPDATE webhooks SET active = false, disabled_reason = 'failing', failing_since = now()
WHERE id = $1 RETURNING id
"""


async def test_switching_on_forgets_why_it_was_off(developer: Client, services: Services) -> None:
    made = await create_webhook(developer)
    await run_sql(services, _FAILED, made["id"])
    found = await read_webhook(developer, made["id"])
    assert (found["active"], found["disabled_reason"]) == (False, "failing")
    assert found["failing_since"] is not None
    changed = await update_webhook(developer, made["id"], active=True)
    assert (changed["active"], changed["disabled_reason"]) == (True, None)
    assert changed["failing_since"] is None


async def test_another_change_does_not_forget_why_it_is_off(
    developer: Client, services: Services
) -> None:
    made = await create_webhook(developer)
    await run_sql(services, _FAILED, made["id"])
    changed = await update_webhook(developer, made["id"], description="Other", active=False)
    assert (changed["active"], changed["disabled_reason"]) == (False, "failing")
    assert changed["failing_since"] is not None


async def test_a_changed_webhook_gets_what_it_wants_now(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200/old", events=["agent.deleted"])
    await update_webhook(
        developer,
        made["id"],
        url=f"{receiver.url}/200/new",
        events=["agent.created"],
        headers={"X-Team": "new"},
    )
    await create_agent(developer)
    (got,) = await receiver.wait_for(1)
    assert (got.path, got.headers["X-Team"]) == ("/200/new", "new")
    assert got.headers["X-Service-Event-Type"] == "agent.created"


# Delete


async def test_a_deleted_webhook_is_gone(developer: Client) -> None:
    made = await create_webhook(developer)
    answer = await developer.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await developer.get(PATH)).json()["data"] == []
    for method in ("GET", "DELETE"):
        refused(await developer(method, f"{PATH}/{made['id']}"), 404, "webhook_not_found")


_LEFT = """
SELECT (SELECT count(*) FROM deliveries WHERE id = $1) AS deliveries,
       (SELECT count(*) FROM delivery_attempts WHERE delivery_id = $1) AS attempts
"""


async def _left(services: Services, delivery_id: str) -> dict[str, int]:
    (row,) = await run_sql(services, _LEFT, delivery_id)
    return dict(row)


async def test_its_records_go_along_and_those_of_others_stay(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    first, second = [
        await create_webhook(developer, url=f"{receiver.url}/200/{name}") for name in "ab"
    ]
    gone, kept = [(await send_test_event(developer, one["id"]))["id"] for one in (first, second)]
    assert await _left(services, gone) == {"deliveries": 1, "attempts": 1}
    await developer.delete(f"{PATH}/{first['id']}")
    assert await _left(services, gone) == {"deliveries": 0, "attempts": 0}
    assert await _left(services, kept) == {"deliveries": 1, "attempts": 1}
    path = f"{PATH}/{first['id']}/executions"
    for rest in ("", f"/{gone}"):
        refused(await developer.get(path + rest), 404, "webhook_not_found")
    refused(await developer.post(f"{path}/{gone}/redeliver"), 404, "webhook_not_found")


async def test_what_was_still_to_be_delivered_is_not(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/500")
    await create_agent(developer)
    await receiver.wait_for(1)
    await developer.delete(f"{PATH}/{made['id']}")
    sql = "SELECT state FROM work WHERE lane = $1"
    assert [row["state"] for row in await run_sql(services, sql, made["id"])] == ["cancelled"]


async def test_the_events_that_it_got_stay_in_the_log(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    delivery = await send_test_event(developer, made["id"])
    await developer.delete(f"{PATH}/{made['id']}")
    answer = await developer.get(f"/api/v1/event-log/{delivery['event_id']}")
    assert answer.status_code == 200


# Events


async def test_created_is_told_without_path_query_or_headers(developer: Client) -> None:
    made = await create_webhook(
        developer, url=URL, description="Ours", headers={"Authorization": "Bearer planted"}
    )
    (event,) = await list_events(developer, "system.webhook.created")
    assert event["data"] == {
        "webhook_id": made["id"],
        "url": PLAIN_URL,
        "events": ["agent.created"],
    }


async def test_updated_names_what_changed_and_no_value(developer: Client) -> None:
    made = await _whole(developer)
    given = {**OTHER, "url": URL + "2", "headers": {"Authorization": "Bearer planted"}}
    await update_webhook(developer, made["id"], **given)
    (event,) = await list_events(developer, "system.webhook.updated")
    assert set(event["data"].pop("changed")) == set(OTHER)
    assert event["data"] == {"webhook_id": made["id"], "url": PLAIN_URL}


async def test_updated_names_only_what_is_different(developer: Client) -> None:
    made = await _whole(developer)
    await update_webhook(developer, made["id"], url=URL, active=True, description="Other")
    (event,) = await list_events(developer, "system.webhook.updated")
    assert event["data"]["changed"] == ["description"]


async def test_deleted_is_told_once(developer: Client) -> None:
    made = await _whole(developer)
    for _ in range(2):
        await developer.delete(f"{PATH}/{made['id']}")
    (event,) = await list_events(developer, "system.webhook.deleted")
    assert event["data"] == {"webhook_id": made["id"], "url": PLAIN_URL}


async def test_disabled_is_told_without_path_or_query(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    watching = f"{receiver.url}/200/watching"
    await create_webhook(developer, url=watching, events=["system.webhook.disabled"])
    made = await create_webhook(developer, url=f"{receiver.url}/410?key=planted-in-query")
    await create_agent(developer)
    (got,) = await receiver.wait_for(1, "/200/watching")
    assert got.json["data"]["webhook_id"] == made["id"]
    assert got.json["data"]["url"] == receiver.url


async def test_a_webhook_that_wants_to_know_is_told_of_itself(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await create_webhook(
        developer, url=f"{receiver.url}/200?key=planted", events=["system.webhook.created"]
    )
    other = await create_webhook(developer, url=URL)
    seen = [one.json["data"] for one in await receiver.wait_for(2)]
    assert {one["webhook_id"] for one in seen} == {made["id"], other["id"]}
    assert "planted" not in str(seen)
