"""A subscription's own address: signatures, deliveries, redelivery and deactivation."""

from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused, wait_until
from tests.automation.subscriptions.factories import (
    PATH,
    create_subscription,
    create_webhook_for,
    find_draft,
    load_deliveries,
    read_subscription,
    read_trigger_counts,
    subscribe_url,
    subscribe_webhook,
    update_subscription,
)
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.deliveries.signatures import compute_signature
from tests.messaging.webhooks.factories import DELIVERY_KEYS
from tests.platform.events.database import load_events, load_work, wait_until_idle
from tests.platform.events.factories import create_agent_and_wait
from tests.platform.events.responses import read_json
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")


async def _list_deliveries(
    client: Client, subscription: dict[str, Any], **params: Any
) -> list[dict[str, Any]]:
    answer = await client.get(f"{PATH}/{subscription['id']}/executions", params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "total", "page", "per_page"}
    deliveries: list[dict[str, Any]] = answer.json()["data"]
    return deliveries


async def test_an_own_address_gets_the_same_request_as_a_webhook(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    headers = {"Authorization": "Bearer planted", "X-Team": "sales"}
    subscription = await subscribe_url(
        developer, f"{receiver.url}/200", config={"headers": headers}
    )
    agent_id = await create_agent_and_wait(services, developer, "Ada")
    (request,) = receiver.requests
    (event,) = await load_events(services, developer.tenant_id, "agent.created")
    assert set(request.json) == {"id", "type", "created_at", "correlation_id", "data"}
    assert (request.json["id"], request.json["type"]) == (event["id"], "agent.created")
    assert (request.json["data"]["agent_id"], request.json["data"]["name"]) == (agent_id, "Ada")
    assert request.headers["X-Service-Signature"] == compute_signature(
        subscription["secret"], request
    )
    assert request.headers["X-Service-Event-Id"] == event["id"]
    assert request.headers["X-Service-Event-Type"] == "agent.created"
    assert (request.headers["Authorization"], request.headers["X-Team"]) == (
        "Bearer planted",
        "sales",
    )
    assert "X-Service-Test" not in request.headers
    assert "X-Service-Retry-Count" not in request.headers


async def test_the_secret_stays_after_the_address_changed(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200/before")
    await update_subscription(
        developer, subscription["id"], action_config={"url": f"{receiver.url}/200/after"}
    )
    await create_agent_and_wait(services, developer)
    (request,) = receiver.requests
    assert request.path == "/200/after"
    assert request.headers["X-Service-Signature"] == compute_signature(
        subscription["secret"], request
    )


async def test_the_secret_of_an_own_address_can_be_rotated(
    developer: Client, receiver: Receiver
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200", event_type="system.test")
    path = f"{PATH}/{subscription['id']}/rotate-secret"
    rotated: dict[str, Any] = read_json(await developer.post(path))
    assert rotated["secret"] != subscription["secret"]
    assert {**rotated, "secret": subscription["secret"]} == subscription
    await developer.post("/api/v1/events/test", {"event_type": "system.test"})
    (request,) = await receiver.wait_for(1)
    assert "X-Service-Signature-Previous" in request.headers
    assert "secret" not in await read_subscription(developer, subscription["id"])


async def test_without_an_own_address_there_is_no_secret_to_rotate(developer: Client) -> None:
    subscription = await create_subscription(developer)
    answer = await developer.post(f"{PATH}/{subscription['id']}/rotate-secret")
    refused(answer, 404, "webhook_not_found")


async def test_deliveries_of_an_own_address_are_listed_and_shown_in_full(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    config = {"headers": {"Authorization": "planted"}}
    subscription = await subscribe_url(developer, f"{receiver.url}/200", config=config)
    await create_agent_and_wait(services, developer)
    (delivery,) = await _list_deliveries(developer, subscription)
    assert set(delivery) == DELIVERY_KEYS
    assert (delivery["status"], delivery["attempt"], delivery["response_code"]) == (
        "delivered",
        1,
        200,
    )
    answer = await developer.get(f"{PATH}/{subscription['id']}/executions/{delivery['id']}")
    assert answer.status_code == 200
    full = answer.json()
    assert {name: full[name] for name in delivery} == delivery
    assert full["request"]["body"] == receiver.requests[0].body.decode()
    assert full["request"]["headers"]["Authorization"] == "********"
    assert [attempt["response_body"] for attempt in full["attempts"]] == ["noted"]


async def test_deliveries_of_an_own_address_can_be_filtered_by_status(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    receiver.scripts["some"] = [200, 500]
    subscription = await subscribe_url(developer, f"{receiver.url}/script/some")
    await create_agent_and_wait(services, developer)
    await create_agent_and_wait(services, developer)
    assert len(await _list_deliveries(developer, subscription)) == 2
    for status in ("delivered", "pending"):
        (delivery,) = await _list_deliveries(developer, subscription, status=status)
        assert delivery["status"] == status
    assert await _list_deliveries(developer, subscription, status="failed") == []
    answer = await developer.get(
        f"{PATH}/{subscription['id']}/executions", params={"status": "lost"}
    )
    assert set(answer.json()["error"]["details"]) == {"status"}


async def test_a_delivery_can_be_redelivered(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, developer)
    (delivery,) = await _list_deliveries(developer, subscription)
    answer = await developer.post(
        f"{PATH}/{subscription['id']}/executions/{delivery['id']}/redeliver"
    )
    assert (answer.status_code, answer.json()["id"]) == (202, delivery["id"])
    await wait_until_idle(services, developer.tenant_id)
    (again,) = await _list_deliveries(developer, subscription)
    assert (again["id"], again["status"], again["attempt"]) == (delivery["id"], "delivered", 2)
    assert len({request.body for request in receiver.requests}) == 1
    assert len(receiver.requests) == 2
    assert (await read_subscription(developer, subscription["id"]))["trigger_count"] == 1


async def test_a_delivery_to_an_inactive_address_cannot_be_redelivered(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/200")
    await create_agent_and_wait(services, developer)
    (delivery,) = await _list_deliveries(developer, subscription)
    await update_subscription(developer, subscription["id"], active=False)
    path = f"{PATH}/{subscription['id']}/executions/{delivery['id']}/redeliver"
    refused(await developer.post(path), 409, "webhook_inactive")


async def test_an_action_without_an_address_has_no_deliveries_of_its_own(
    world: World, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for end in ("", "/dlv_nothing", "/dlv_nothing/redeliver"):
        with subtests.test(end=end):
            developer = await world.user()
            receiver.reset()
            method = "POST" if end.endswith("redeliver") else "GET"
            webhook_subscription = await subscribe_webhook(
                developer, await create_webhook_for(developer, f"{receiver.url}/200")
            )
            for subscription in (await create_subscription(developer), webhook_subscription):
                answer = await developer(method, f"{PATH}/{subscription['id']}/executions{end}")
                error = refused(answer, 404, "webhook_not_found")
            assert webhook_subscription["action_config"]["webhook_id"] in error["message"]


async def test_unknown_deliveries_and_those_of_others_are_not_found(
    developer: Client, admin: Client, receiver: Receiver, services: Services
) -> None:
    subscription, other = (
        await subscribe_url(developer, f"{receiver.url}/200"),
        await subscribe_url(developer, f"{receiver.url}/200", event_type="agent.deleted"),
    )
    await create_agent_and_wait(services, developer)
    (delivery,) = await _list_deliveries(developer, subscription)
    for path in (
        f"{subscription['id']}/executions/dlv_nothing",
        f"{other['id']}/executions/{delivery['id']}",
    ):
        refused(await developer.get(f"{PATH}/{path}"), 404, "delivery_not_found")
        refused(await developer.post(f"{PATH}/{path}/redeliver"), 404, "delivery_not_found")
    executions = f"{PATH}/{subscription['id']}/executions"
    refused(await admin.get(executions), 404, "subscription_not_found")
    refused(await admin.get(f"{executions}/{delivery['id']}"), 404, "subscription_not_found")
    refused(
        await admin.post(f"{executions}/{delivery['id']}/redeliver"), 404, "subscription_not_found"
    )


# Subscriptions that name a webhook


async def test_a_named_webhook_that_has_the_event_type_gets_the_event_once(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    webhook_id = await create_webhook_for(developer, f"{receiver.url}/200", "agent.created")
    subscriptions = [await subscribe_webhook(developer, webhook_id) for _ in range(2)]
    await create_agent_and_wait(services, developer)
    assert [row["webhook_id"] for row in await load_deliveries(services, developer)] == [webhook_id]
    assert len(receiver.requests) == 1
    assert await read_trigger_counts(developer, subscriptions) == [1, 1]


async def test_a_named_webhook_gets_events_of_other_types(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    answer = await developer.post(
        "/api/v1/webhooks", {"url": f"{receiver.url}/200", "events": ["agent.deleted"]}
    )
    await subscribe_webhook(developer, answer.json()["id"], filters={"name": "Ada"})
    await create_agent_and_wait(services, developer, "Ada")
    await create_agent_and_wait(services, developer, "Eve")
    (request,) = receiver.requests
    assert request.json["data"]["name"] == "Ada"
    assert request.headers["X-Service-Signature"] == compute_signature(
        answer.json()["secret"], request
    )


async def test_a_named_webhook_that_is_not_active_gets_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    webhook_id = await create_webhook_for(developer, f"{receiver.url}/200", active=False)
    await subscribe_webhook(developer, webhook_id)
    await create_agent_and_wait(services, developer)
    assert receiver.requests == []
    assert await load_deliveries(services, developer) == []
    assert await load_events(services, developer.tenant_id, "system.work.dead") == []


# Deactivated and removed addresses


async def test_a_410_deactivates_the_subscription(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/410?key=planted")
    await create_agent_and_wait(services, developer)
    assert (await read_subscription(developer, subscription["id"]))["active"] is False
    (event,) = await load_events(services, developer.tenant_id, "system.webhook.disabled")
    assert (event["data"]["subscription_id"], event["data"]["reason"]) == (
        subscription["id"],
        "gone",
    )
    assert "planted" not in str(event["data"])
    await create_agent_and_wait(services, developer)
    assert len(receiver.requests) == 1


async def test_a_subscription_that_is_switched_on_again_delivers_again(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    receiver.scripts["back"] = [410, 200]
    subscription = await subscribe_url(developer, f"{receiver.url}/script/back")
    await create_agent_and_wait(services, developer)
    await update_subscription(developer, subscription["id"], active=True)
    await create_agent_and_wait(services, developer)
    statuses = [delivery["status"] for delivery in await _list_deliveries(developer, subscription)]
    assert statuses == ["delivered", "failed"]


async def test_a_pending_delivery_fails_once_the_subscription_is_inactive(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{receiver.url}/500")
    await create_agent_and_wait(services, developer)
    await update_subscription(developer, subscription["id"], active=False)
    await run_sql(
        services, "UPDATE work SET run_at = now() WHERE tenant_id = $1", developer.tenant_id
    )

    async def is_failed() -> bool:
        return [
            delivery["status"] for delivery in await _list_deliveries(developer, subscription)
        ] == ["failed"]

    await wait_until(is_failed)
    assert len(receiver.requests) == 1


async def test_removing_the_address_cancels_its_pending_delivery(
    world: World, receiver: Receiver, services: Services, subtests: pytest.Subtests
) -> None:
    for change in ("delete", "another action"):
        with subtests.test(change=change):
            developer = await world.user()
            receiver.reset()
            subscription = await subscribe_url(developer, f"{receiver.url}/500")
            await create_agent_and_wait(services, developer)
            if change == "delete":
                assert (await developer.delete(f"{PATH}/{subscription['id']}")).status_code == 204
            else:
                config = {"workflow_id": await find_draft(developer)}
                await update_subscription(
                    developer, subscription["id"], action_type="workflow", action_config=config
                )
            (work,) = await load_work(services, developer.tenant_id, "webhooks.deliver")
            assert work["state"] == "cancelled"
            assert await load_deliveries(services, developer) == []
            assert len(receiver.requests) == 1


async def test_a_subscription_deleted_before_the_event_does_nothing(
    developer: Client, receiver: Receiver, services: Services
) -> None:
    subscriptions = [
        await subscribe_url(developer, f"{receiver.url}/200"),
        await create_subscription(developer),
    ]
    for subscription in subscriptions:
        await developer.delete(f"{PATH}/{subscription['id']}")
    await create_agent_and_wait(services, developer)
    assert await load_work(services, developer.tenant_id) == []
    assert receiver.requests == []
