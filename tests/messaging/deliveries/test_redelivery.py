"""Redeliveries: the record of the delivery counts all attempts."""

import asyncio

import pytest

from app.domain.messaging.deliveries import sending
from tests.assertions import refused, wait_until
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.deliveries.sender import EVENT, Sender
from tests.messaging.webhooks.factories import PATH


async def _deliver_once(sender: Sender, url: str) -> tuple[str, str]:
    """Creates a webhook with one delivery after its first attempt; returns their ids."""
    webhook_id = await sender.create_webhook(url)
    await sender.emit_events()
    return webhook_id, (await sender.wait_for_attempt(webhook_id))["id"]


async def test_a_delivered_event_is_delivered_again(sender: Sender, receiver: Receiver) -> None:
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/200")
    answer = await sender.redeliver(webhook_id, delivery_id)
    assert (answer["id"], answer["status"], answer["attempt"]) == (delivery_id, "pending", 1)
    assert (answer["finished_at"], answer["next_attempt_at"] is None) == (None, False)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert (delivery["id"], delivery["status"]) == (delivery_id, "delivered")
    assert [attempt["attempt"] for attempt in delivery["attempts"]] == [2, 1]
    first, second = receiver.requests
    assert first.body == second.body
    assert second.headers["X-Service-Retry-Count"] == "1"


