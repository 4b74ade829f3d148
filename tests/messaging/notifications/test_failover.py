"""What a channel fails to deliver goes through the next active channel of the same type."""

from collections.abc import Callable

import pytest
from aiohttp import web

from app.domain.messaging.notifications import api as service
from app.domain.messaging.notifications.messages import NewMessage
from app.domain.messaging.notifications.types import Recipients
from app.kit.ids import new_id
from tests.messaging.notifications.factories import create_channel, list_log, update_channel
from tests.messaging.notifications.provider_server import CHANNEL, ProviderCall
from tests.messaging.notifications.sender import ChannelSender
from tests.messaging.webhooks.factories import list_events
from tests.platform.events.responses import read_json
from tests.world import World

pytestmark = pytest.mark.usefixtures("slow_retries")

_SENDGRID, _RESEND, _MAILGUN = "/v3/mail/send", "/emails", "/v3/mg.example.com/messages"


async def test_after_the_last_attempt_the_next_channel_delivers(sender: ChannelSender) -> None:
    sender.script(500, path=_SENDGRID)
    first, second = await sender.create("sendgrid"), await sender.create("resend", to=["x@x.org"])
    await sender.send(first)
    for number in (2, 3):
        assert await sender.outline(second) == []
        await sender.wait_for_retry(first, number)
    await sender.wait_for(second, "delivered")
    assert await sender.wait_for(first, "failed", "failed", "failed")
    # The recipients are those of the first channel.
    assert await sender.list_recipients(second) == ["bob@example.com"]
    assert await list_events(sender.client, "system.work.dead") == []


async def test_a_refusal_that_lasts_goes_on_at_once(sender: ChannelSender) -> None:
    sender.script(403, path=_SENDGRID)
    first, second = await sender.create("sendgrid"), await sender.create("resend")
    await sender.send(first)
    await sender.wait_for(second, "delivered")
    assert await sender.outline(first) == [(1, "failed", "provider_error")]


async def test_channels_are_tried_from_the_oldest_on_without_inactive_ones(
    sender: ChannelSender,
) -> None:
    sender.script(403, path=_SENDGRID)
    inactive = await sender.create("sendgrid", active=False)
    older = await sender.create("resend")
    sending = await sender.create("sendgrid")
    newer = await sender.create("mailgun")
    chat = await sender.create("slack_bot")
    await sender.send(sending)
    await sender.wait_for(older, "delivered")
    await sender.wait_until_idle()
    for other in (inactive, newer, chat):
        assert await sender.outline(other) == []


async def test_each_channel_is_tried_once_until_the_last_one_fails(sender: ChannelSender) -> None:
    sender.script(403)
    channel_ids = [await sender.create(name) for name in ("sendgrid", "resend", "mailgun")]
    await sender.send(channel_ids[1])
    for channel_id in channel_ids:
        await sender.wait_for(channel_id, "failed")
    await sender.wait_until_idle()
    paths = [call.path for call in sender.providers.calls]
    assert paths == [_RESEND, _SENDGRID, _MAILGUN]
    (event,) = await list_events(sender.client, "system.work.dead")
    (last,) = await sender.list_work(channel_ids[2])
    assert event["data"]["work_id"] == last["id"]
    assert last["state"] == "dead"
    assert await sender.count_deliveries(channel_ids[2], "status = 'failed'") == 1


async def test_channels_of_another_tenant_are_never_used(
    sender: ChannelSender, world: World
) -> None:
    neighbour = ChannelSender(await world.user(), sender.services, sender.process, sender.providers)
    foreign = await neighbour.create("resend")
    sender.script(403, path=_SENDGRID)
    channel_id = await sender.create("sendgrid")
    await sender.send(channel_id)
    await sender.wait_for(channel_id, "failed")
    await sender.wait_until_idle()
    assert await neighbour.outline(foreign) == []
    assert len(sender.providers.calls) == 1


async def _notify_caller(sender: ChannelSender, **preference: bool) -> None:
    """Sends the client a message through the channels that its preferences name."""
    client = sender.client
    preferences = {"preferences": {"message": preference}}
    assert (await client.put("/api/v1/notifications/preferences", preferences)).is_success
    body = {"user_ids": [client.user_id], "type": "message", "title": "Hi", "message": "You"}
    assert (await client.post("/api/v1/notifications", body)).status_code == 202


async def test_a_post_goes_to_the_place_of_the_other_channel(sender: ChannelSender) -> None:
    sender.script(403, path="/services/")
    first, second = await sender.create("slack_webhook"), await sender.create("slack_bot")
    await _notify_caller(sender, team_chat=True)
    await sender.wait_for(second, "delivered")
    assert await sender.list_recipients(first) == ["127.0.0.1"]
    assert await sender.list_recipients(second) == [CHANNEL]
    (call,) = sender.list_calls("chat.postMessage")
    assert call.json["channel"] == CHANNEL


async def test_a_message_that_names_its_channel_goes_to_no_other_place(
    sender: ChannelSender, subtests: pytest.Subtests
) -> None:
    sender.script(403)
    chats = [await sender.create("slack_webhook"), await sender.create("slack_bot")]
    hooks = [await sender.create_hook("first"), await sender.create_hook("other")]
    for named, other in (chats, hooks):
        with subtests.test(channel_id=named):
            await sender.send(named)
            await sender.wait_for(named, "failed")
            await sender.wait_until_idle()
            assert await sender.outline(other) == []
    assert len(await list_events(sender.client, "system.work.dead")) == 2


