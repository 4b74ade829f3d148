"""Deleting users."""

import asyncio

import pytest

from app.services import Services
from tests.identity.accounts.api_calls import (
    USER_ACTIONS,
    deactivate,
    delete_user,
    invitation_body,
    invite,
    invited_body,
    list_user_ids,
    log_in,
    register,
    request_reset,
)
from tests.identity.accounts.mfa_users import enable_mfa
from tests.identity.accounts.records import fetch_rows, fetch_value, read_mails, read_user_events
from tests.identity.profile.api_calls import is_avatar_stored, set_avatar
from tests.world import Client, World


async def test_a_deletion_returns_a_message(admin: Client, colleague: Client) -> None:
    answer = await delete_user(admin, colleague.user_id)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_a_deleted_user_is_not_found(admin: Client, colleague: Client) -> None:
    await delete_user(admin, colleague.user_id)
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.status_code == 404
    assert await list_user_ids(admin) == [admin.user_id]


async def test_a_deleted_user_cannot_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await delete_user(admin, colleague.user_id)
    assert (await log_in(anonymous, colleague.email)).status_code == 401


async def test_a_deleted_user_cannot_be_changed(world: World, subtests: pytest.Subtests) -> None:
    for action in USER_ACTIONS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(action=action.__name__):
            await delete_user(admin, colleague.user_id)
            answer = await action(admin, colleague.user_id)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "user_not_found"


async def test_an_inactive_user_can_be_deleted(admin: Client, colleague: Client) -> None:
    await deactivate(admin, colleague.user_id)
    assert (await delete_user(admin, colleague.user_id)).status_code == 200


async def test_a_deletion_removes_the_users_personal_data(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for table in ("sessions", "one_time_tokens", "mfa_devices", "recovery_codes"):
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        anonymous = world.anonymous()
        with subtests.test(table=table):
            await enable_mfa(colleague)
            await request_reset(anonymous, colleague.email)
            sql = f"SELECT count(*) FROM {table} WHERE user_id = $1"
            before = await fetch_value(services, sql, colleague.user_id)
            await delete_user(admin, colleague.user_id)
            assert before > 0
            assert await fetch_value(services, sql, colleague.user_id) == 0


async def test_the_picture_of_a_deleted_user_is_deleted(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    path = await set_avatar(colleague)
    before = (await anonymous.get(path)).status_code
    await delete_user(admin, colleague.user_id)
    assert (before, (await anonymous.get(path)).status_code) == (200, 404)
    assert not await is_avatar_stored(services, path)


async def test_a_refused_deletion_leaves_the_picture(admin: Client, anonymous: Client) -> None:
    path = await set_avatar(admin)
    await delete_user(admin, admin.user_id)
    assert (await anonymous.get(path)).status_code == 200


async def test_the_invitations_of_a_deleted_user_stay_but_are_void(
    world: World, admin: Client, services: Services
) -> None:
    inviter = await world.user("tenant_admin", admin.tenant_id)
    invitation = await invite(inviter)
    await delete_user(admin, inviter.user_id)
    sql = "SELECT invited_by, used_at, expires_at <= now() FROM invitations WHERE id = $1"
    assert await fetch_rows(services, sql, invitation["id"]) == [(None, None, True)]


async def test_a_user_invited_by_a_deleted_user_stays(
    world: World, admin: Client, anonymous: Client
) -> None:
    inviter = await world.user("tenant_admin", admin.tenant_id)
    account = await register(anonymous, **invited_body(await invite(inviter)))
    await delete_user(admin, inviter.user_id)
    assert (await log_in(anonymous, account["email"])).status_code == 200


async def test_the_events_of_a_deleted_user_stay_in_the_log(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    await log_in(anonymous, colleague.email)
    await delete_user(admin, colleague.user_id)
    assert len(await read_user_events(services, colleague, "signed_in")) == 1


async def test_a_queued_mail_to_a_deleted_user_stays(
    admin: Client, colleague: Client, anonymous: Client, services: Services
) -> None:
    await request_reset(anonymous, colleague.email)
    await delete_user(admin, colleague.user_id)
    assert len(await read_mails(services, colleague.email)) == 1


async def test_a_deletion_is_in_the_event_log(
    admin: Client, colleague: Client, services: Services
) -> None:
    await delete_user(admin, colleague.user_id)
    assert await read_user_events(services, colleague, "deleted") == [
        {"user_id": colleague.user_id, "email": colleague.email, "role": "agent_user"}
    ]


async def test_of_concurrent_deletions_one_succeeds(admin: Client, colleague: Client) -> None:
    answers = await asyncio.gather(*(delete_user(admin, colleague.user_id) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404, 404]


async def test_the_email_of_a_deleted_user_can_be_invited_again(
    admin: Client, colleague: Client
) -> None:
    await delete_user(admin, colleague.user_id)
    body = invitation_body(email=colleague.email)
    assert (await admin.post("/users/invite", body)).status_code == 201
