"""Which ways a message goes, as the preferences of its recipients say."""

from itertools import product

import pytest

from app.domain.messaging.deliveries.events import WebhookDisabled
from app.domain.messaging.notifications.dispatching import BATCH
from app.domain.messaging.notifications.types import Recipients
from app.domain.platform.events import service as events
from app.services import Services
from tests.database import fetch_rows, run_sql
from tests.messaging.notifications.center.api import list_titles, send_by_hand, set_preferences
from tests.messaging.notifications.center.post_office import PostOffice, text_of
from tests.world import Client, World

_ADD_USERS = """
INSERT INTO users (tenant_id, id, email, email_verified, role, password_hash, first_name, last_name)
SELECT $1, 'usr_' || $2 || lpad(n::text, 5, '0'), $2 || n || '@example.com', true, 'agent_user', '',
       'A', 'B'
FROM generate_series(1, $3::int) n
"""


async def test_a_message_goes_the_ways_that_are_on(
    office: PostOffice, subtests: pytest.Subtests
) -> None:
    for in_app, email, team_chat in product([True, False], repeat=3):
        office = await office.reopen()
        with subtests.test(in_app=in_app, email=email, team_chat=team_chat):
            for provider in ("sendgrid", "slack_webhook"):
                await office.create_channel(provider)
            user = await office.user(in_app=in_app, email=email, team_chat=team_chat)
            await office.notify(user, title="Import failed")
            assert await list_titles(user) == ["Import failed"] * in_app
            assert len(office.providers.calls) == email + team_chat
            mails = office.channel_mails()
            assert [mail["subject"] for mail in mails] == ["Import failed"] * email
            addresses = [mail["personalizations"][0]["to"][0]["email"] for mail in mails]
            assert addresses == [user.email] * email
            assert ["Import failed" in post for post in office.posts()] == [True] * team_chat
            assert await office.own_mails(user) == []


async def test_mails_go_through_the_oldest_active_channel(office: PostOffice) -> None:
    await office.create_channel("resend", active=False)
    await office.create_channel("sendgrid")
    await office.create_channel("resend")
    await office.notify(await office.user(email=True))
    assert [call.path for call in office.providers.calls] == ["/v3/mail/send"]


async def test_the_instance_sends_mails_of_a_tenant_without_an_active_mail_channel(
    office: PostOffice, subtests: pytest.Subtests
) -> None:
    for has_inactive_channel in (True, False):
        office = await office.reopen()
        with subtests.test(has_inactive_channel=has_inactive_channel):
            if has_inactive_channel:
                await office.create_channel("sendgrid", active=False)
            user = await office.user(email=True)
            await office.notify(user, title="Import failed", message="Row 7 has no name.")
            (mail,) = await office.own_mails(user)
            assert (mail["subject"], mail["to"]) == ("Import failed", user.email)
            assert "Row 7 has no name." in text_of(mail)
            assert office.providers.calls == []


async def test_a_team_chat_gets_one_post_whatever_number_of_users(office: PostOffice) -> None:
    await office.create_channel("slack_webhook")
    await office.create_channel("slack_webhook")
    users = [await office.user(team_chat=True) for _ in range(3)]
    await office.notify(*users)
    assert len(office.posts()) == 1


async def test_no_post_is_made_without_a_team_chat(office: PostOffice) -> None:
    await office.notify(await office.user(team_chat=True, in_app=False))
    assert (await office.load_held(), office.providers.calls) == ([], [])


async def test_each_recipient_gets_it_by_preferences_of_their_own(office: PostOffice) -> None:
    await office.create_channel("sendgrid")
    mailed, listed = await office.user(in_app=False, email=True), await office.user()
    await office.notify(mailed, listed)
    assert (await list_titles(mailed), await list_titles(listed)) == ([], ["Title"])
    assert len(office.channel_mails()) == 1


async def test_a_message_that_was_mailed_already_is_not_mailed_again(office: PostOffice) -> None:
    user = await office.user()
    await set_preferences(user, security={"email": True})
    await office.notify(user, type="security", is_mailed=True)
    assert await list_titles(user) == ["Title"]
    assert await office.own_mails(user) == []