async def test_each_recipient_of_a_failed_channel_is_reached_through_the_next(
    sender: ChannelSender,
) -> None:
    sender.script(403, path=_SENDGRID)
    addresses = ["a@example.com", "b@example.com", "c@example.com"]
    first, second = await sender.create("sendgrid", to=addresses), await sender.create("resend")
    await sender.send(first)
    await sender.wait_for(second, *["delivered"] * 3)
    assert await sender.list_recipients(second) == addresses


async def test_a_channel_that_is_inactive_at_its_turn_sends_nothing(sender: ChannelSender) -> None:
    sender.script(500, path=_SENDGRID)
    first, second = await sender.create("sendgrid"), await sender.create("resend")
    await _notify_caller(sender, email=True)
    await sender.wait_for(first, "failed", "pending")
    await update_channel(sender.client, first, active=False)
    await sender.wait_for_retry(first, 2)
    await sender.wait_for(second, "delivered")
    assert await sender.outline(first) == [
        (1, "failed", "provider_error"),
        (2, "failed", "channel_inactive"),
    ]
    assert len(sender.list_calls(_SENDGRID)) == 1


async def test_a_message_to_an_inactive_channel_alone_fails(sender: ChannelSender) -> None:
    channel_id = await sender.create(active=False)
    await sender.send(channel_id)
    outline = await sender.wait_for(channel_id, "failed")
    assert outline == [(1, "failed", "channel_inactive")]
    assert len(await list_events(sender.client, "system.work.dead")) == 1


async def test_a_channel_without_recipients_fails_and_says_why(sender: ChannelSender) -> None:
    channel_id = await sender.create("twilio")
    await sender.send(channel_id)
    outline = await sender.wait_for(channel_id, "failed")
    assert outline == [(1, "failed", "invalid_config")]
    (entry,) = await list_log(sender.client, channel_id)
    assert "`to`" in entry["error"]
    assert sender.providers.calls == []


async def test_a_user_is_reached_at_the_same_address_through_the_next_channel(
    sender: ChannelSender,
) -> None:
    sender.script(403, path=_SENDGRID)
    first, second = await sender.create("sendgrid"), await sender.create("resend")
    await _notify_caller(sender, email=True)
    await sender.wait_for(second, "delivered")
    for channel_id in (first, second):
        assert await sender.list_recipients(channel_id) == [sender.client.email]


async def test_a_channel_that_already_sent_the_message_does_not_send_it_again(
    sender: ChannelSender,
) -> None:
    sender.script(403, path=_SENDGRID)
    good, event_id = await sender.create("resend"), new_id("evt")
    await sender.send(good, event_id=event_id, source="sub_good")
    await sender.wait_for(good, "delivered")
    bad = await sender.create("sendgrid")
    await sender.send(bad, event_id=event_id, source="sub_bad")
    await sender.wait_for(bad, "failed")
    await sender.wait_until_idle()
    assert len(sender.list_calls(_RESEND)) == 1
    # The second message did not arrive.
    assert len(await list_events(sender.client, "system.work.dead")) == 1


async def test_two_channels_that_fail_the_same_event_do_not_wait_for_each_other(
    sender: ChannelSender, subtests: pytest.Subtests
) -> None:
    for has_third in [True, False]:
        with subtests.test(has_third=has_third):
            sender.providers.respond = _fail_but(_MAILGUN)
            failing = [await sender.create(name) for name in ("sendgrid", "resend")]
            third, event_id = await sender.create("mailgun") if has_third else None, new_id("evt")
            for channel_id in failing:
                await sender.send(channel_id, event_id=event_id, source=channel_id)
            for channel_id in failing:
                await sender.wait_for(channel_id, "failed")
            await sender.wait_until_idle()
            dead = await list_events(sender.client, "system.work.dead")
            if third is not None:
                assert await sender.outline(third) == [(1, "delivered", None)]
            else:
                assert dead


def _fail_but(path: str) -> Callable[[ProviderCall], web.Response]:
    """Returns a function that refuses all requests but those to one path."""

    def respond(call: ProviderCall) -> web.Response:
        return web.json_response({"id": "1"}, status=200 if path in call.path else 403)

    return respond


async def test_an_inactive_in_app_channel_notifies_nobody(sender: ChannelSender) -> None:
    active, inactive = [
        await create_channel(sender.client, "in_app", active=value) for value in (True, False)
    ]
    await sender.send(inactive["id"], title="Hidden")
    await sender.send(active["id"], title="Shown")
    await sender.wait_until_idle()
    page = read_json(await sender.client.get("/api/v1/notifications"))
    assert [item["title"] for item in page["data"]] == ["Shown"]


async def test_an_in_app_channel_reaches_the_users_it_names_in_its_own_tenant(
    sender: ChannelSender, world: World
) -> None:
    colleague = await world.user("viewer", sender.client.tenant_id)
    config = {"to": [colleague.user_id]}
    channel = await create_channel(sender.client, "in_app", config=config)
    await sender.send(channel["id"])
    await sender.wait_until_idle()
    for client, count in ((colleague, 1), (sender.client, 0)):
        assert read_json(await client.get("/api/v1/notifications"))["total"] == count


async def test_a_message_to_a_deleted_channel_is_dropped(sender: ChannelSender) -> None:
    new = NewMessage(
        type="message", title="Hi", message="You", recipients=Recipients(channel_id="nch_gone")
    )
    tenant_id = sender.client.tenant_id
    async with sender.services.db.tx(tenant_id) as tx:
        await service.accept(tx, tenant_id, new)
    await sender.wait_until_idle()
    assert await list_events(sender.client, "system.work.dead") == []
