"""POST /api/v1/webhooks/:id/test: sends a test event to this webhook alone."""

from typing import Any

import jsonschema_rs
import pytest

from app.areas import AREAS
from app.domain.messaging.deliveries.endpoint_keys import EndpointKeys
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import read_subscription, subscribe_url
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.webhooks.factories import (
    DELIVERY_KEYS,
    PATH,
    create_webhook,
    list_deliveries,
    list_events,
    read_delivery,
    read_webhook,
    send_test_event,
    wait_for_attempt,
    write_keys,
)
from tests.platform.events.factories import create_agent
from tests.ports import free_port
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("courier")

_WORK = """
SELECT w.state, w.attempt FROM work w JOIN deliveries d ON d.work_id = w.id WHERE d.id = $1
"""


# The request and its delivery


async def test_the_response_is_the_finished_delivery(developer: Client, receiver: Receiver) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/201")
    delivery = await send_test_event(developer, webhook["id"])
    assert set(delivery) == DELIVERY_KEYS
    assert delivery["id"].startswith("dlv_")
    assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)
    assert (delivery["response_code"], delivery["error"]) == (201, None)
    assert isinstance(delivery["response_time_ms"], int)
    assert delivery["next_attempt_at"] is None
    assert delivery["finished_at"] >= delivery["created_at"]
    assert await list_deliveries(developer, webhook["id"]) == [delivery]


async def test_the_default_event_type_is_system_test(developer: Client, receiver: Receiver) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    delivery = await send_test_event(developer, webhook["id"])
    (request,) = receiver.requests
    assert delivery["event_type"] == request.json["type"] == "system.test"
    assert delivery["event_id"] == request.json["id"] == request.headers["webhook-id"]
    assert delivery["correlation_id"] == request.json["correlation_id"]


