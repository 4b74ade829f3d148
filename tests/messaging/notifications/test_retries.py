"""Attempts of one delivery: their log, their schedule, and the end of the last one."""

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from app.domain.messaging.notifications import sending
from app.domain.messaging.notifications.jobs import CHANNELS
from app.domain.messaging.notifications.message_queries import SEND
from app.domain.messaging.notifications.sending import SendRequest
from app.domain.messaging.outbox.attempts import Schedule
from app.services import Services
from db.ledger import WorkRow
from tests.assertions import wait_until
from tests.database import run_sql
from tests.messaging.notifications.factories import PATH, list_log
from tests.messaging.notifications.sender import ChannelSender
from tests.messaging.webhooks.factories import list_events
from tests.platform.events.responses import read_json

LOG_KEYS = {
    "id",
    "channel_id",
    "status",
    "subject",
    "recipient",
    "delivery_time_ms",
    "created_at",
    "attempt",
    "error_code",
    "error",
}


async def test_a_message_is_delivered_at_once_and_logged(sender: ChannelSender) -> None:
    channel_id = await sender.create()
    await sender.send(channel_id, title="Import failed")
    await sender.wait_for(channel_id, "delivered")
    (entry,) = await list_log(sender.client, channel_id)
    assert set(entry) == LOG_KEYS
    assert entry["channel_id"] == channel_id
    assert (entry["subject"], entry["recipient"]) == ("Import failed", "bob@example.com")
    assert (entry["attempt"], entry["error_code"], entry["error"]) == (1, None, None)
    assert isinstance(entry["delivery_time_ms"], int)
    (work,) = await sender.list_work(channel_id)
    assert (work["state"], work["attempt"]) == ("done", 1)
    assert len(sender.providers.accepted) == 1


async def test_two_failures_are_tried_again_after_1_and_5_seconds(sender: ChannelSender) -> None:
    sender.script(500, 500, 200)
    channel_id = await sender.create()
    await sender.send(channel_id)
    assert await sender.wait_for_retry(channel_id, 2) == 1
    assert await sender.wait_for_retry(channel_id, 3) == 5
    assert await sender.wait_for(channel_id, "failed", "failed", "delivered") == [
        (1, "failed", "provider_error"),
        (2, "failed", "provider_error"),
        (3, "delivered", None),
    ]
    assert len(sender.providers.calls) == 3
    assert await sender.count_deliveries(channel_id, "status = 'delivered' AND attempt = 3") == 1


@pytest.mark.usefixtures("slow_retries")
async def test_the_next_attempt_is_listed_as_pending(sender: ChannelSender) -> None:
    sender.script(500)
    channel_id = await sender.create()
    await sender.send(channel_id)
    await sender.wait_for(channel_id, "failed", "pending")
    (entry,) = await list_log(sender.client, channel_id, status="pending")
    assert (entry["attempt"], entry["delivery_time_ms"], entry["error"]) == (2, None, None)


@pytest.mark.usefixtures("slow_retries")
async def test_three_failures_end_a_delivery_with_an_event(sender: ChannelSender) -> None:
    sender.script(503)
    channel_id = await sender.create()
    await sender.send(channel_id)
    for number in (2, 3):
        await sender.wait_for_retry(channel_id, number)
    await sender.wait_for(channel_id, "failed", "failed", "failed")
    (work,) = await sender.list_work(channel_id)
    assert work["state"] == "dead"
    (event,) = await list_events(sender.client, "system.work.dead")
    assert event["data"]["kind"] == "notifications.send"
    assert (event["data"]["work_id"], event["data"]["ref_id"]) == (work["id"], work["ref_id"])
    assert "503" in event["data"]["error"]
    assert len(sender.providers.calls) == 3


async def test_a_refusal_that_lasts_is_not_tried_again(sender: ChannelSender) -> None:
    sender.script(401)
    channel_id = await sender.create()
    await sender.send(channel_id)
    outline = await sender.wait_for(channel_id, "failed")
    assert outline == [(1, "failed", "provider_error")]
    assert len(await list_events(sender.client, "system.work.dead")) == 1


