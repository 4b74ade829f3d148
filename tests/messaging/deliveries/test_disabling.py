"""Webhooks that are disabled or deactivated, and their pending deliveries."""

import asyncio

import pytest

from tests.assertions import until, wait_until
from tests.messaging.deliveries.raw_server import encode_response, run_raw_server
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.deliveries.sender import EVENT, CreateSender, Sender
from tests.messaging.webhooks.factories import PATH
from tests.platform.mail.messages import read_part
from tests.world import Client, World

DISABLED = "system.webhook.disabled"
DAY = 24 * 3600


async def _wait_until_inactive(sender: Sender, webhook_id: str) -> None:
    async def is_inactive() -> bool:
        return not (await sender.read_webhook(webhook_id))["active"]

    await wait_until(is_inactive)


async def _disable_by_410(sender: Sender, receiver: Receiver) -> str:
    webhook_id = await sender.create_webhook(f"{receiver.url}/410")
    await sender.emit_events()
    await _wait_until_inactive(sender, webhook_id)
    return webhook_id


# Endpoints that answer 410


async def test_a_410_disables_a_webhook_at_once(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _disable_by_410(sender, receiver)
    assert (await sender.read_webhook(webhook_id))["disabled_reason"] == "gone"
    delivery = await sender.wait_for_attempt(webhook_id)
    assert (delivery["status"], delivery["response_code"]) == ("failed", 410)
    assert delivery["error"] == "the endpoint answered 410"
    assert delivery["finished_at"] is not None
    assert len(receiver.requests) == 1


async def test_disabling_emits_an_event_in_the_same_chain(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _disable_by_410(sender, receiver)
    (event,) = await sender.list_events(DISABLED)
    assert event["data"] == {
        "webhook_id": webhook_id,
        "url": receiver.url,
        "reason": "gone",
        "subscription_id": None,
        "owner_id": sender.client.user_id,
    }
    delivery = await sender.wait_for_attempt(webhook_id)
    assert event["correlation_id"] == delivery["correlation_id"]
    assert event["parent_id"] == delivery["event_id"]


async def test_the_owner_gets_a_mail(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _disable_by_410(sender, receiver)
    mail = await _wait_for_mail(sender)
    assert webhook_id in mail
    assert receiver.url in mail
    assert "410" in mail


async def _wait_for_mail(sender: Sender) -> str:
    """Returns the text of the only mail to the user who created the webhooks."""
    folder = sender.services.settings.data_dir / "mail"
    sql = "SELECT array_agg(id) FROM mail_messages WHERE recipient = $1 AND body IS NULL"

    async def find_mails() -> list[str]:
        # By id: the folder has the mails of thousands of other tests.
        ids = await sender.fetch_value(sql, sender.client.email)
        return [read_part((folder / f"{mail_id}.eml").read_bytes()) for mail_id in ids or ()]

    (mail,) = await wait_until(find_mails)
    return mail


async def test_an_inactive_owner_gets_no_mail(sender: Sender, receiver: Receiver) -> None:
    user_id = sender.client.user_id
    webhook_id = await sender.create_webhook(f"{receiver.url}/410")
    await sender.run_sql("UPDATE users SET status = 'inactive' WHERE id = $1", user_id)
    await sender.emit_events()
    await sender.wait_until_finished(webhook_id)
    assert (
        await sender.fetch_value("SELECT active FROM webhooks WHERE id = $1", webhook_id) is False
    )
    assert await sender.count_mails() == 0


async def test_a_super_admin_who_created_the_webhook_gets_the_mail(
    sender: Sender, receiver: Receiver, super_admin: Client
) -> None:
    body = {"url": f"{receiver.url}/410", "events": [EVENT]}
    headers = {"X-Tenant-ID": sender.client.tenant_id}
    assert (await super_admin.post(PATH, body, headers=headers)).status_code == 201
    await sender.emit_events()
    await wait_until(lambda: sender.count_mails(super_admin.email))


async def test_the_mail_about_a_subscription_names_the_subscription(
    sender: Sender, receiver: Receiver
) -> None:
    body = {
        "event_type": EVENT,
        "action_type": "webhook",
        "action_config": {"url": f"{receiver.url}/410?key=hidden"},
    }
    subscription = (await sender.client.post("/api/v1/event-subscriptions", body)).json()
    await sender.emit_events()
    mail = await _wait_for_mail(sender)
    assert subscription["id"] in mail
    assert "hidden" not in mail
    answer = await sender.client.get(f"/api/v1/event-subscriptions/{subscription['id']}")
    assert answer.json()["active"] is False


async def test_many_410s_at_once_cause_one_event_and_one_mail(sender: Sender) -> None:
    writers: list[asyncio.StreamWriter] = []
    all_received = asyncio.Event()

    async def respond(writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await all_received.wait()
        writer.write(encode_response(b"", "410 Gone"))

    async with run_raw_server(respond) as url:
        webhook_id = await sender.create_webhook(url)
        await sender.emit_events(10)
        await until(lambda: len(writers) == 10)
        all_received.set()
        await sender.wait_until_finished(webhook_id, 10)
    assert len(await sender.list_events(DISABLED)) == 1
    await wait_until(sender.count_mails)
    assert await sender.count_mails() == 1
    assert (
        await sender.count_deliveries(webhook_id, "status = 'failed' AND response_code = 410") == 10
    )


async def test_a_410_to_a_retry_disables_as_well(sender: Sender, receiver: Receiver) -> None:
    receiver.scripts["leaving"] = [500, 410]
    webhook_id = await sender.create_webhook(f"{receiver.url}/script/leaving")
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    await sender.advance_schedule(webhook_id, 100)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert delivery["status"] == "failed"
    assert (await sender.read_webhook(webhook_id))["disabled_reason"] == "gone"


async def test_a_410_disables_no_other_webhook(
    sender: Sender, receiver: Receiver, world: World
) -> None:
    other = Sender(await world.user(), sender.services, sender.process)
    other_webhook_id = await other.create_webhook(f"{receiver.url}/410")
    active_id = await sender.create_webhook(f"{receiver.url}/200")
    await _disable_by_410(sender, receiver)
    assert (await sender.read_webhook(active_id))["active"]
    assert (await other.read_webhook(other_webhook_id))["active"]


async def test_a_410_to_a_test_event_disables_nothing(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/410")
    answer = await sender.client.post(f"{PATH}/{webhook_id}/test", {"event_type": EVENT})
    assert (answer.json()["status"], answer.json()["response_code"]) == ("failed", 410)
    stored = await sender.read_webhook(webhook_id)
    assert (stored["active"], stored["failing_since"]) == (True, None)


async def test_the_disabled_event_has_no_query_of_the_url(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/410?key=hush")
    await sender.emit_events()
    await _wait_until_inactive(sender, webhook_id)
    (event,) = await sender.list_events(DISABLED)
    assert event["data"]["url"] == receiver.url


# Failing for five days


async def _set_failing_for(sender: Sender, webhook_id: str, seconds: float) -> None:
    await sender.run_sql(
        "UPDATE webhooks SET failing_since = now() - $2 * interval '1 second' WHERE id = $1",
        webhook_id,
        float(seconds),
    )


async def _fail_once(sender: Sender, url: str) -> str:
    webhook_id = await sender.create_webhook(url)
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    return webhook_id


async def test_failing_since_is_the_first_failure(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _fail_once(sender, f"{receiver.url}/500")
    since = (await sender.read_webhook(webhook_id))["failing_since"]
    assert since is not None
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    assert (await sender.read_webhook(webhook_id))["failing_since"] == since


async def test_a_success_resets_failing_since(sender: Sender, receiver: Receiver) -> None:
    receiver.scripts["now-and-then"] = [500, 200]
    webhook_id = await _fail_once(sender, f"{receiver.url}/script/now-and-then")
    await _set_failing_for(sender, webhook_id, 6 * DAY)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    stored = await sender.read_webhook(webhook_id)
    assert (stored["active"], stored["failing_since"]) == (True, None)


async def test_five_days_of_failures_disable_a_webhook(
    create_sender: CreateSender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[float, str | None]] = [
        (5 * DAY - 60, None),
        (5 * DAY + 1, "failing"),
        (50 * DAY, "failing"),
    ]
    for seconds, reason in cases:
        with subtests.test(seconds=seconds, reason=reason):
            sender = await create_sender()
            receiver.reset()
            webhook_id = await _fail_once(sender, f"{receiver.url}/500")
            await _set_failing_for(sender, webhook_id, seconds)
            await sender.advance_schedule(webhook_id, 100)
            await sender.wait_for_attempt(webhook_id, 2)
            stored = await sender.read_webhook(webhook_id)
            assert (stored["active"], stored["disabled_reason"]) == (reason is None, reason)


async def test_disabling_for_failures_emits_an_event_that_causes_a_mail(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _fail_once(sender, f"{receiver.url}/503")
    await _set_failing_for(sender, webhook_id, 6 * DAY)
    await sender.advance_schedule(webhook_id, 100)
    await _wait_until_inactive(sender, webhook_id)
    (event,) = await sender.list_events(DISABLED)
    assert event["data"]["reason"] == "failing"
    assert "five days" in await _wait_for_mail(sender)


async def test_a_missing_response_counts_as_a_failure(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _fail_once(sender, f"{receiver.url}/reset")
    await _set_failing_for(sender, webhook_id, 6 * DAY)
    await sender.advance_schedule(webhook_id, 100)
    await _wait_until_inactive(sender, webhook_id)


async def test_test_events_do_not_change_failing_since(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _fail_once(sender, f"{receiver.url}/500")
    await _set_failing_for(sender, webhook_id, 6 * DAY)
    before = (await sender.read_webhook(webhook_id))["failing_since"]
    await sender.client.post(f"{PATH}/{webhook_id}/test", {"event_type": EVENT})
    stored = await sender.read_webhook(webhook_id)
    assert (stored["active"], stored["failing_since"]) == (True, before)


# Deactivated through the API


async def _create_pending_retry(sender: Sender, receiver: Receiver) -> str:
    """Creates a webhook with a delivery that waits for its second attempt."""
    return await _fail_once(sender, f"{receiver.url}/500")


async def _fail_retry_by_inactivity(sender: Sender, receiver: Receiver) -> str:
    """Creates a webhook whose only delivery failed because it was inactive."""
    webhook_id = await _create_pending_retry(sender, receiver)
    await sender.update_webhook(webhook_id, active=False)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_until_finished(webhook_id)
    return webhook_id


async def test_a_pending_delivery_to_an_inactive_webhook_fails(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _fail_retry_by_inactivity(sender, receiver)
    delivery = await sender.wait_for_attempt(webhook_id)
    assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
    assert delivery["error"] == "the webhook was not active when its turn came"
    assert (delivery["response_code"], delivery["next_attempt_at"]) == (500, None)
    assert (await sender.read_work(webhook_id))["state"] == "cancelled"
    assert len(receiver.requests) == 1


async def test_a_delivery_that_failed_by_inactivity_can_be_redelivered(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _fail_retry_by_inactivity(sender, receiver)
    await sender.update_webhook(webhook_id, active=True, url=f"{receiver.url}/200")
    delivery_id = (await sender.list_deliveries(webhook_id))[0]["id"]
    await sender.redeliver(webhook_id, delivery_id)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert (delivery["status"], delivery["error"]) == ("delivered", None)


async def test_a_webhook_reactivated_before_the_retry_gets_it(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _create_pending_retry(sender, receiver)
    await sender.update_webhook(webhook_id, active=False)
    await sender.update_webhook(webhook_id, active=True, url=f"{receiver.url}/200")
    await sender.advance_schedule(webhook_id, 100)
    assert (await sender.wait_for_attempt(webhook_id, 2))["status"] == "delivered"


async def test_an_inactive_webhook_gets_no_new_events(sender: Sender, receiver: Receiver) -> None:
    inactive_id = await sender.create_webhook(f"{receiver.url}/200/inactive", active=False)
    active_id = await sender.create_webhook(f"{receiver.url}/200/active")
    await sender.emit_events(3)
    await sender.wait_until_finished(active_id, 3)
    assert await sender.list_deliveries(inactive_id) == []
    assert receiver.requests_to("/200/inactive") == []


async def test_reactivating_clears_the_disabled_reason(
    create_sender: CreateSender, receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for reason in ("gone", "failing"):
        with subtests.test(reason=reason):
            sender = await create_sender()
            receiver.reset()
            webhook_id = await sender.create_webhook(f"{receiver.url}/200")
            await sender.run_sql(
                "UPDATE webhooks SET active = false, disabled_reason = $2, failing_since = now() "
                "WHERE id = $1",
                webhook_id,
                reason,
            )
            updated = await sender.update_webhook(webhook_id, active=True)
            assert (updated["active"], updated["disabled_reason"]) == (True, None)
            assert updated["failing_since"] is None
            await sender.emit_events()
            assert (await sender.wait_for_attempt(webhook_id))["status"] == "delivered"


async def test_reactivating_starts_the_five_days_again(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _create_pending_retry(sender, receiver)
    await _set_failing_for(sender, webhook_id, 6 * DAY)
    await sender.update_webhook(webhook_id, active=False)
    await sender.update_webhook(webhook_id, active=True)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    assert (await sender.read_webhook(webhook_id))["active"]


async def test_deleting_a_webhook_cancels_its_pending_work(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _create_pending_retry(sender, receiver)
    assert (await sender.client.delete(f"{PATH}/{webhook_id}")).status_code == 204
    row = await sender.read_work(webhook_id)
    assert (row["state"], row["lease_token"]) == ("cancelled", None)
    assert await sender.count_deliveries(webhook_id) == 0


async def test_deleting_a_webhook_during_requests_cancels_their_work(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/deleted")
    await sender.emit_events(3)
    await receiver.wait_for(3)
    assert (await sender.client.delete(f"{PATH}/{webhook_id}")).status_code == 204
    receiver.may_respond.set()
    await until(lambda: sender.process.runner.running_count == 0)
    sql = "SELECT array_agg(state) FROM work WHERE lane = $1"
    assert await sender.fetch_value(sql, webhook_id) == ["cancelled"] * 3
    assert await sender.list_events("system.work.dead") == []
