"""Updates and deletes of webhooks, and their events."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.webhooks.factories import (
    PATH,
    VIEW_KEYS,
    create_webhook,
    list_events,
    read_webhook,
    rotate_secret,
    send_test_event,
    unseal_keys,
    update_webhook,
    wait_for_attempt,
)
from tests.platform.events.factories import create_agent
from tests.world import Client, World
from workers.main import WorkerProcess

URL = "https://example.com/hook?key=planted-in-query#planted-in-fragment"
ORIGIN = "https://example.com"
CHANGES: dict[str, Any] = {
    "url": "https://example.com/other",
    "events": ["agent.updated", "agent.deleted"],
    "active": False,
    "description": "Other",
    "headers": {"X-Other": "other"},
}


async def _create_full_webhook(client: Client) -> dict[str, Any]:
    webhook = await create_webhook(
        client, url=URL, description="Ours", headers={"X-Team": "a", "X-Region": "b"}
    )
    del webhook["secret"]
    return webhook


# Update


async def test_updating_one_field_keeps_the_others(world: World, subtests: pytest.Subtests) -> None:
    for field, value in CHANGES.items():
        with subtests.test(field=field):
            developer = await world.user()
            webhook = await _create_full_webhook(developer)
            updated = await update_webhook(developer, webhook["id"], **{field: value})
            assert updated == await read_webhook(developer, webhook["id"])
            assert updated["updated_at"] > webhook["updated_at"]
            changes = {field: value, "updated_at": updated["updated_at"]}
            # The values of headers are secrets.
            if field == "headers":
                assert updated["secrets_updated_at"] > webhook["created_at"]
                changes["secrets_updated_at"] = updated["secrets_updated_at"]
            assert updated == {**webhook, **changes}


async def test_all_fields_are_changed_together(developer: Client) -> None:
    webhook = await _create_full_webhook(developer)
    updated = await update_webhook(developer, webhook["id"], **CHANGES)
    assert {name: updated[name] for name in CHANGES} == CHANGES
    assert set(updated) == VIEW_KEYS


async def test_an_update_without_a_change_emits_no_event(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{}, {"id": "whk_mine"}, {"url": URL, "headers": {"X-Team": "a"}}]
    for body in cases:
        with subtests.test(body=body):
            developer = await world.user()
            webhook = await create_webhook(developer, url=URL, headers={"X-Team": "a"})
            updated = await update_webhook(developer, webhook["id"], **body)
            assert updated == {name: value for name, value in webhook.items() if name != "secret"}
            assert await list_events(developer, "system.webhook.updated") == []


async def test_an_update_stores_a_repeated_event_type_once(developer: Client) -> None:
    webhook = await create_webhook(developer)
    event_types = ["agent.updated", "agent.updated"]
    assert (await update_webhook(developer, webhook["id"], events=event_types))[
        "events"
    ] == event_types[:1]


async def test_an_update_ignores_read_only_fields(developer: Client) -> None:
    webhook = await create_webhook(developer)
    extra_fields = {"id": "whk_mine", "disabled_reason": "gone"}
    updated = await update_webhook(developer, webhook["id"], **extra_fields, description="Other")
    assert (updated["id"], updated["disabled_reason"]) == (webhook["id"], None)


async def test_a_change_of_headers_keeps_the_secrets(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer)
    rotated = await rotate_secret(developer, webhook["id"])
    await update_webhook(developer, webhook["id"], headers={"X-Team": "a"})
    keys = await unseal_keys(services, developer, webhook["id"])
    assert (keys.secret, keys.previous) == (rotated["secret"], webhook["secret"])


_DISABLE = """
UPDATE webhooks SET active = false, disabled_reason = 'failing', failing_since = now()
WHERE id = $1 RETURNING id
"""


async def test_activating_clears_the_disabled_reason(developer: Client, services: Services) -> None:
    webhook = await create_webhook(developer)
    await run_sql(services, _DISABLE, webhook["id"])
    stored = await read_webhook(developer, webhook["id"])
    assert (stored["active"], stored["disabled_reason"]) == (False, "failing")
    assert stored["failing_since"] is not None
    updated = await update_webhook(developer, webhook["id"], active=True)
    assert (updated["active"], updated["disabled_reason"]) == (True, None)
    assert updated["failing_since"] is None


async def test_another_change_keeps_the_disabled_reason(
    developer: Client, services: Services
) -> None:
    webhook = await create_webhook(developer)
    await run_sql(services, _DISABLE, webhook["id"])
    updated = await update_webhook(developer, webhook["id"], description="Other", active=False)
    assert (updated["active"], updated["disabled_reason"]) == (False, "failing")
    assert updated["failing_since"] is not None


async def test_an_updated_webhook_gets_its_new_event_types(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(
        developer, url=f"{receiver.url}/200/old", events=["agent.deleted"]
    )
    await update_webhook(
        developer,
        webhook["id"],
        url=f"{receiver.url}/200/new",
        events=["agent.created"],
        headers={"X-Team": "new"},
    )
    await create_agent(developer)
    (request,) = await receiver.wait_for(1)
    assert (request.path, request.headers["X-Team"]) == ("/200/new", "new")
    assert request.headers["X-Service-Event-Type"] == "agent.created"


# Delete


async def test_a_deleted_webhook_is_not_found(developer: Client) -> None:
    webhook = await create_webhook(developer)
    answer = await developer.delete(f"{PATH}/{webhook['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await developer.get(PATH)).json()["data"] == []
    for method in ("GET", "DELETE"):
        refused(await developer(method, f"{PATH}/{webhook['id']}"), 404, "webhook_not_found")


_COUNT_ROWS = """
SELECT (SELECT count(*) FROM deliveries WHERE id = $1) AS deliveries,
       (SELECT count(*) FROM delivery_attempts WHERE delivery_id = $1) AS attempts