async def test_a_provider_sets_the_time_of_the_next_attempt(
    sender: ChannelSender, subtests: pytest.Subtests
) -> None:
    for retry_after, seconds in (("30", 30), ("0", 1), ("86400", 600)):
        with subtests.test(retry_after=retry_after):
            sender.script(503, 200, **{"Retry-After": retry_after})
            channel_id = await sender.create()
            await sender.send(channel_id)
            assert await sender.wait_for_retry(channel_id, 2) == seconds
            await sender.wait_for(channel_id, "failed", "delivered")


async def test_a_provider_that_gets_too_many_pauses_the_channel_without_counting(
    sender: ChannelSender,
) -> None:
    sender.script(429, 429, 429, 429, 200, **{"Retry-After": "30"})
    channel_id = await sender.create()
    await sender.send(channel_id)
    for number in range(1, 5):

        async def is_throttled(number: int = number) -> bool:
            calls = len(sender.providers.calls) == number
            return calls and await sender.outline(channel_id) == [(1, "pending", "rate_limited")]

        await wait_until(is_throttled, 10)
        await wait_until(partial(_has_state, sender, channel_id, "pending"), 10)
        await sender.end_rate_window(channel_id)
    outline = await sender.wait_for(channel_id, "delivered")
    assert outline == [(1, "delivered", None)]


async def _has_state(sender: ChannelSender, channel_id: str, state: str) -> bool:
    (work,) = await sender.list_work(channel_id)
    return bool(work["state"] == state)


def test_the_schedule_of_a_message_and_of_a_test(services: Services) -> None:
    """A killed worker uses up an attempt of the work, but none of the message."""
    values = dict.fromkeys(SendRequest.__struct_fields__) | {"attempts": 1, "is_test": False}
    message = SendRequest(**values)  # type: ignore[arg-type]
    test = msgspec.structs.replace(message, is_test=True)
    work = WorkRow("wrk_1", "ten_1", SEND.name, "ntd_1", 5, 10, "lea_1", "cor_1", None)
    schedule = Schedule(2, (0.0, 1.0, 5.0), 10, 600.0)
    assert CHANNELS.schedule(services, work, message) == schedule
    assert CHANNELS.schedule(services, work, test) == msgspec.structs.replace(
        schedule, max_attempts=1
    )


@pytest.mark.usefixtures("slow_retries")
async def test_a_server_that_cannot_be_reached_is_a_failed_delivery(
    sender: ChannelSender,
) -> None:
    channel_id = await sender.create(api_base="http://127.0.0.1:1")
    await sender.send(channel_id)
    outline: list[Any] = await sender.wait_for(channel_id, "failed", "pending")
    assert outline[0] == (1, "failed", "delivery_failed")


@pytest.mark.usefixtures("slow_retries")
async def test_an_attempt_ends_after_a_time(
    sender: ChannelSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_SECONDS", 0.1)
    sender.providers.hold = asyncio.Event()
    channel_id = await sender.create()
    await sender.send(channel_id)
    outline = await sender.wait_for(channel_id, "failed", "pending")
    assert outline[0] == (1, "failed", "delivery_failed")
    sender.providers.hold.set()


@pytest.mark.usefixtures("slow_retries")
async def test_a_send_that_always_ends_without_an_outcome_fails(sender: ChannelSender) -> None:
    sender.script(500)
    channel_id = await sender.create()
    await sender.send(channel_id)
    await sender.wait_for(channel_id, "failed", "pending")
    # As after many workers that were killed.
    sql = "UPDATE work SET attempt = max_attempts WHERE lane = $1"
    await run_sql(sender.services, sql, channel_id)
    await sender.make_due(channel_id)
    outline = await sender.wait_for(channel_id, "failed", "failed")
    assert outline[1] == (2, "failed", "delivery_failed")
    assert await sender.count_deliveries(channel_id, "status = 'failed'") == 1
    assert read_json(await sender.client.get(f"{PATH}/{channel_id}/stats"))["failed"] == 1
    assert len(await list_events(sender.client, "system.work.dead")) == 1
    assert len(sender.providers.calls) == 1
