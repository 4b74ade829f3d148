"""When a delivery is retried, how often, and what ends it."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote

import pytest

from app.domain.messaging.deliveries import signing
from app.domain.messaging.deliveries.queries import DELIVER
from app.kit import clock
from app.net.retry_after import parse_retry_after
from tests.messaging.deliveries.receiver import ReceivedRequest, Receiver
from tests.messaging.deliveries.sender import Sender
from tests.messaging.webhooks.factories import PATH

DELAYS = (0, 60, 300, 1800, 7200, 28800, 86400)
NOW = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)


def _verify_signature(sender: Sender, webhook_id: str, request: ReceivedRequest) -> int:
    """Checks the signature; returns its timestamp."""
    timestamp = int(request.headers["X-Service-Timestamp"])
    expected = signing.sign(sender.secrets[webhook_id], timestamp, request.body)
    assert request.headers["X-Service-Signature"] == expected
    assert request.headers["webhook-timestamp"] == str(timestamp)
    return timestamp


async def _read_wait(sender: Sender, delivery: dict[str, Any], webhook_id: str) -> float:
    """Returns the seconds from the last attempt to the next one in the ledger."""
    row = await sender.read_work(webhook_id)
    assert row["state"] == "pending"
    assert datetime.fromisoformat(delivery["next_attempt_at"]) == row["run_at"]
    attempted_at = datetime.fromisoformat(delivery["attempts"][0]["created_at"])
    wait: float = (row["run_at"] - attempted_at).total_seconds()
    return wait


async def test_seven_attempts_are_made_as_scheduled(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/500")
    await sender.emit_events()
    for number in range(1, 7):
        delivery = await sender.wait_for_attempt(webhook_id, number)
        assert delivery["status"] == "pending"
        wait = await _read_wait(sender, delivery, webhook_id)
        assert DELAYS[number] <= wait < DELAYS[number] + 30
        await sender.advance_schedule(webhook_id, wait + 1)
    delivery = await sender.wait_for_attempt(webhook_id, 7)
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert delivery["finished_at"] is not None
    assert [attempt["attempt"] for attempt in delivery["attempts"]] == [7, 6, 5, 4, 3, 2, 1]
    assert {attempt["response_code"] for attempt in delivery["attempts"]} == {500}
    assert len(receiver.requests) == 7


async def test_nothing_is_sent_before_it_is_due(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/500")
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    await sender.advance_schedule(webhook_id, 30)
    await sender.process.couriers[DELIVER.name].scan()
    assert (await sender.read_work(webhook_id))["state"] == "pending"
    assert len(receiver.requests) == 1


async def test_the_last_failure_emits_an_event(sender: Sender, receiver: Receiver) -> None:
    (event_id,), webhook_id = await _fail_every_attempt(sender, f"{receiver.url}/500")
    row = await sender.read_work(webhook_id)
    assert (row["state"], row["attempt"]) == ("dead", 7)
    (dead,) = await sender.list_events("system.work.dead")
    delivery = await sender.wait_for_attempt(webhook_id)
    assert dead["data"] == {
        "work_id": row["id"],
        "kind": "webhooks.deliver",
        "ref_id": delivery["id"],
        "attempts": 7,
        "error": "the endpoint answered 500",
    }
    assert dead["parent_id"] == event_id
    assert dead["correlation_id"] == delivery["correlation_id"]


async def _fail_every_attempt(sender: Sender, url: str) -> tuple[list[str], str]:
    webhook_id = await sender.create_webhook(url)
    event_ids = await sender.emit_events()
    for number in range(1, 7):
        await sender.wait_for_attempt(webhook_id, number)
        await sender.advance_schedule(webhook_id, 100_000)
    await sender.wait_for_attempt(webhook_id, 7)
    return event_ids, webhook_id


async def test_a_failed_delivery_is_not_retried(sender: Sender, receiver: Receiver) -> None:
    _, webhook_id = await _fail_every_attempt(sender, f"{receiver.url}/500")
    await sender.advance_schedule(webhook_id, 1_000_000)
    await sender.process.couriers[DELIVER.name].scan()
    assert (await sender.read_work(webhook_id))["state"] == "dead"
    assert len(receiver.requests) == 7


async def test_each_attempt_has_its_own_timestamp_and_signature(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/500")
    start = datetime.now(UTC).replace(microsecond=0)
    for number in range(1, 8):
        with clock.frozen(start + timedelta(hours=number)):
            if number == 1:
                await sender.emit_events()
            else:
                await sender.advance_schedule(webhook_id, 100_000)
            await receiver.wait_for(number)
        await sender.wait_for_attempt(webhook_id, number)
    timestamps = [_verify_signature(sender, webhook_id, request) for request in receiver.requests]
    assert timestamps == [int(start.timestamp()) + 3600 * number for number in range(1, 8)]


async def test_each_attempt_has_the_same_body(sender: Sender, receiver: Receiver) -> None:
    (event_id,), _ = await _fail_every_attempt(sender, f"{receiver.url}/500")
    assert len({request.body for request in receiver.requests}) == 1
    assert {request.headers["X-Service-Event-Id"] for request in receiver.requests} == {event_id}
    assert {request.headers["webhook-id"] for request in receiver.requests} == {event_id}


async def test_retries_are_counted_in_a_header(sender: Sender, receiver: Receiver) -> None:
    await _fail_every_attempt(sender, f"{receiver.url}/500")
    counts = [request.headers.get("X-Service-Retry-Count") for request in receiver.requests]
    assert counts == [None, "1", "2", "3", "4", "5", "6"]


async def test_a_success_stops_the_retries(sender: Sender, receiver: Receiver) -> None:
    receiver.scripts["mended"] = [500, 503, 200]
    webhook_id = await sender.create_webhook(f"{receiver.url}/script/mended")
    await sender.emit_events()
    for number in (1, 2):
        await sender.wait_for_attempt(webhook_id, number)
        await sender.advance_schedule(webhook_id, 100_000)
    delivery = await sender.wait_for_attempt(webhook_id, 3)
    assert (delivery["status"], delivery["response_code"]) == ("delivered", 200)
    assert delivery["error"] is None
    codes = [(attempt["status"], attempt["response_code"]) for attempt in delivery["attempts"]]
    assert codes == [("delivered", 200), ("failed", 503), ("failed", 500)]
    assert (await sender.read_work(webhook_id))["state"] == "done"
    assert await sender.list_events("system.work.dead") == []


async def test_a_secret_rotated_between_attempts_signs_the_next(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/500")
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    old_secret = sender.secrets[webhook_id]
    answer = await sender.client.post(f"{PATH}/{webhook_id}/rotate-secret")
    sender.secrets[webhook_id] = answer.json()["secret"]
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    timestamp = _verify_signature(sender, webhook_id, receiver.requests[1])
    expected = signing.sign(old_secret, timestamp, receiver.requests[1].body)
    assert receiver.requests[1].headers["X-Service-Signature-Previous"] == expected


async def test_a_new_address_gets_the_next_attempt(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/500")
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    await sender.update_webhook(webhook_id, url=f"{receiver.url}/200/moved")
    await sender.advance_schedule(webhook_id, 100)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert delivery["status"] == "delivered"
    urls = [attempt["url"] for attempt in delivery["attempts"]]
    assert urls == [f"{receiver.url}/200/moved", f"{receiver.url}/500"]


# Retry-After


async def _read_waits_after(
    sender: Sender, receiver: Receiver, cases: list[tuple[int, str]]
) -> list[float]:
    """Sends one event to an endpoint for each code and Retry-After; returns the waiting times."""
    urls = [f"{receiver.url}/{code}?after={quote(retry_after)}" for code, retry_after in cases]
    webhook_ids = [await sender.create_webhook(url) for url in urls]
    await sender.emit_events()
    return [
        await _read_wait(sender, await sender.wait_for_attempt(webhook_id), webhook_id)
        for webhook_id in webhook_ids
    ]


_RETRY_AFTERS_OF_ENDPOINTS: list[tuple[str, float]] = [
    ("3600", 3600),
    (" 120 ", 120),
    ("1", 60),
    ("0", 60),
    ("90000", 86400),
    ("9" * 400, 86400),
    ("-5", 60),
    ("1.5", 60),
    ("soon", 60),
    ("", 60),
    ("Thu, 99 Foo 2030 99:99:99 GMT", 60),
    ("Mon, 01 Jan 0001 00:00:00 -2359", 60),
    ("Fri, 31 Dec 9999 23:59:59 GMT", 86400),
    ("Fri, 31 Dec 9999 23:59:59 -2359", 86400),
    ("Mon, 01 Jan 2001 00:00:00 GMT", 60),
]


async def test_the_longer_of_retry_after_and_schedule_applies(
    sender: Sender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    cases = [(429, retry_after) for retry_after, _ in _RETRY_AFTERS_OF_ENDPOINTS] + [(503, "3600")]
    waits = await _read_waits_after(sender, receiver, cases)
    expected_waits = [expected for _, expected in _RETRY_AFTERS_OF_ENDPOINTS] + [3600]
    for (code, retry_after), wait, expected in zip(cases, waits, expected_waits, strict=True):
        with subtests.test(code=code, retry_after=retry_after):
            assert expected <= wait < expected + 30


async def test_retry_after_with_a_date_is_respected(
    sender: Sender, receiver: Receiver, tokyo_time: None, subtests: pytest.Subtests
) -> None:
    """Dates of HTTP are in GMT, whatever the server's zone."""
    zones = ["GMT", "+0000", "-0000", "", "UTC"]
    date = format_datetime(clock.now() + timedelta(hours=5), usegmt=True).removesuffix("GMT")
    waits = await _read_waits_after(
        sender, receiver, [(503, f"{date}{zone}".strip()) for zone in zones]
    )
    for zone, wait in zip(zones, waits, strict=True):
        with subtests.test(zone=zone):
            assert 5 * 3600 - 30 <= wait < 5 * 3600 + 30


def test_no_retry_after_value_raises() -> None:
    pieces = ("", ",", "Mon", "1", "Jan", "2030", "00:00:00", ":", "GMT", "-", "+9999", "\u0661")
    for first in pieces:
        for second in pieces:
            for third in pieces:
                value = f"{first} {second}{third}"
                seconds = parse_retry_after(value)
                assert seconds is None or seconds >= 0, value
