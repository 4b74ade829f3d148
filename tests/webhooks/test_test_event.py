"""POST /api/v1/webhooks/:id/test: an endpoint is tried out, and nobody else hears of it."""

from typing import Any

import jsonschema_rs
import pytest

from app.areas import AREAS
from app.domain.deliveries.endpoint_keys import EndpointKeys
from app.kit.ids import new_id
from app.services import Services
from tests.asking import refused
from tests.deliveries.receiver import Receiver
from tests.events.database import run_sql
from tests.events.factories import create_agent
from tests.ports import free_port
from tests.webhooks.factories import (
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
from tests.world import Client

pytestmark = pytest.mark.usefixtures("courier")

_WORK = """
SELECT w.state, w.attempt FROM work w JOIN deliveries d ON d.work_id = w.id WHERE d.id = $1
"""


async def _subscribe(client: Client, event_type: str, url: str) -> str:
    body = {
        "event_type": event_type,
        "action_type": "webhook",
        "action_config": {"url": url},
    }
    answer = await client.post("/api/v1/event-subscriptions", body)
    assert answer.status_code == 201, answer.text
    made: str = answer.json()["id"]
    return made


# What is sent, and the record of it


async def test_the_answer_is_the_finished_delivery(developer: Client, receiver: Receiver) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/201")
    delivery = await send_test_event(developer, made["id"])
    assert set(delivery) == DELIVERY_KEYS
    assert delivery["id"].startswith("dlv_")
    assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)
    assert (delivery["response_code"], delivery["error"]) == (201, None)
    assert isinstance(delivery["response_time_ms"], int)
    assert delivery["next_attempt_at"] is None
    assert delivery["finished_at"] >= delivery["created_at"]
    assert await list_deliveries(developer, made["id"]) == [delivery]


