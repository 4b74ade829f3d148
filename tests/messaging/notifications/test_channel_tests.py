"""POST /api/v1/notification-channels/:id/test: sends one message for real and waits for it."""

from typing import Any

import pytest

from app.domain.messaging.notifications import channel_tests
from app.domain.messaging.notifications.message_queries import SEND
from app.services import Services
from tests.assertions import refused, until
from tests.database import fetch_rows
from tests.messaging.notifications.factories import (
    PATH,
    create_channel,
    list_log,
    run_test,
    update_channel,
)
from tests.messaging.notifications.mail_server import run_mail_server
from tests.messaging.notifications.provider_server import KEY
from tests.messaging.notifications.sender import ChannelSender
from tests.messaging.webhooks.factories import list_events
from tests.platform.events.responses import read_json
from tests.world import Client, World


async def test_a_test_is_sent_to_the_first_recipient_of_the_channel(sender: ChannelSender) -> None:
    channel_id = await sender.create(to=["ops@example.com", "bob@example.com"])
    result = await run_test(sender.client, channel_id)
    assert result["success"] is True
    assert result["message"] == "Delivered to ops@example.com"
    assert isinstance(result["delivery_time_ms"], int)
    (call,) = sender.providers.accepted
    assert call.json["personalizations"] == [{"to": [{"email": "ops@example.com"}]}]
    (entry,) = await list_log(sender.client, channel_id)
    assert (entry["status"], entry["subject"]) == ("delivered", "Test notification")


async def test_a_mail_channel_without_recipients_is_tested_with_the_callers_address(
    sender: ChannelSender,
) -> None:
    async with run_mail_server() as server:
        channel = await create_channel(sender.client, "smtp", config=server.config())
        result = await run_test(sender.client, channel["id"])
    assert result["message"] == f"Delivered to {sender.client.email}"
    assert server.read()["To"] == sender.client.email


async def test_every_other_provider_can_be_tested(
    sender: ChannelSender, subtests: pytest.Subtests
) -> None:
    for provider, config in (
        ("mailgun", {}),
        ("resend", {}),
        ("slack_webhook", {}),
        ("slack_bot", {}),
        ("webhook", {}),
        ("twilio", {"to": ["+447700900000"]}),
        ("vonage", {"to": ["+447700900000"]}),
    ):
        with subtests.test(provider=provider):
            channel_id = await sender.create(provider, **config)
            assert (await run_test(sender.client, channel_id))["success"] is True
    assert len(sender.providers.accepted) == 7


async def test_a_failed_test_has_the_providers_reason_without_the_secret(
    sender: ChannelSender,
) -> None:
    sender.providers.answer(503, {"message": f"the key {KEY} is busy"})
    channel_id = await sender.create("resend")
    other_id = await sender.create("sendgrid")
    result = await run_test(sender.client, channel_id)
    assert result["success"] is False
    assert result["message"].startswith("the provider answered 503: the key")
    assert KEY not in result["message"]
    assert isinstance(result["delivery_time_ms"], int)
    # It is neither tried again nor sent through another channel, and emits no event.
    assert await sender.outline(channel_id) == [(1, "failed", "provider_error")]
    assert await sender.outline(other_id) == []
    assert len(sender.providers.calls) == 1
    assert await list_events(sender.client, "system.work.dead") == []


async def test_an_inactive_channel_is_not_tested(sender: ChannelSender) -> None:
    channel_id = await sender.create(active=False)
    refused(await sender.client.post(f"{PATH}/{channel_id}/test"), 409, "channel_inactive")
    assert sender.providers.calls == []
    await update_channel(sender.client, channel_id, active=True)
    assert (await run_test(sender.client, channel_id))["success"] is True


async def test_a_channel_without_a_recipient_gets_advice(sender: ChannelSender) -> None:
    channel_id = await sender.create("twilio")
    result = await run_test(sender.client, channel_id)
    assert (result["success"], result["delivery_time_ms"]) == (False, None)
    assert "`to`" in result["message"]
    assert sender.providers.calls == []
    assert await list_log(sender.client, channel_id) == []


async def test_an_in_app_test_adds_to_the_callers_notifications(
    developer: Client, world: World
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    channel = await create_channel(developer, "in_app", config={"to": [colleague.user_id]})
    assert (await run_test(developer, channel["id"]))["success"] is True
    page = read_json(await developer.get("/api/v1/notifications"))
    assert [item["title"] for item in page["data"]] == ["Test notification"]
    assert read_json(await colleague.get("/api/v1/notifications"))["total"] == 0


async def test_tests_beyond_the_limit_of_the_channel_are_refused(sender: ChannelSender) -> None:
    channel_id = await sender.create(rate_limit_per_minute=2)
    other_id = await sender.create("resend", rate_limit_per_minute=2)
    path = f"{PATH}/{channel_id}/test"
    for _ in range(2):
        await run_test(sender.client, channel_id)
    answer = await sender.client.post(path)
    error = refused(answer, 429, "rate_limited")
    assert error["details"]["limit"] == 2
    assert 0 < int(answer.headers["Retry-After"]) <= 61
    assert len(sender.providers.calls) == 2
    assert (await run_test(sender.client, other_id))["success"] is True
    await sender.end_rate_window(channel_id)
    assert (await run_test(sender.client, channel_id))["success"] is True


async def test_the_limit_of_the_provider_holds_without_one_of_the_channel(
    sender: ChannelSender, services: Services
) -> None:
    channel_id = await sender.create("slack_bot")
    await services.redis.set(f"parley:channel_rate:{channel_id}", 60, ex=60)
    error = refused(await sender.client.post(f"{PATH}/{channel_id}/test"), 429, "rate_limited")
    assert error["details"]["limit"] == 60


async def test_the_same_idempotency_key_tests_once(sender: ChannelSender) -> None:
    channel_id = await sender.create()
    headers = {"Idempotency-Key": channel_id}
    path = f"{PATH}/{channel_id}/test"
    answers = [await sender.client.post(path, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(sender.providers.calls) == 1


async def test_a_test_that_no_worker_runs_says_so(
    sender: ChannelSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel_id = await sender.create()
    monkeypatch.setattr(channel_tests, "TIMEOUT_SECONDS", 0.0)
    monkeypatch.setattr(channel_tests, "_QUEUE_SECONDS", 0.1)
    sender.process.couriers[SEND.name].pause(channel_id, 60)
    result = await run_test(sender.client, channel_id)
    assert (result["success"], result["delivery_time_ms"]) == (False, None)
    assert "worker" in result["message"]
    sender.process.couriers[SEND.name].pause(channel_id, 0)
    sender.process.couriers[SEND.name].wake()
    await until(lambda: sender.providers.accepted)


async def test_a_test_belongs_to_the_tenant_of_the_channel(
    sender: ChannelSender, super_admin: Client, services: Services
) -> None:
    channel_id = await sender.create()
    assert (await run_test(super_admin, channel_id))["success"] is True
    sql = "SELECT tenant_id FROM notification_deliveries WHERE channel_id = $1"
    rows: list[dict[str, Any]] = await fetch_rows(services, sql, channel_id)
    assert [row["tenant_id"] for row in rows] == [sender.client.tenant_id]
