"""POST /api/v1/notifications/test."""

import asyncio

import httpx
import pytest

from app.domain.messaging.notifications import channel_tests
from tests.assertions import refused
from tests.messaging.notifications.center.api import PATH, list_notifications, send_test
from tests.messaging.notifications.center.post_office import PostOffice, text_of
from tests.platform.events.responses import read_field_errors
from tests.ports import free_port
from tests.world import Client, World

KEYS = {"success", "message", "delivery_time_ms"}


async def _post(client: Client, channel_type: str) -> httpx.Response:
    return await client.post(f"{PATH}/test", {"channel_type": channel_type})


async def test_a_test_in_the_app_is_in_the_own_center(office: PostOffice) -> None:
    user, other = await office.user(), await office.user()
    result = await send_test(user, "in_app", message="Does this arrive?")
    assert result.keys() == KEYS
    assert result["success"] is True
    (item,) = await list_notifications(user)
    assert (item["type"], item["message"]) == ("message", "Does this arrive?")
    assert item["data"] == {"test": True}
    assert await list_notifications(other) == []


async def test_a_test_by_mail_without_a_channel_is_a_mail_of_the_instance(
    office: PostOffice,
) -> None:
    user = office.admin
    result = await send_test(user, "email", message="Does this arrive?")
    assert result["success"] is True
    assert user.email in result["message"]
    await office.wait_until_idle()
    (mail,) = await office.own_mails(user)
    assert "Does this arrive?" in text_of(mail)


async def test_a_test_by_mail_goes_to_the_own_address_through_the_channel(
    office: PostOffice,
) -> None:
    await office.create_channel("sendgrid", config={"to": ["ops@example.com"]})
    user = office.admin
    result = await send_test(user, "email", message="Does this arrive?")
    assert (result["success"], result["message"]) == (True, f"Delivered to {user.email}")
    assert result["delivery_time_ms"] >= 0
    (mail,) = office.channel_mails()
    assert mail["personalizations"][0]["to"][0]["email"] == user.email
    assert "Does this arrive?" in mail["content"][0]["value"]
    assert await list_notifications(user) == []


async def test_a_test_in_a_team_chat_is_posted(office: PostOffice) -> None:
    await office.create_channel("slack_webhook", active=False)
    await office.create_channel("slack_webhook")
    result = await send_test(office.admin, "team_chat", message="Does this arrive?")
    assert result["success"] is True
    (post,) = office.posts()
    assert "Does this arrive?" in post


async def test_only_who_may_send_notifications_posts_in_a_team_chat(office: PostOffice) -> None:
    await office.create_channel("slack_webhook")
    refused(await _post(await office.user("agent_user"), "team_chat"), 403, "forbidden")
    assert office.posts() == []


async def test_an_address_that_is_not_verified_gets_no_mail(
    office: PostOffice, world: World
) -> None:
    """Whoever registers with somebody else's address cannot send them a text."""
    await office.create_channel("sendgrid")
    stranger = await world.user("agent_user", office.tenant_id, is_verified=False)
    refused(await _post(stranger, "email"), 403, "email_not_verified")
    assert office.channel_mails() == []


async def test_a_user_sends_a_few_tests_a_minute(office: PostOffice) -> None:
    user, other = await office.user(), await office.user()
    for _ in range(10):
        await send_test(user, "in_app")
    refused(await _post(user, "in_app"), 429, "rate_limited")
    await send_test(other, "in_app")


async def test_a_team_chat_without_a_channel_is_not_found(admin: Client) -> None:
    refused(await _post(admin, "team_chat"), 404, "channel_not_found")


async def test_a_team_chat_whose_channels_are_all_inactive_is_a_conflict(
    office: PostOffice,
) -> None:
    await office.create_channel("slack_webhook", active=False)
    refused(await _post(office.admin, "team_chat"), 409, "channel_inactive")
    assert office.providers.calls == []


async def test_with_inactive_mail_channels_alone_the_instance_mails(office: PostOffice) -> None:
    await office.create_channel("sendgrid", active=False)
    assert (await send_test(office.admin, "email"))["success"] is True
    await office.wait_until_idle()
    assert len(await office.own_mails(office.admin)) == 1
    assert office.providers.calls == []


async def test_a_channel_of_another_tenant_is_not_used(office: PostOffice, admin: Client) -> None:
    await office.create_channel("slack_webhook")
    refused(await _post(admin, "team_chat"), 404, "channel_not_found")
    assert office.providers.calls == []


async def test_a_refusal_of_the_provider_is_a_provider_error(office: PostOffice) -> None:
    """It is tried once, and the answer has no secret of the channel."""
    await office.create_channel("sendgrid", config={"api_key": "planted-wrong-key"})
    error = refused(await _post(office.admin, "email"), 502, "provider_error")
    assert "401" in error["message"]
    assert "planted-wrong-key" not in error["message"]
    assert len(office.providers.calls) == 1


async def test_no_connection_is_a_failed_delivery(office: PostOffice) -> None:
    config = {"api_base": f"http://127.0.0.1:{free_port()}"}
    await office.create_channel("sendgrid", config=config)
    refused(await _post(office.admin, "email"), 502, "delivery_failed")


async def test_a_test_that_does_not_end_in_time_is_a_failed_delivery(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_tests, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(channel_tests, "_QUEUE_SECONDS", 0.05)
    await office.create_channel("slack_webhook")
    office.providers.hold = asyncio.Event()
    refused(await _post(office.admin, "team_chat"), 502, "delivery_failed")
    office.providers.hold.set()
    await office.wait_until_idle()


async def test_the_limit_of_the_channel_holds_for_tests(office: PostOffice) -> None:
    await office.create_channel("slack_webhook", rate_limit_per_minute=1)
    await send_test(office.admin, "team_chat")
    answer = await _post(office.admin, "team_chat")
    refused(answer, 429, "rate_limited")
    assert 1 <= int(answer.headers["retry-after"]) <= 61
    assert len(office.posts()) == 1


async def test_a_type_without_an_own_address_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    for channel_type in ("sms", "webhook", "fax", ""):
        admin = await world.user("tenant_admin")
        with subtests.test(channel_type=channel_type):
            assert list(read_field_errors(await _post(admin, channel_type))) == ["channel_type"]


async def test_a_wrong_message_is_refused(world: World, subtests: pytest.Subtests) -> None:
    cases: list[str | None] = ["", "  ", "x" * 501, None]
    for message in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(message=message):
            body = {"channel_type": "in_app", "message": message}
            errors = read_field_errors(await admin.post(f"{PATH}/test", body))
            assert list(errors) == ["message"]


async def test_super_admin_tests_the_channels_of_the_selected_tenant(
    office: PostOffice, super_admin: Client
) -> None:
    await office.create_channel("sendgrid")
    headers = {"x-tenant-id": office.tenant_id}
    body = {"channel_type": "email"}
    answer = await super_admin.post(f"{PATH}/test", body, headers=headers)
    assert answer.status_code == 200, answer.text
    (mail,) = office.channel_mails()
    assert mail["personalizations"][0]["to"][0]["email"] == super_admin.email