async def test_without_a_type_it_is_a_test_of_the_system(
    developer: Client, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    delivery = await send_test_event(developer, made["id"])
    (got,) = receiver.requests
    assert delivery["event_type"] == got.json["type"] == "system.test"
    assert delivery["event_id"] == got.json["id"] == got.headers["webhook-id"]
    assert delivery["correlation_id"] == got.json["correlation_id"]


async def test_every_event_type_can_be_tried_with_data_of_its_schema(
    developer: Client, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    for event_type in AREAS.event_types:
        delivery = await send_test_event(developer, made["id"], event_type=event_type)
        got = receiver.requests[-1]
        described = (await developer.get(f"/api/v1/event-types/{event_type}")).json()
        assert (delivery["status"], delivery["event_type"]) == ("delivered", event_type)
        assert got.headers["X-Service-Event-Type"] == got.json["type"] == event_type
        assert got.json["data"] == described["example"]
        jsonschema_rs.validate(described["schema"], got.json["data"])


async def test_the_type_need_not_be_among_those_that_the_webhook_wants(
    developer: Client, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200", events=["agent.deleted"])
    await send_test_event(developer, made["id"], event_type="agent.published")
    assert [got.json["type"] for got in receiver.requests] == ["agent.published"]


async def test_a_test_says_so_and_an_event_does_not(developer: Client, receiver: Receiver) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    delivery = await send_test_event(developer, made["id"], event_type="agent.created")
    await create_agent(developer)
    test, real = await receiver.wait_for(2)
    assert test.headers["X-Service-Test"] == "true"
    assert "X-Service-Test" not in real.headers
    logged = await list_events(developer, "agent.created")
    assert [one.get("test") for one in logged] == [True, None]
    assert logged[0]["id"] == delivery["event_id"]


async def test_a_test_belongs_to_the_chain_of_its_request(
    developer: Client, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    chain = new_id("cor")
    answer = await developer.post(
        f"{PATH}/{made['id']}/test", {}, headers={"X-Correlation-ID": chain}
    )
    assert answer.json()["correlation_id"] == chain
    assert receiver.requests[0].json["correlation_id"] == chain
    trace = (await developer.get(f"/api/v1/event-log/trace/{chain}")).json()
    assert [one["id"] for one in trace["data"]] == [answer.json()["event_id"]]
    assert answer.json()["id"] in [span["id"] for span in trace["spans"]]


async def test_each_test_is_an_event_of_its_own(developer: Client, receiver: Receiver) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    both = [await send_test_event(developer, made["id"]) for _ in range(2)]
    assert both[0]["event_id"] != both[1]["event_id"]
    assert await list_deliveries(developer, made["id"]) == both[::-1]


async def test_the_same_idempotency_key_sends_once(developer: Client, receiver: Receiver) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    path, headers = f"{PATH}/{made['id']}/test", {"Idempotency-Key": new_id("key")}
    answers = [await developer.post(path, {}, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(receiver.requests) == 1
    other = await developer.post(path, {"event_type": "agent.created"}, headers=headers)
    refused(other, 422, "idempotency_mismatch")


@pytest.mark.parametrize(
    "event_type",
    ["agent.exploded", "agent", "*", "", "AGENT.CREATED", "agent.created ", "x" * 101, None, 7, []],
)
async def test_what_is_no_event_type_is_named(
    developer: Client, receiver: Receiver, event_type: Any
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    answer = await developer.post(f"{PATH}/{made['id']}/test", {"event_type": event_type})
    error = refused(answer, 422, "validation_error")
    assert list(error["details"]) == ["event_type"]
    assert receiver.requests == []
    assert await list_deliveries(developer, made["id"]) == []


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
async def test_a_body_that_is_no_object_is_refused(developer: Client, content: bytes) -> None:
    made = await create_webhook(developer)
    answer = await developer.http.post(
        f"{PATH}/{made['id']}/test", content=content, headers={"content-type": "application/json"}
    )
    assert list(refused(answer, 422, "validation_error")["details"]) == ["body"]


# Endpoints that fail


@pytest.mark.parametrize("code", [300, 400, 404, 410, 429, 500, 503])
async def test_an_endpoint_that_refuses_is_failed_after_one_attempt(
    developer: Client, services: Services, receiver: Receiver, code: int
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/{code}?after=1")
    delivery = await send_test_event(developer, made["id"])
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


@pytest.mark.parametrize("path", ["/redirect", "/reset"])
async def test_an_endpoint_that_answers_oddly_is_failed(
    developer: Client, receiver: Receiver, path: str
) -> None:
    made = await create_webhook(developer, url=receiver.url + path)
    delivery = await send_test_event(developer, made["id"])
    assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
    assert delivery["response_code"] == (302 if path == "/redirect" else None)
    assert delivery["error"]
    assert len(receiver.requests) == 1


async def test_an_endpoint_that_is_not_there_is_failed(developer: Client) -> None:
    made = await create_webhook(developer, url=f"http://127.0.0.1:{free_port()}/")
    delivery = await send_test_event(developer, made["id"])
    assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
    assert delivery["response_code"] is None
    detail = await read_delivery(developer, made["id"], delivery["id"])
    assert [one["status"] for one in detail["attempts"]] == ["failed"]


@pytest.mark.parametrize("url", ["https://10.0.0.1/", "http://example.com/", "ftp://127.0.0.1/"])
async def test_an_address_that_is_allowed_no_more_gets_nothing(
    developer: Client, services: Services, url: str
) -> None:
    made = await create_webhook(developer)
    await run_sql(services, "UPDATE webhooks SET url = $2 WHERE id = $1", made["id"], url)
    delivery = await send_test_event(developer, made["id"])
    assert (delivery["status"], delivery["response_code"]) == ("failed", None)
    assert "not allowed" in delivery["error"]


@pytest.mark.parametrize("code", [410, 500])
async def test_a_failed_test_does_not_count_as_failing(
    developer: Client, receiver: Receiver, code: int
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/{code}")
    await send_test_event(developer, made["id"])
    found = await read_webhook(developer, made["id"])
    assert (found["active"], found["failing_since"]) == (True, None)
    assert found["disabled_reason"] is None
    for event_type in ("system.webhook.disabled", "system.work.dead"):
        assert await list_events(developer, event_type) == []


@pytest.mark.parametrize("code", [200, 500])
async def test_a_test_changes_nothing_about_a_webhook_that_fails(
    developer: Client, services: Services, receiver: Receiver, code: int
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/{code}")
    sql = "UPDATE webhooks SET failing_since = now() - interval '6 days' WHERE id = $1"
    await run_sql(services, sql, made["id"])
    before = await read_webhook(developer, made["id"])
    await send_test_event(developer, made["id"])
    assert await read_webhook(developer, made["id"]) == before
    assert before["failing_since"] is not None


async def test_a_webhook_that_is_off_can_be_tried(developer: Client, receiver: Receiver) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200", active=False)
    assert (await send_test_event(developer, made["id"]))["status"] == "delivered"
    assert (await read_webhook(developer, made["id"]))["active"] is False


async def test_a_failed_test_that_is_redelivered_comes_to_an_end(
    developer: Client, receiver: Receiver
) -> None:
    receiver.scripts["later"] = [500, 500, 200]
    made = await create_webhook(developer, url=f"{receiver.url}/script/later")
    delivery = await send_test_event(developer, made["id"])
    path = f"{PATH}/{made['id']}/executions/{delivery['id']}/redeliver"
    assert (await developer.post(path)).status_code == 202
    again = await wait_for_attempt(developer, made["id"], 2)
    # By the schedule, as the redelivery of any other.
    assert (again["status"], again["finished_at"]) == ("pending", None)
    assert again["next_attempt_at"] is not None
    assert (await developer.post(path)).status_code == 202
    assert (await wait_for_attempt(developer, made["id"], 3))["status"] == "delivered"
    assert [one.headers["X-Service-Test"] for one in receiver.requests] == ["true"] * 3


async def test_a_test_event_for_all_is_retried_by_the_schedule(
    developer: Client, services: Services, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/500")
    answer = await developer.post("/api/v1/events/test", {"event_type": "agent.created"})
    assert answer.status_code == 202
    delivery = await wait_for_attempt(developer, made["id"])
    assert (delivery["status"], delivery["finished_at"]) == ("pending", None)
    assert delivery["next_attempt_at"] is not None
    (work,) = await run_sql(services, _WORK, delivery["id"])
    assert work["state"] == "pending"


# Nobody else


async def test_a_test_goes_to_no_other_webhook_and_no_subscription(
    developer: Client, receiver: Receiver
) -> None:
    made = await create_webhook(
        developer, url=f"{receiver.url}/200/tried", events=["agent.deleted"]
    )
    await create_webhook(developer, url=f"{receiver.url}/200/other")
    own = await _subscribe(developer, "agent.created", f"{receiver.url}/200/own")
    delivery = await send_test_event(developer, made["id"], event_type="agent.created")
    agent = await create_agent(developer)
    await receiver.wait_for(1, "/200/other")
    await receiver.wait_for(1, "/200/own")
    assert [got.json["id"] for got in receiver.requests_to("/200/tried")] == [delivery["event_id"]]
    for path in ("/200/other", "/200/own"):
        assert [got.json["data"]["agent_id"] for got in receiver.requests_to(path)] == [agent]
    found = (await developer.get(f"/api/v1/event-subscriptions/{own}")).json()
    assert found["trigger_count"] == 1


async def test_a_webhook_for_the_type_gets_a_test_of_itself_once(
    developer: Client, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    await send_test_event(developer, made["id"], event_type="agent.created")
    await create_agent(developer)
    await receiver.wait_for(2)
    assert [one.headers.get("X-Service-Test") for one in receiver.requests] == ["true", None]


async def test_a_secret_that_is_sealed_wrongly_is_no_error_of_ours(
    developer: Client, services: Services, receiver: Receiver
) -> None:
    made = await create_webhook(developer, url=f"{receiver.url}/200")
    await write_keys(services, developer, made["id"], EndpointKeys("whsec_not base 64!"))
    answer = await developer.post(f"{PATH}/{made['id']}/test", {}, timeout=60)
    assert answer.status_code == 200
    assert answer.json()["status"] == "failed"
