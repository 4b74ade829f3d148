"""A subscription's own address: signed, logged, made once more, switched off with it."""

import hashlib
import hmac
from typing import Any

import pytest

from app.services import Services
from tests.asking import refused
from tests.events.watching import eventually, log_of, rows, run_sql, settled, work_of
from tests.subscriptions.making import (
    PATH,
    change,
    deliveries_of,
    happen,
    happened,
    read,
    subscribe,
    to_url,
    to_webhook,
    webhook,
)
from tests.webhooks.hooks import DELIVERY_KEYS
from tests.webhooks.receiver import Got, Receiver
from tests.world import Client
from workers.main import WorkerProcess

pytestmark = pytest.mark.usefixtures("courier")


def _signature(secret: str, got: Got) -> str:
    signed = f"{got.headers['X-Service-Timestamp']}.".encode() + got.body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


async def _executions(client: Client, made: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    answer = await client.get(f"{PATH}/{made['id']}/executions", params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "total", "page", "per_page"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def test_it_is_sent_what_a_webhook_is_sent(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    headers = {"Authorization": "Bearer planted", "X-Team": "sales"}
    made = await to_url(developer, f"{receiver.url}/200", config={"headers": headers})
    agent_id = await happened(services, developer, "Ada")
    (got,) = receiver.got
    (event,) = await log_of(services, developer.tenant_id, "agent.created")
    assert set(got.json) == {"id", "type", "created_at", "correlation_id", "data"}
    assert (got.json["id"], got.json["type"]) == (event["id"], "agent.created")
    assert (got.json["data"]["agent_id"], got.json["data"]["name"]) == (agent_id, "Ada")
    assert got.headers["X-Service-Signature"] == _signature(made["secret"], got)
    assert got.headers["X-Service-Event-Id"] == event["id"]
    assert got.headers["X-Service-Event-Type"] == "agent.created"
    assert (got.headers["Authorization"], got.headers["X-Team"]) == ("Bearer planted", "sales")
    assert "X-Service-Test" not in got.headers
    assert "X-Service-Retry-Count" not in got.headers


async def test_the_secret_signs_on_after_the_address_changed(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await to_url(developer, f"{receiver.url}/200/before")
    await change(developer, made["id"], action_config={"url": f"{receiver.url}/200/after"})
    await happened(services, developer)
    (got,) = receiver.got
    assert got.path == "/200/after"
    assert got.headers["X-Service-Signature"] == _signature(made["secret"], got)


async def test_its_deliveries_are_listed_and_shown_in_full(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    secret = {"headers": {"Authorization": "planted"}}
    made = await to_url(developer, f"{receiver.url}/200", config=secret)
    await happened(services, developer)
    (one,) = await _executions(developer, made)
    assert set(one) == DELIVERY_KEYS
    assert (one["status"], one["attempt"], one["response_code"]) == ("delivered", 1, 200)
    answer = await developer.get(f"{PATH}/{made['id']}/executions/{one['id']}")
    assert answer.status_code == 200
    full = answer.json()
    assert {name: full[name] for name in one} == one
    assert full["request"]["body"] == receiver.got[0].body.decode()
    assert full["request"]["headers"]["Authorization"] == "********"
    assert [attempt["response_body"] for attempt in full["attempts"]] == ["noted"]


async def test_its_deliveries_can_be_narrowed_by_status(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    receiver.scripts["some"] = [200, 500]
    made = await to_url(developer, f"{receiver.url}/script/some")
    await happened(services, developer)
    await happened(services, developer)
    assert len(await _executions(developer, made)) == 2
    for status in ("delivered", "pending"):
        (one,) = await _executions(developer, made, status=status)
        assert one["status"] == status
    assert await _executions(developer, made, status="failed") == []
    answer = await developer.get(f"{PATH}/{made['id']}/executions", params={"status": "lost"})
    assert set(answer.json()["error"]["details"]) == {"status"}


async def test_a_delivery_can_be_made_once_more(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await to_url(developer, f"{receiver.url}/200")
    await happened(services, developer)
    (one,) = await _executions(developer, made)
    answer = await developer.post(f"{PATH}/{made['id']}/executions/{one['id']}/redeliver")
    assert (answer.status_code, answer.json()["id"]) == (202, one["id"])
    await settled(services, developer.tenant_id)
    (again,) = await _executions(developer, made)
    assert (again["id"], again["status"], again["attempt"]) == (one["id"], "delivered", 2)
    assert len({got.body for got in receiver.got}) == 1
    assert len(receiver.got) == 2
    assert (await read(developer, made["id"]))["trigger_count"] == 1


async def test_a_delivery_to_an_inactive_address_is_not_made_once_more(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await to_url(developer, f"{receiver.url}/200")
    await happened(services, developer)
    (one,) = await _executions(developer, made)
    await change(developer, made["id"], active=False)
    path = f"{PATH}/{made['id']}/executions/{one['id']}/redeliver"
    refused(await developer.post(path), 409, "webhook_inactive")


@pytest.mark.parametrize("end", ["", "/dlv_nothing", "/dlv_nothing/redeliver"])
async def test_an_action_without_an_address_has_no_deliveries_of_its_own(
    developer: Client, receiver: Receiver, end: str
) -> None:
    method = "POST" if end.endswith("redeliver") else "GET"
    named = await to_webhook(developer, await webhook(developer, f"{receiver.url}/200"))
    for made in (await subscribe(developer), named):
        answer = await developer(method, f"{PATH}/{made['id']}/executions{end}")
        error = refused(answer, 404, "webhook_not_found")
    assert named["action_config"]["webhook_id"] in error["message"]


async def test_unknown_deliveries_and_those_of_others_are_not_found(
    developer: Client, admin: Client, receiver: Receiver, services: Services
) -> None:
    made, other = (
        await to_url(developer, f"{receiver.url}/200"),
        await to_url(developer, f"{receiver.url}/200", event_type="agent.deleted"),
    )
    await happened(services, developer)
    (one,) = await _executions(developer, made)
    for path in (f"{made['id']}/executions/dlv_nothing", f"{other['id']}/executions/{one['id']}"):
        refused(await developer.get(f"{PATH}/{path}"), 404, "delivery_not_found")
        refused(await developer.post(f"{PATH}/{path}/redeliver"), 404, "delivery_not_found")
    theirs = f"{PATH}/{made['id']}/executions"
    refused(await admin.get(theirs), 404, "subscription_not_found")
    refused(await admin.get(f"{theirs}/{one['id']}"), 404, "subscription_not_found")
    refused(await admin.post(f"{theirs}/{one['id']}/redeliver"), 404, "subscription_not_found")


# Through a webhook that there is


async def test_a_named_webhook_gets_the_event_once_even_if_it_wants_the_type_itself(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    webhook_id = await webhook(developer, f"{receiver.url}/200", "agent.created")
    made = [await to_webhook(developer, webhook_id) for _ in range(2)]
    await happened(services, developer)
    assert [row["webhook_id"] for row in await deliveries_of(services, developer)] == [webhook_id]
    assert len(receiver.got) == 1
    assert [(await read(developer, one["id"]))["trigger_count"] for one in made] == [1, 1]


async def test_a_named_webhook_gets_what_it_does_not_want_itself(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    answer = await developer.post(
        "/api/v1/webhooks", {"url": f"{receiver.url}/200", "events": ["agent.deleted"]}
    )
    await to_webhook(developer, answer.json()["id"], filters={"name": "Ada"})
    await happened(services, developer, "Ada")
    await happened(services, developer, "Eve")
    (got,) = receiver.got
    assert got.json["data"]["name"] == "Ada"
    assert got.headers["X-Service-Signature"] == _signature(answer.json()["secret"], got)


async def test_a_named_webhook_that_is_not_active_gets_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    webhook_id = await webhook(developer, f"{receiver.url}/200", active=False)
    await to_webhook(developer, webhook_id)
    await happened(services, developer)
    assert receiver.got == []
    assert await deliveries_of(services, developer) == []
    assert await log_of(services, developer.tenant_id, "system.work.dead") == []


# Switched off, and gone


async def test_an_address_that_says_it_is_gone_rests_with_its_subscription(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await to_url(developer, f"{receiver.url}/410?key=planted")
    await happened(services, developer)
    assert (await read(developer, made["id"]))["active"] is False
    (told,) = await log_of(services, developer.tenant_id, "system.webhook.disabled")
    assert (told["data"]["subscription_id"], told["data"]["reason"]) == (made["id"], "gone")
    assert "planted" not in str(told["data"])
    await happened(services, developer)
    assert len(receiver.got) == 1


async def test_a_subscription_that_is_switched_on_again_delivers_again(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    receiver.scripts["back"] = [410, 200]
    made = await to_url(developer, f"{receiver.url}/script/back")
    await happened(services, developer)
    await change(developer, made["id"], active=True)
    await happened(services, developer)
    assert [one["status"] for one in await _executions(developer, made)] == ["delivered", "failed"]


async def test_what_waits_when_it_is_switched_off_is_not_sent(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await to_url(developer, f"{receiver.url}/500")
    await happened(services, developer)
    await change(developer, made["id"], active=False)
    await run_sql(
        services, "UPDATE work SET run_at = now() WHERE tenant_id = $1", developer.tenant_id
    )

    async def is_over() -> bool:
        return [one["status"] for one in await _executions(developer, made)] == ["failed"]

    await eventually(is_over)
    assert len(receiver.got) == 1


@pytest.mark.parametrize("way", ["delete", "another action"])
async def test_what_waits_when_its_address_is_given_up_is_not_sent(
    developer: Client, receiver: Receiver, services: Services, way: str
) -> None:
    made = await to_url(developer, f"{receiver.url}/500")
    await happened(services, developer)
    if way == "delete":
        assert (await developer.delete(f"{PATH}/{made['id']}")).status_code == 204
    else:
        config = {"workflow_id": "wfl_1"}
        await change(developer, made["id"], action_type="workflow", action_config=config)
    (work,) = await work_of(services, developer.tenant_id, "webhooks.deliver")
    assert work["state"] == "cancelled"
    assert await deliveries_of(services, developer) == []
    assert len(receiver.got) == 1


async def test_a_subscription_deleted_before_its_event_is_handed_out_does_nothing(
    developer: Client, receiver: Receiver, services: Services, courier: WorkerProcess
) -> None:
    made = [await to_url(developer, f"{receiver.url}/200"), await subscribe(developer)]
    for one in made:
        await developer.delete(f"{PATH}/{one['id']}")
    await happen(developer)
    await settled(services, developer.tenant_id)
    assert (
        await rows(services, "SELECT 1 FROM work WHERE tenant_id = $1", developer.tenant_id) == []
    )
    assert receiver.got == []