async def test_a_failed_delivery_has_all_its_attempts_again(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.scripts["again"] = [500] * 10 + [200]
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/script/again")
    for number in range(1, 7):
        await sender.wait_for_attempt(webhook_id, number)
        await sender.advance_schedule(webhook_id, 100_000)
    assert (await sender.wait_for_attempt(webhook_id, 7))["status"] == "failed"
    await sender.redeliver(webhook_id, delivery_id)
    for number in range(8, 11):
        assert (await sender.wait_for_attempt(webhook_id, number))["status"] == "pending"
        await sender.advance_schedule(webhook_id, 100_000)
    delivery = await sender.wait_for_attempt(webhook_id, 11)
    assert (delivery["status"], delivery["error"]) == ("delivered", None)
    assert [attempt["attempt"] for attempt in delivery["attempts"]] == list(range(11, 0, -1))
    assert len(await sender.list_deliveries(webhook_id)) == 1


async def test_redelivering_makes_a_pending_retry_due_now(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.scripts["earlier"] = [500, 500, 200]
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/script/earlier")
    await sender.redeliver(webhook_id, delivery_id)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert delivery["status"] == "pending"
    row = await sender.read_work(webhook_id)
    assert (row["attempt"], row["state"]) == (2, "pending")
    assert await sender.fetch_value("SELECT count(*) FROM work WHERE lane = $1", webhook_id) == 1


async def test_redelivering_during_an_attempt_sends_no_second_request(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/once")
    await sender.emit_events()
    await receiver.wait_for(1)
    (entry,) = await sender.list_deliveries(webhook_id)
    await sender.redeliver(webhook_id, entry["id"])
    receiver.may_respond.set()
    await sender.wait_until_finished(webhook_id)
    assert (await sender.wait_for_attempt(webhook_id))["attempt"] == 1
    assert len(receiver.requests) == 1


async def test_concurrent_redeliveries_share_one_record(sender: Sender, receiver: Receiver) -> None:
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/200")
    await asyncio.gather(*(sender.redeliver(webhook_id, delivery_id) for _ in range(10)))
    await sender.wait_until_finished(webhook_id)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    numbers = [attempt["attempt"] for attempt in delivery["attempts"]]
    assert numbers == list(range(delivery["attempt"], 0, -1))
    assert len(receiver.requests) == len(numbers)
    assert len(await sender.list_deliveries(webhook_id)) == 1


async def test_redelivering_to_an_inactive_webhook_is_refused(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/200")
    await sender.update_webhook(webhook_id, active=False)
    path = f"{PATH}/{webhook_id}/executions/{delivery_id}/redeliver"
    error = refused(await sender.client.post(path), 409, "webhook_inactive")
    assert "active" in error["message"]
    delivery = await sender.read_delivery(webhook_id, delivery_id)
    assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)


async def test_the_same_idempotency_key_redelivers_once(sender: Sender, receiver: Receiver) -> None:
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/200")
    path = f"{PATH}/{webhook_id}/executions/{delivery_id}/redeliver"
    for _ in range(3):
        answer = await sender.client.post(path, headers={"Idempotency-Key": "one-of-a-kind"})
        assert answer.status_code == 202
        await sender.wait_until_finished(webhook_id)
    assert (await sender.wait_for_attempt(webhook_id, 2))["attempt"] == 2
    assert len(receiver.requests) == 2


async def test_a_410_to_a_redelivery_disables_the_webhook(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.scripts["left"] = [200, 410]
    webhook_id, delivery_id = await _deliver_once(sender, f"{receiver.url}/script/left")
    await sender.redeliver(webhook_id, delivery_id)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert (delivery["status"], delivery["response_code"]) == ("failed", 410)
    assert (await sender.read_webhook(webhook_id))["disabled_reason"] == "gone"


async def test_a_second_event_has_a_second_delivery(sender: Sender, receiver: Receiver) -> None:
    webhook_id, _ = await _deliver_once(sender, f"{receiver.url}/200")
    await sender.emit_events()
    await sender.wait_until_finished(webhook_id, 2)
    deliveries = await sender.list_deliveries(webhook_id)
    assert len({delivery["event_id"] for delivery in deliveries}) == 2


# Test events


async def test_a_failed_test_delivery_can_be_redelivered_by_the_schedule(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.scripts["trial"] = [500, 500, 200]
    webhook_id = await sender.create_webhook(f"{receiver.url}/script/trial")
    answer = await sender.client.post(f"{PATH}/{webhook_id}/test", {"event_type": EVENT})
    assert answer.json()["status"] == "failed"
    await sender.redeliver(webhook_id, answer.json()["id"])
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert delivery["status"] == "pending"
    assert delivery["next_attempt_at"] is not None
    await sender.advance_schedule(webhook_id, 100)
    assert (await sender.wait_for_attempt(webhook_id, 3))["status"] == "delivered"


async def test_a_test_event_is_retried_like_any_other(sender: Sender, receiver: Receiver) -> None:
    receiver.scripts["tested"] = [500, 200]
    webhook_id = await sender.create_webhook(f"{receiver.url}/script/tested")
    body = {"event_type": EVENT, "data": {"note": "hello"}}
    answer = await sender.client.post("/api/v1/events/test", body)
    assert answer.status_code == 202, answer.text
    delivery = await sender.wait_for_attempt(webhook_id)
    assert (delivery["status"], delivery["next_attempt_at"] is None) == ("pending", False)
    await sender.advance_schedule(webhook_id, 100)
    assert (await sender.wait_for_attempt(webhook_id, 2))["status"] == "delivered"


async def test_a_test_event_fails_after_its_last_attempt(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/500")
    body = {"event_type": EVENT, "data": {"note": "hello"}}
    await sender.client.post("/api/v1/events/test", body)
    for number in range(1, 7):
        await sender.wait_for_attempt(webhook_id, number)
        await sender.advance_schedule(webhook_id, 100_000)
    delivery = await sender.wait_for_attempt(webhook_id, 7)
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)


async def test_a_test_event_to_a_hanging_endpoint_is_a_failed_delivery(
    sender: Sender, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_SECONDS", 0.3)
    webhook_id = await sender.create_webhook(f"{receiver.url}/hang")
    answer = await sender.client.post(f"{PATH}/{webhook_id}/test", {"event_type": EVENT})
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["attempt"]) == ("failed", 1)
    assert answer.json()["response_code"] is None


async def test_a_delivery_whose_event_was_deleted_leaves_no_work(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id, _ = await _deliver_once(sender, f"{receiver.url}/500")
    tenant_id = sender.client.tenant_id
    await sender.run_sql(
        "DELETE FROM event_log WHERE tenant_id = $1 AND type = $2", tenant_id, EVENT
    )
    await sender.advance_schedule(webhook_id, 100)

    async def is_done() -> bool:
        return bool((await sender.read_work(webhook_id))["state"] == "done")

    await wait_until(is_done)
    assert await sender.list_deliveries(webhook_id) == []
    assert len(receiver.requests) == 1