async def test_every_event_type_can_be_tested_with_data_of_its_schema(
    developer: Client, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    for event_type in AREAS.event_types:
        delivery = await send_test_event(developer, webhook["id"], event_type=event_type)
        request = receiver.requests[-1]
        entry = (await developer.get(f"/api/v1/event-types/{event_type}")).json()
        assert (delivery["status"], delivery["event_type"]) == ("delivered", event_type)
        assert request.headers["X-Service-Event-Type"] == request.json["type"] == event_type
        assert request.json["data"] == entry["example"]
        jsonschema_rs.validate(entry["schema"], request.json["data"])


async def test_the_webhook_need_not_subscribe_to_the_type(
    developer: Client, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200", events=["agent.deleted"])
    await send_test_event(developer, webhook["id"], event_type="agent.published")
    assert [request.json["type"] for request in receiver.requests] == ["agent.published"]


async def test_only_a_test_is_marked_as_one(developer: Client, receiver: Receiver) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    delivery = await send_test_event(developer, webhook["id"], event_type="agent.created")
    await create_agent(developer)
    test, real = await receiver.wait_for(2)
    assert test.headers["X-Service-Test"] == "true"
    assert "X-Service-Test" not in real.headers
    events = await list_events(developer, "agent.created")
    assert [event.get("test") for event in events] == [True, None]
    assert events[0]["id"] == delivery["event_id"]


async def test_a_test_belongs_to_the_chain_of_its_request(
    developer: Client, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    chain = new_id("cor")
    answer = await developer.post(
        f"{PATH}/{webhook['id']}/test", {}, headers={"X-Correlation-ID": chain}
    )
    assert answer.json()["correlation_id"] == chain
    assert receiver.requests[0].json["correlation_id"] == chain
    trace = (await developer.get(f"/api/v1/event-log/trace/{chain}")).json()
    assert [entry["id"] for entry in trace["data"]] == [answer.json()["event_id"]]
    assert answer.json()["id"] in [span["id"] for span in trace["spans"]]


async def test_each_test_is_an_event_of_its_own(developer: Client, receiver: Receiver) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    deliveries = [await send_test_event(developer, webhook["id"]) for _ in range(2)]
    assert deliveries[0]["event_id"] != deliveries[1]["event_id"]
    assert await list_deliveries(developer, webhook["id"]) == deliveries[::-1]


async def test_the_same_idempotency_key_sends_once(developer: Client, receiver: Receiver) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    path, headers = f"{PATH}/{webhook['id']}/test", {"Idempotency-Key": new_id("key")}
    answers = [await developer.post(path, {}, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(receiver.requests) == 1
    other = await developer.post(path, {"event_type": "agent.created"}, headers=headers)
    refused(other, 422, "idempotency_mismatch")


async def test_an_unknown_event_type_is_refused(
    world: World, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [
        "agent.exploded",
        "agent",
        "*",
        "",
        "AGENT.CREATED",
        "agent.created ",
        "x" * 101,
        None,
        7,
        [],
    ]
    for event_type in cases:
        with subtests.test(event_type=event_type):
            developer = await world.user()
            receiver.reset()
            webhook = await create_webhook(developer, url=f"{receiver.url}/200")
            answer = await developer.post(
                f"{PATH}/{webhook['id']}/test", {"event_type": event_type}
            )
            error = refused(answer, 422, "validation_error")
            assert list(error["details"]) == ["event_type"]
            assert receiver.requests == []
            assert await list_deliveries(developer, webhook["id"]) == []


async def test_a_body_that_is_no_object_is_refused(world: World, subtests: pytest.Subtests) -> None:
    cases: list[bytes] = [b"{", b"[]", b"\xff"]
    for content in cases:
        with subtests.test(content=content):
            developer = await world.user()
            webhook = await create_webhook(developer)
            answer = await developer.http.post(
                f"{PATH}/{webhook['id']}/test",
                content=content,
                headers={"content-type": "application/json"},
            )
            assert list(refused(answer, 422, "validation_error")["details"]) == ["body"]


# Endpoints that fail


async def test_an_error_response_fails_after_one_attempt(
    world: World, services: Services, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for code in (300, 400, 404, 410, 429, 500, 503):
        with subtests.test(code=code):
            developer = await world.user()
            receiver.reset()
            webhook = await create_webhook(developer, url=f"{receiver.url}/{code}?after=1")
            delivery = await send_test_event(developer, webhook["id"])
            assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
            assert delivery["response_code"] == code
            assert str(code) in delivery["error"]
            assert delivery["next_attempt_at"] is None
            assert delivery["finished_at"] is not None
            (work,) = await run_sql(services, _WORK, delivery["id"])
            assert work["state"] not in {"pending", "leased"}
            assert work["attempt"] == 1
            assert len(receiver.requests) == 1
            assert "X-Service-Retry-Count" not in receiver.requests[0].headers


async def test_a_redirect_or_a_reset_connection_fails(
    world: World, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for path in ("/redirect", "/reset"):
        with subtests.test(path=path):
            developer = await world.user()
            receiver.reset()
            webhook = await create_webhook(developer, url=receiver.url + path)
            delivery = await send_test_event(developer, webhook["id"])
            assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
            assert delivery["response_code"] == (302 if path == "/redirect" else None)
            assert delivery["error"]
            assert len(receiver.requests) == 1


async def test_a_closed_port_fails_after_one_attempt(developer: Client) -> None:
    webhook = await create_webhook(developer, url=f"http://127.0.0.1:{free_port()}/")
    delivery = await send_test_event(developer, webhook["id"])
    assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
    assert delivery["response_code"] is None
    detail = await read_delivery(developer, webhook["id"], delivery["id"])
    assert [attempt["status"] for attempt in detail["attempts"]] == ["failed"]


async def test_an_address_that_is_no_longer_allowed_gets_no_request(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for url in ("https://10.0.0.1/", "http://example.com/", "ftp://127.0.0.1/"):
        with subtests.test(url=url):
            developer = await world.user()
            webhook = await create_webhook(developer)
            await run_sql(
                services, "UPDATE webhooks SET url = $2 WHERE id = $1", webhook["id"], url
            )
            delivery = await send_test_event(developer, webhook["id"])
            assert (delivery["status"], delivery["response_code"]) == ("failed", None)
            assert "not allowed" in delivery["error"]


async def test_a_failed_test_does_not_count_as_failing(
    world: World, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for code in (410, 500):
        with subtests.test(code=code):
            developer = await world.user()
            receiver.reset()
            webhook = await create_webhook(developer, url=f"{receiver.url}/{code}")
            await send_test_event(developer, webhook["id"])
            stored = await read_webhook(developer, webhook["id"])
            assert (stored["active"], stored["failing_since"]) == (True, None)
            assert stored["disabled_reason"] is None
            for event_type in ("system.webhook.disabled", "system.work.dead"):
                assert await list_events(developer, event_type) == []


async def test_a_test_does_not_change_a_failing_webhook(
    world: World, services: Services, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for code in (200, 500):
        with subtests.test(code=code):
            developer = await world.user()
            receiver.reset()
            webhook = await create_webhook(developer, url=f"{receiver.url}/{code}")
            sql = "UPDATE webhooks SET failing_since = now() - interval '6 days' WHERE id = $1"
            await run_sql(services, sql, webhook["id"])
            before = await read_webhook(developer, webhook["id"])
            await send_test_event(developer, webhook["id"])
            assert await read_webhook(developer, webhook["id"]) == before
            assert before["failing_since"] is not None


async def test_an_inactive_webhook_can_be_tested(developer: Client, receiver: Receiver) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200", active=False)
    assert (await send_test_event(developer, webhook["id"]))["status"] == "delivered"
    assert (await read_webhook(developer, webhook["id"]))["active"] is False


async def test_a_failed_test_can_be_redelivered(developer: Client, receiver: Receiver) -> None:
    receiver.scripts["later"] = [500, 500, 200]
    webhook = await create_webhook(developer, url=f"{receiver.url}/script/later")
    delivery = await send_test_event(developer, webhook["id"])
    path = f"{PATH}/{webhook['id']}/executions/{delivery['id']}/redeliver"
    assert (await developer.post(path)).status_code == 202
    again = await wait_for_attempt(developer, webhook["id"], 2)
    # Retried by the schedule, as any other redelivery.
    assert (again["status"], again["finished_at"]) == ("pending", None)
    assert again["next_attempt_at"] is not None
    assert (await developer.post(path)).status_code == 202
    assert (await wait_for_attempt(developer, webhook["id"], 3))["status"] == "delivered"
    assert [request.headers["X-Service-Test"] for request in receiver.requests] == ["true"] * 3


async def test_a_test_event_for_all_webhooks_is_retried_by_the_schedule(
    developer: Client, services: Services, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/500")
    answer = await developer.post("/api/v1/events/test", {"event_type": "agent.created"})
    assert answer.status_code == 202
    delivery = await wait_for_attempt(developer, webhook["id"])
    assert (delivery["status"], delivery["finished_at"]) == ("pending", None)
    assert delivery["next_attempt_at"] is not None
    (work,) = await run_sql(services, _WORK, delivery["id"])
    assert work["state"] == "pending"


# Other webhooks and subscriptions


async def test_a_test_goes_to_no_other_webhook_and_no_subscription(
    developer: Client, receiver: Receiver
) -> None:
    webhook = await create_webhook(
        developer, url=f"{receiver.url}/200/tried", events=["agent.deleted"]
    )
    await create_webhook(developer, url=f"{receiver.url}/200/other")
    subscription = await subscribe_url(developer, f"{receiver.url}/200/own")
    delivery = await send_test_event(developer, webhook["id"], event_type="agent.created")
    agent = await create_agent(developer)
    await receiver.wait_for(1, "/200/other")
    await receiver.wait_for(1, "/200/own")
    assert [request.json["id"] for request in receiver.requests_to("/200/tried")] == [
        delivery["event_id"]
    ]
    for path in ("/200/other", "/200/own"):
        assert [request.json["data"]["agent_id"] for request in receiver.requests_to(path)] == [
            agent
        ]
    stored = await read_subscription(developer, subscription["id"])
    assert stored["trigger_count"] == 1


async def test_a_webhook_for_the_type_gets_its_test_once(
    developer: Client, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    await send_test_event(developer, webhook["id"], event_type="agent.created")
    await create_agent(developer)
    await receiver.wait_for(2)
    marks = [request.headers.get("X-Service-Test") for request in receiver.requests]
    assert marks == ["true", None]


async def test_an_invalid_secret_fails_the_delivery(
    developer: Client, services: Services, receiver: Receiver
) -> None:
    webhook = await create_webhook(developer, url=f"{receiver.url}/200")
    await write_keys(services, developer, webhook["id"], EndpointKeys("whsec_not base 64!"))
    delivery = await send_test_event(developer, webhook["id"])
    assert (delivery["status"], delivery["response_code"]) == ("failed", None)
    assert receiver.requests == []
