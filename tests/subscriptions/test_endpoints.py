"""A subscription's own address: signed, logged, made once more, switched off with it."""

import hashlib
import hmac
from typing import Any

import pytest

from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import ReceivedRequest, Receiver
from tests.events.database import (
    fetch_rows,
    load_events,
    load_work,
    run_sql,
    wait_until,
    wait_until_idle,
)
from tests.events.factories import create_agent, create_agent_and_wait
from tests.subscriptions.factories import (
    PATH,
    create_subscription,
    create_webhook_for,
    load_deliveries,
    read_subscription,
    subscribe_url,
    subscribe_webhook,
    update_subscription,
)
from tests.webhooks.factories import DELIVERY_KEYS
from tests.world import Client
from workers.main import WorkerProcess

pytestmark = pytest.mark.usefixtures("courier")


def _signature(secret: str, got: ReceivedRequest) -> str:
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
    made = await subscribe_url(developer, f"{receiver.url}/200", config={"headers": headers})
    agent_id = await create_agent_and_wait(services, developer, "Ada")
    (got,) = receiver.requests
    (event,) = await load_events(services, developer.tenant_id, "agent.created")
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
    made = await subscribe_url(developer, f"{receiver.url}/200/before")
    await update_subscription(
        developer, made["id"], action_config={"url": f"{receiver.url}/200/after"}
    )
    await create_agent_and_wait(services, developer)
    (got,) = receiver.requests
    assert got.path == "/200/after"
    assert got.headers["X-Service-Signature"] == _signature(made["secret"], got)


