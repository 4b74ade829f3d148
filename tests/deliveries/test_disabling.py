"""Endpoints that are switched off, by themselves or by hand, and what becomes of what waits."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.asking import until
from tests.deliveries.raw_server import encode_response, run_raw_server
from tests.deliveries.receiver import Receiver
from tests.deliveries.sender import EVENT, Sender
from tests.events.database import wait_until
from tests.webhooks.factories import PATH
from tests.world import Client, World
from workers.main import WorkerProcess

DISABLED = "system.webhook.disabled"
DAY = 24 * 3600


async def _is_off(sender: Sender, webhook_id: str) -> None:
    async def off() -> bool:
        return not (await sender.read_webhook(webhook_id))["active"]

    await wait_until(off)


async def _gone(sender: Sender, receiver: Receiver) -> str:
    webhook_id = await sender.create_webhook(f"{receiver.url}/410")
    await sender.emit_events()
    await _is_off(sender, webhook_id)
    return webhook_id


# 410


async def test_gone_switches_a_webhook_off_at_once(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _gone(sender, receiver)
    assert (await sender.read_webhook(webhook_id))["disabled_reason"] == "gone"
    delivery = await sender.wait_for_attempt(webhook_id)
    assert (delivery["status"], delivery["response_code"]) == ("failed", 410)
    assert delivery["error"] == "the endpoint answered 410"
    assert delivery["finished_at"] is not None
    assert len(receiver.requests) == 1


async def test_gone_is_told_as_an_event_of_the_same_chain(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _gone(sender, receiver)
    (told,) = await sender.list_events(DISABLED)
    assert told["data"] == {
        "webhook_id": webhook_id,
        "url": receiver.url,
        "reason": "gone",
        "subscription_id": None,
    }
    delivery = await sender.wait_for_attempt(webhook_id)
    assert told["correlation_id"] == delivery["correlation_id"]
    assert told["parent_id"] == delivery["event_id"]


async def test_the_owner_gets_a_mail(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _gone(sender, receiver)
    folder = sender.services.settings.data_dir / "mail"

    async def found() -> list[str]:
        letters = [path.read_text(errors="replace") for path in folder.glob("*.eml")]
        return [letter for letter in letters if sender.client.email in letter]

    await wait_until(found)
    (letter,) = await found()
    assert webhook_id in letter
    assert receiver.url in letter
    assert "410" in letter


async def test_an_owner_who_may_not_sign_in_any_more_gets_none(
    sender: Sender, receiver: Receiver
) -> None:
    user_id = sender.client.user_id
    webhook_id = await sender.create_webhook(f"{receiver.url}/410")
    await sender.run_sql("UPDATE users SET status = 'inactive' WHERE id = $1", user_id)
    await sender.emit_events()
    await sender.wait_until_finished(webhook_id)
    assert (
        await sender.fetch_value("SELECT active FROM webhooks WHERE id = $1", webhook_id) is False
    )
    assert await sender.count_mails() == 0


async def test_whoever_is_above_all_tenants_gets_the_mail_as_well(
    sender: Sender, receiver: Receiver, super_admin: Client
) -> None:
    body = {"url": f"{receiver.url}/410", "events": ["system.test"]}
    there = {"X-Tenant-ID": sender.client.tenant_id}
    await super_admin.post("/api/v1/webhooks", body, headers=there)
    await sender.emit_events()
    written = "SELECT count(*) FROM mail_messages WHERE recipient = $1"

    async def arrived() -> bool:
        return bool(await sender.fetch_value(written, super_admin.email))

    await wait_until(arrived)


async def test_the_mail_about_a_subscription_names_the_subscription(
    sender: Sender, receiver: Receiver, services: Services
) -> None:
    body = {
        "event_type": "system.test",
        "action_type": "webhook",
        "action_config": {"url": f"{receiver.url}/410?key=hidden"},
    }
    made = (await sender.client.post("/api/v1/event-subscriptions", body)).json()
    await sender.emit_events()
    folder = services.settings.data_dir / "mail"

    async def letters() -> list[str]:
        found = [path.read_text(errors="replace") for path in folder.glob("*.eml")]
        return [letter for letter in found if sender.client.email in letter]

    await wait_until(letters)
    (letter,) = await letters()
    assert made["id"] in letter
    assert "hidden" not in letter
    shown = await sender.client.get(f"/api/v1/event-subscriptions/{made['id']}")
    assert shown.json()["active"] is False


async def test_many_gone_at_once_are_one_event_and_one_mail(sender: Sender) -> None:
    asked: list[asyncio.StreamWriter] = []
    all_asked = asyncio.Event()

    async def gone(writer: asyncio.StreamWriter) -> None:
        asked.append(writer)
        await all_asked.wait()
        writer.write(encode_response(b"", "410 Gone"))

    async with run_raw_server(gone) as url:
        webhook_id = await sender.create_webhook(url)
        await sender.emit_events(10)
        await until(lambda: len(asked) == 10)
        all_asked.set()
        await sender.wait_until_finished(webhook_id, 10)
    assert len(await sender.list_events(DISABLED)) == 1
    assert await sender.count_mails() == 1
    assert (
        await sender.count_deliveries(webhook_id, "status = 'failed' AND response_code = 410") == 10
    )


async def test_gone_on_a_retry_counts_as_well(sender: Sender, receiver: Receiver) -> None:
    receiver.scripts["leaving"] = [500, 410]
    webhook_id = await sender.create_webhook(f"{receiver.url}/script/leaving")
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    await sender.advance_schedule(webhook_id, 100)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert delivery["status"] == "failed"
    assert (await sender.read_webhook(webhook_id))["disabled_reason"] == "gone"


async def test_gone_of_one_endpoint_is_of_no_other(
    sender: Sender, receiver: Receiver, world: World, courier: WorkerProcess
) -> None:
    other = Sender(await world.user(), sender.services, courier)
    theirs = await other.create_webhook(f"{receiver.url}/410")
    mine = await sender.create_webhook(f"{receiver.url}/200")
    await _gone(sender, receiver)
    assert (await sender.read_webhook(mine))["active"]
    assert (await other.read_webhook(theirs))["active"]


async def test_a_trial_that_finds_it_gone_switches_nothing_off(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/410")
    tried = await sender.client.post(f"{PATH}/{webhook_id}/test", {"event_type": EVENT})
    assert (tried.json()["status"], tried.json()["response_code"]) == ("failed", 410)
    found = await sender.read_webhook(webhook_id)
    assert (found["active"], found["failing_since"]) == (True, None)


async def test_what_the_url_holds_after_its_path_is_not_told(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/410?key=hush")
    await sender.emit_events()
    await _is_off(sender, webhook_id)
    (told,) = await sender.list_events(DISABLED)
    assert told["data"]["url"] == receiver.url


# Failing for five days


async def _failing_for(sender: Sender, webhook_id: str, seconds: float) -> None:
    await sender.run_sql(
        "UPDATE webhooks SET failing_since = now() - $2 * interval '1 second' WHERE id = $1",
        webhook_id,
        float(seconds),
    )


async def _failed_once(sender: Sender, url: str) -> str:
    webhook_id = await sender.create_webhook(url)
    await sender.emit_events()
    await sender.wait_for_attempt(webhook_id)
    return webhook_id


async def test_the_first_failure_is_remembered(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _failed_once(sender, f"{receiver.url}/500")
    since = (await sender.read_webhook(webhook_id))["failing_since"]
    assert since is not None
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    assert (await sender.read_webhook(webhook_id))["failing_since"] == since


async def test_a_success_in_between_starts_the_days_anew(
    sender: Sender, receiver: Receiver
) -> None:
    receiver.scripts["now-and-then"] = [500, 200]
    webhook_id = await _failed_once(sender, f"{receiver.url}/script/now-and-then")
    await _failing_for(sender, webhook_id, 6 * DAY)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    found = await sender.read_webhook(webhook_id)
    assert (found["active"], found["failing_since"]) == (True, None)


@pytest.mark.parametrize(
    ("failing", "reason"), [(5 * DAY - 60, None), (5 * DAY + 1, "failing"), (50 * DAY, "failing")]
)
async def test_five_days_of_failing_switch_a_webhook_off(
    sender: Sender, receiver: Receiver, failing: float, reason: str | None
) -> None:
    webhook_id = await _failed_once(sender, f"{receiver.url}/500")
    await _failing_for(sender, webhook_id, failing)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    found = await sender.read_webhook(webhook_id)
    assert (found["active"], found["disabled_reason"]) == (reason is None, reason)


async def test_switched_off_for_failing_it_says_so(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _failed_once(sender, f"{receiver.url}/503")
    await _failing_for(sender, webhook_id, 6 * DAY)
    await sender.advance_schedule(webhook_id, 100)
    await _is_off(sender, webhook_id)
    (told,) = await sender.list_events(DISABLED)
    assert told["data"]["reason"] == "failing"
    assert await sender.count_mails() == 1


async def test_no_answer_at_all_is_failing_as_well(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _failed_once(sender, f"{receiver.url}/reset")
    await _failing_for(sender, webhook_id, 6 * DAY)
    await sender.advance_schedule(webhook_id, 100)
    await _is_off(sender, webhook_id)


async def test_trials_tell_nothing_of_how_it_fares(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _failed_once(sender, f"{receiver.url}/500")
    await _failing_for(sender, webhook_id, 6 * DAY)
    before = (await sender.read_webhook(webhook_id))["failing_since"]
    await sender.client.post(f"{PATH}/{webhook_id}/test", {"event_type": EVENT})
    found = await sender.read_webhook(webhook_id)
    assert (found["active"], found["failing_since"]) == (True, before)


# By hand


async def _waiting(sender: Sender, receiver: Receiver) -> str:
    """An endpoint with a delivery that waits for its second attempt."""
    return await _failed_once(sender, f"{receiver.url}/500")


async def test_what_waits_for_an_inactive_webhook_ends_failed(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _waiting(sender, receiver)
    await sender.update_webhook(webhook_id, active=False)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_until_finished(webhook_id)
    delivery = await sender.wait_for_attempt(webhook_id)
    assert (delivery["status"], delivery["attempt"]) == ("failed", 1)
    assert delivery["error"] == "the webhook was not active when its turn came"
    assert (delivery["response_code"], delivery["next_attempt_at"]) == (500, None)
    assert (await sender.read_work(webhook_id))["state"] == "cancelled"
    assert len(receiver.requests) == 1


async def test_what_ended_so_can_be_redelivered_once_it_is_active(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await _waiting(sender, receiver)
    await sender.update_webhook(webhook_id, active=False)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_until_finished(webhook_id)
    await sender.update_webhook(webhook_id, active=True, url=f"{receiver.url}/200")
    delivery_id = (await sender.list_deliveries(webhook_id))[0]["id"]
    await sender.redeliver(webhook_id, delivery_id)
    delivery = await sender.wait_for_attempt(webhook_id, 2)
    assert (delivery["status"], delivery["error"]) == ("delivered", None)


async def test_back_in_time_nothing_is_lost(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _waiting(sender, receiver)
    await sender.update_webhook(webhook_id, active=False)
    await sender.update_webhook(webhook_id, active=True, url=f"{receiver.url}/200")
    await sender.advance_schedule(webhook_id, 100)
    assert (await sender.wait_for_attempt(webhook_id, 2))["status"] == "delivered"


async def test_an_inactive_webhook_gets_no_new_events(sender: Sender, receiver: Receiver) -> None:
    resting = await sender.create_webhook(f"{receiver.url}/200/resting", active=False)
    awake = await sender.create_webhook(f"{receiver.url}/200/awake")
    await sender.emit_events(3)
    await sender.wait_until_finished(awake, 3)
    assert await sender.list_deliveries(resting) == []
    assert receiver.requests_to("/200/resting") == []


@pytest.mark.parametrize("reason", ["gone", "failing"])
async def test_switched_on_again_the_reason_is_gone(
    sender: Sender, receiver: Receiver, reason: str
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/200")
    await sender.run_sql(
        "UPDATE webhooks SET active = false, disabled_reason = $2, failing_since = now() "
        "WHERE id = $1",
        webhook_id,
        reason,
    )
    changed = await sender.update_webhook(webhook_id, active=True)
    assert (changed["active"], changed["disabled_reason"]) == (True, None)
    assert changed["failing_since"] is None
    await sender.emit_events()
    assert (await sender.wait_for_attempt(webhook_id))["status"] == "delivered"


async def test_switched_on_again_it_has_five_days_more(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _waiting(sender, receiver)
    await _failing_for(sender, webhook_id, 6 * DAY)
    await sender.update_webhook(webhook_id, active=False)
    await sender.update_webhook(webhook_id, active=True)
    await sender.advance_schedule(webhook_id, 100)
    await sender.wait_for_attempt(webhook_id, 2)
    assert (await sender.read_webhook(webhook_id))["active"]


async def test_deleting_a_webhook_cancels_what_waits(sender: Sender, receiver: Receiver) -> None:
    webhook_id = await _waiting(sender, receiver)
    assert (await sender.client.delete(f"{PATH}/{webhook_id}")).status_code == 204
    row = await sender.read_work(webhook_id)
    assert (row["state"], row["lease_token"]) == ("cancelled", None)
    assert await sender.count_deliveries(webhook_id) == 0


async def test_deleting_a_webhook_while_it_is_called_leaves_nothing(
    sender: Sender, receiver: Receiver
) -> None:
    webhook_id = await sender.create_webhook(f"{receiver.url}/slow/deleted")
    await sender.emit_events(3)
    await receiver.wait_for(3)
    assert (await sender.client.delete(f"{PATH}/{webhook_id}")).status_code == 204
    receiver.released.set()
    states: list[Any] = await _states(sender, webhook_id)
    assert states == ["cancelled"] * 3
    assert await sender.list_events("system.work.dead") == []


async def _states(sender: Sender, webhook_id: str) -> list[Any]:
    found = await sender.fetch_value(
        "SELECT array_agg(state) FROM work WHERE lane = $1", webhook_id
    )
    return list(found)