async def test_a_second_dispatch_sends_nothing_again(office: PostOffice) -> None:
    for provider in ("sendgrid", "slack_webhook"):
        await office.create_channel(provider)
    user = await office.user(email=True, team_chat=True)
    await office.notify(user)
    assert await office.run_again("notifications.dispatch") == 1
    assert await list_titles(user) == ["Title"]
    assert len(office.providers.calls) == 2


async def test_a_second_dispatch_queues_no_second_mail_of_the_instance(
    office: PostOffice,
) -> None:
    user = await office.user(email=True)
    await office.notify(user)
    await office.notify(user)
    assert await office.run_again("notifications.dispatch") == 2
    assert len(await office.own_mails(user)) == 2


async def _add_users(office: PostOffice, count: int) -> None:
    prefix = office.tenant_id[-10:].lower()
    await run_sql(office.services, _ADD_USERS, office.tenant_id, prefix, count)


async def _count_by_user(office: PostOffice) -> list[int]:
    sql = "SELECT count(*) AS n FROM notifications WHERE tenant_id = $1 GROUP BY user_id"
    return [row["n"] for row in await fetch_rows(office.services, sql, office.tenant_id)]


async def test_a_message_to_more_users_than_a_batch_reaches_each_once(office: PostOffice) -> None:
    count = 2 * BATCH + 200
    await _add_users(office, count)
    sent = await send_by_hand(office.admin, role="agent_user")
    assert sent["recipients"] == count == 1200
    await office.wait_until_idle()
    assert await _count_by_user(office) == [1] * count
    assert await office.run_again("notifications.dispatch") == 1
    assert await _count_by_user(office) == [1] * count


async def test_a_message_to_a_role_does_not_reach_an_unverified_address(
    office: PostOffice, world: World
) -> None:
    """Anybody may have registered it, with somebody else's address."""
    stranger = await world.user("agent_user", office.tenant_id, is_verified=False)
    member = await world.user("agent_user", office.tenant_id)
    sent = await send_by_hand(office.admin, role="agent_user")
    assert sent["recipients"] == 1
    await office.wait_until_idle()
    sql = "SELECT user_id FROM notifications WHERE tenant_id = $1"
    rows = await fetch_rows(office.services, sql, office.tenant_id)
    assert [row["user_id"] for row in rows] == [member.user_id] != [stranger.user_id]


async def test_a_message_to_exactly_one_batch_reaches_each_once(office: PostOffice) -> None:
    await _add_users(office, BATCH)
    await office.notify(recipients=Recipients(role="agent_user"))
    assert await _count_by_user(office) == [1] * BATCH


async def test_users_of_several_batches_cause_one_post(office: PostOffice) -> None:
    await office.create_channel("slack_webhook")
    await _add_users(office, BATCH + 1)
    sql = """
    INSERT INTO notification_preferences (tenant_id, user_id, preferences)
    SELECT tenant_id, id, '{"message": {"in_app": false, "team_chat": true}}' FROM users
    WHERE tenant_id = $1
    """
    await run_sql(office.services, sql, office.tenant_id)
    await office.notify(recipients=Recipients(role="agent_user"))
    assert len(office.posts()) == 1
    assert await _count_by_user(office) == []


async def test_super_admin_gets_a_message_of_another_tenant_by_own_preferences(
    office: PostOffice, super_admin: Client, services: Services
) -> None:
    """A super_admin who creates a webhook in a tenant is told when it is disabled."""
    await set_preferences(super_admin, webhook_disabled={"email": True})
    disabled = WebhookDisabled("whk_1", "https://example.com", "gone", owner_id=super_admin.user_id)
    async with services.db.tx(office.tenant_id) as tx:
        await events.emit(tx, disabled, tenant_id=office.tenant_id)
    await office.wait_until_idle()
    assert len(await list_titles(super_admin)) == 1
    assert len(await office.own_mails(super_admin)) == 1


async def test_a_tenant_cannot_write_to_a_super_admin(
    office: PostOffice, super_admin: Client
) -> None:
    await office.notify(super_admin)
    assert await list_titles(super_admin) == []