async def test_the_secret_of_an_own_address_can_be_rotated(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    made = await subscribe_url(developer, f"{receiver.url}/200", event_type="system.test")
    answer = await developer.post(f"{PATH}/{made['id']}/rotate-secret")
    assert answer.status_code == 200, answer.text
    rotated: dict[str, Any] = answer.json()
    assert rotated["secret"] != made["secret"]
    assert {**rotated, "secret": made["secret"]} == made
    await developer.post("/api/v1/events/test", {"event_type": "system.test"})
    (got,) = await receiver.wait_for(1)
    assert "X-Service-Signature-Previous" in got.headers
    shown = await developer.get(f"{PATH}/{made['id']}")
    assert "secret" not in shown.json()


async def test_without_an_own_address_there_is_no_secret_to_rotate(developer: Client) -> None:
    made = await create_subscription(developer)
    answer = await developer.post(f"{PATH}/{made['id']}/rotate-secret")
    refused(answer, 404, "webhook_not_found")


async def test_its_deliveries_are_listed_and_shown_in_full(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    secret = {"headers": {"Authorization": "planted"}}
    made = await subscribe_url(developer, f"{receiver.url}/200", config=secret)
    await create_agent_and_wait(services, developer)
    (one,) = await _executions(developer, made)
    assert set(one) == DELIVERY_KEYS
    assert (one["status"], one["attempt"], one["response_code"]) == ("delivered", 1, 200)
    answer = await developer.get(f"{PATH}/{made['id']}/executions/{one['id']}")
    assert answer.status_code == 200
    full = answer.json()
    assert {name: full[name] for name in one} == one
    assert full["request"]["body"] == receiver.requests[0].body.decode()
    assert full["request"]["headers"]["Authorization"] == "********"
    assert [attempt["response_body"] for attempt in full["attempts"]] == ["noted"]


async def test_its_deliveries_can_be_narrowed_by_status(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    receiver.scripts["some"] = [200, 500]
    made = await subscribe_url(developer, f"{receiver.url}/script/some")
    await create_agent_and_wait(services, developer)
    await create_agent_and_wait(services, developer)
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
    made = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, developer)
    (one,) = await _executions(developer, made)
    answer = await developer.post(f"{PATH}/{made['id']}/executions/{one['id']}/redeliver")
    assert (answer.status_code, answer.json()["id"]) == (202, one["id"])
    await wait_until_idle(services, developer.tenant_id)
    (again,) = await _executions(developer, made)
    assert (again["id"], again["status"], again["attempt"]) == (one["id"], "delivered", 2)
    assert len({got.body for got in receiver.requests}) == 1
    assert len(receiver.requests) == 2
    assert (await read_subscription(developer, made["id"]))["trigger_count"] == 1


async def test_a_delivery_to_an_inactive_address_is_not_made_once_more(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, developer)
    (one,) = await _executions(developer, made)
    await update_subscription(developer, made["id"], active=False)
    path = f"{PATH}/{made['id']}/executions/{one['id']}/redeliver"
    refused(await developer.post(path), 409, "webhook_inactive")


@pytest.mark.parametrize("end", ["", "/dlv_nothing", "/dlv_nothing/redeliver"])
async def test_an_action_without_an_address_has_no_deliveries_of_its_own(
    developer: Client, receiver: Receiver, end: str
) -> None:
    method = "POST" if end.endswith("redeliver") else "GET"
    named = await subscribe_webhook(
        developer, await create_webhook_for(developer, f"{receiver.url}/200")
    )
    for made in (await create_subscription(developer), named):
        answer = await developer(method, f"{PATH}/{made['id']}/executions{end}")
        error = refused(answer, 404, "webhook_not_found")
    assert named["action_config"]["webhook_id"] in error["message"]


async def test_unknown_deliveries_and_those_of_others_are_not_found(
    developer: Client, admin: Client, receiver: Receiver, services: Services
) -> None:
    made, other = (
        await subscribe_url(developer, f"{receiver.url}/200"),
        await subscribe_url(developer, f"{receiver.url}/200", event_type="agent.deleted"),
    )
    await create_agent_and_wait(services, developer)
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
    webhook_id = await create_webhook_for(developer, f"{receiver.url}/200", "agent.created")
    made = [await subscribe_webhook(developer, webhook_id) for _ in range(2)]
    await create_agent_and_wait(services, developer)
    assert [row["webhook_id"] for row in await load_deliveries(services, developer)] == [webhook_id]
    assert len(receiver.requests) == 1
    assert [(await read_subscription(developer, one["id"]))["trigger_count"] for one in made] == [
        1,
        1,
    ]


async def test_a_named_webhook_gets_what_it_does_not_want_itself(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    answer = await developer.post(
        "/api/v1/webhooks", {"url": f"{receiver.url}/200", "events": ["agent.deleted"]}
    )
    await subscribe_webhook(developer, answer.json()["id"], filters={"name": "Ada"})
    await create_agent_and_wait(services, developer, "Ada")
    await create_agent_and_wait(services, developer, "Eve")
    (got,) = receiver.requests
    assert got.json["data"]["name"] == "Ada"
    assert got.headers["X-Service-Signature"] == _signature(answer.json()["secret"], got)


async def test_a_named_webhook_that_is_not_active_gets_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    webhook_id = await create_webhook_for(developer, f"{receiver.url}/200", active=False)
    await subscribe_webhook(developer, webhook_id)
    await create_agent_and_wait(services, developer)
    assert receiver.requests == []
    assert await load_deliveries(services, developer) == []
    assert await load_events(services, developer.tenant_id, "system.work.dead") == []


# Switched off, and gone


async def test_an_address_that_says_it_is_gone_rests_with_its_subscription(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await subscribe_url(developer, f"{receiver.url}/410?key=planted")
    await create_agent_and_wait(services, developer)
    assert (await read_subscription(developer, made["id"]))["active"] is False
    (told,) = await load_events(services, developer.tenant_id, "system.webhook.disabled")
    assert (told["data"]["subscription_id"], told["data"]["reason"]) == (made["id"], "gone")
    assert "planted" not in str(told["data"])
    await create_agent_and_wait(services, developer)
    assert len(receiver.requests) == 1


async def test_a_subscription_that_is_switched_on_again_delivers_again(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    receiver.scripts["back"] = [410, 200]
    made = await subscribe_url(developer, f"{receiver.url}/script/back")
    await create_agent_and_wait(services, developer)
    await update_subscription(developer, made["id"], active=True)
    await create_agent_and_wait(services, developer)
    assert [one["status"] for one in await _executions(developer, made)] == ["delivered", "failed"]


async def test_what_waits_when_it_is_switched_off_is_not_sent(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    made = await subscribe_url(developer, f"{receiver.url}/500")
    await create_agent_and_wait(services, developer)
    await update_subscription(developer, made["id"], active=False)
    await run_sql(
        services, "UPDATE work SET run_at = now() WHERE tenant_id = $1", developer.tenant_id
    )

    async def is_over() -> bool:
        return [one["status"] for one in await _executions(developer, made)] == ["failed"]

    await wait_until(is_over)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("way", ["delete", "another action"])
async def test_what_waits_when_its_address_is_given_up_is_not_sent(
    developer: Client, receiver: Receiver, services: Services, way: str
) -> None:
    made = await subscribe_url(developer, f"{receiver.url}/500")
    await create_agent_and_wait(services, developer)
    if way == "delete":
        assert (await developer.delete(f"{PATH}/{made['id']}")).status_code == 204
    else:
        config = {"workflow_id": "wfl_1"}
        await update_subscription(
            developer, made["id"], action_type="workflow", action_config=config
        )
    (work,) = await load_work(services, developer.tenant_id, "webhooks.deliver")
    assert work["state"] == "cancelled"
    assert await load_deliveries(services, developer) == []
    assert len(receiver.requests) == 1


async def test_a_subscription_deleted_before_its_event_is_handed_out_does_nothing(
    developer: Client, receiver: Receiver, services: Services, courier: WorkerProcess
) -> None:
    made = [
        await subscribe_url(developer, f"{receiver.url}/200"),
        await create_subscription(developer),
    ]
    for one in made:
        await developer.delete(f"{PATH}/{one['id']}")
    await create_agent(developer)
    await wait_until_idle(services, developer.tenant_id)
    assert (
        await fetch_rows(services, "SELECT 1 FROM work WHERE tenant_id = $1", developer.tenant_id)
        == []
    )
    assert receiver.requests == []