"""


async def _count_rows(services: Services, delivery_id: str) -> dict[str, int]:
    (row,) = await run_sql(services, _COUNT_ROWS, delivery_id)
    return dict(row)


async def test_deleting_a_webhook_deletes_its_deliveries_only(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    first, second = [
        await create_webhook(developer, url=f"{receiver.url}/200/{name}") for name in "ab"
    ]
    deleted, remaining = [
        (await send_test_event(developer, webhook["id"]))["id"] for webhook in (first, second)
    ]
    assert await _count_rows(services, deleted) == {"deliveries": 1, "attempts": 1}
    await developer.delete(f"{PATH}/{first['id']}")
    assert await _count_rows(services, deleted) == {"deliveries": 0, "attempts": 0}
    assert await _count_rows(services, remaining) == {"deliveries": 1, "attempts": 1}
    path = f"{PATH}/{first['id']}/executions"
    for rest in ("", f"/{deleted}"):
        refused(await developer.get(path + rest), 404, "webhook_not_found")
    refused(await developer.post(f"{path}/{deleted}/redeliver"), 404, "webhook_not_found")


async def test_deleting_a_webhook_cancels_its_pending_deliveries(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/500")
    await create_agent(developer)
    assert (await wait_for_attempt(developer, webhook["id"]))["status"] == "pending"
    await developer.delete(f"{PATH}/{webhook['id']}")
    sql = "SELECT state FROM work WHERE lane = $1"
    assert [row["state"] for row in await run_sql(services, sql, webhook["id"])] == ["cancelled"]


async def test_deleting_a_webhook_keeps_its_events_in_the_log(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    delivery = await send_test_event(developer, webhook["id"])
    await developer.delete(f"{PATH}/{webhook['id']}")
    answer = await developer.get(f"/api/v1/event-log/{delivery['event_id']}")
    assert answer.status_code == 200


# Events


async def test_the_created_event_has_no_path_query_or_headers(developer: Client) -> None:
    webhook = await create_webhook(
        developer, url=URL, description="Ours", headers={"Authorization": "Bearer planted"}
    )
    (event,) = await list_events(developer, "system.webhook.created")
    assert event["data"] == {
        "webhook_id": webhook["id"],
        "url": ORIGIN,
        "events": ["agent.created"],
    }


async def test_the_updated_event_names_changed_fields_without_values(developer: Client) -> None:
    webhook = await _create_full_webhook(developer)
    changes = {**CHANGES, "url": URL + "2", "headers": {"Authorization": "Bearer planted"}}
    await update_webhook(developer, webhook["id"], **changes)
    (event,) = await list_events(developer, "system.webhook.updated")
    assert set(event["data"].pop("changed")) == set(CHANGES)
    assert event["data"] == {"webhook_id": webhook["id"], "url": ORIGIN}


async def test_the_updated_event_names_only_different_fields(developer: Client) -> None:
    webhook = await _create_full_webhook(developer)
    await update_webhook(developer, webhook["id"], url=URL, active=True, description="Other")
    (event,) = await list_events(developer, "system.webhook.updated")
    assert event["data"]["changed"] == ["description"]


async def test_the_deleted_event_is_emitted_once(developer: Client) -> None:
    webhook = await _create_full_webhook(developer)
    for _ in range(2):
        await developer.delete(f"{PATH}/{webhook['id']}")
    (event,) = await list_events(developer, "system.webhook.deleted")
    assert event["data"] == {"webhook_id": webhook["id"], "url": ORIGIN}


async def test_the_disabled_event_has_no_path_or_query(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    url = f"{receiver.url}/200/watching"
    await create_webhook(developer, url=url, events=["system.webhook.disabled"])
    webhook = await create_webhook(developer, url=f"{receiver.url}/410?key=planted-in-query")
    await create_agent(developer)
    (request,) = await receiver.wait_for(1, "/200/watching")
    assert request.json["data"]["webhook_id"] == webhook["id"]
    assert request.json["data"]["url"] == receiver.url


async def test_a_webhook_can_get_the_event_of_its_own_creation(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    webhook = await create_webhook(
        developer, url=f"{receiver.url}/200?key=planted", events=["system.webhook.created"]
    )
    other = await create_webhook(developer, url=URL)
    payloads = [request.json["data"] for request in await receiver.wait_for(2)]
    assert {data["webhook_id"] for data in payloads} == {webhook["id"], other["id"]}
    assert "planted" not in str(payloads)
