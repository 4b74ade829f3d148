"""Resetting a password with a mailed token."""

import asyncio
from datetime import timedelta

import httpx
import msgspec
import pytest

from app.kit import clock
from app.services import Services
from tests.http_clients import open_client
from tests.identity.accounts.api_calls import (
    begin_session,
    change_password,
    deactivate,
    get_login_status,
    log_in,
    reactivate,
    refresh_own_tokens,
    request_reset,
    reset_password,
)
from tests.identity.accounts.mfa_users import enable_mfa, request_mfa_token, verify_code
from tests.identity.accounts.records import read_events, read_mailed_tokens, read_mails, set_user
from tests.identity.accounts.throttling import guess_passwords
from tests.identity.accounts.values import (
    COMMON_PASSWORDS,
    NEW_PASSWORD,
    WEAK_PASSWORDS,
    WRONG_PASSWORD,
)
from tests.server import Server
from tests.stores import Stores
from tests.world import PASSWORD, Client, World

UNKNOWN_TOKEN = "nobody-was-mailed-this"


# Reset


async def _request_reset_token(services: Services, user: Client) -> str:
    """Requests a reset for this user; returns the mailed token."""
    await request_reset(user, user.email)
    return (await read_mailed_tokens(services, user.email))[-1]


async def test_a_reset_returns_a_message(
    anonymous: Client, developer: Client, services: Services
) -> None:
    answer = await reset_password(anonymous, await _request_reset_token(services, developer))
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_after_a_reset_only_the_new_password_signs_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await reset_password(anonymous, await _request_reset_token(services, developer))
    statuses = [
        await get_login_status(anonymous, developer.email, password)
        for password in (NEW_PASSWORD, PASSWORD)
    ]
    assert statuses == [200, 401]


async def test_a_link_works_once(anonymous: Client, developer: Client, services: Services) -> None:
    token = await _request_reset_token(services, developer)
    statuses = [
        (await reset_password(anonymous, token, new)).status_code
        for new in (NEW_PASSWORD, "Another3Word")
    ]
    assert statuses == [200, 422]
    assert await get_login_status(anonymous, developer.email, NEW_PASSWORD) == 200


async def test_of_twenty_uses_of_a_link_at_once_one_succeeds(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _request_reset_token(services, developer)
    new_passwords = [f"Battery{number}Staple" for number in range(20)]
    answers = await asyncio.gather(
        *(reset_password(world.anonymous(), token, new) for new in new_passwords)
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 19
    accepted = new_passwords[[answer.status_code for answer in answers].index(200)]
    assert await get_login_status(anonymous, developer.email, accepted) == 200


async def test_of_two_links_the_second_is_void_once_the_first_is_used(
    anonymous: Client, developer: Client, services: Services
) -> None:
    first, second = [await _request_reset_token(services, developer) for _ in range(2)]
    statuses = [
        (await reset_password(anonymous, token, new)).status_code
        for token, new in ((first, NEW_PASSWORD), (second, "Another3Word"))
    ]
    assert statuses == [200, 422]


async def test_a_second_link_does_not_void_the_first(
    anonymous: Client, developer: Client, services: Services
) -> None:
    """Another caller who requests mails for a user must not void the link the user has."""
    first, _ = [await _request_reset_token(services, developer) for _ in range(2)]
    assert (await reset_password(anonymous, first)).status_code == 200


async def test_a_reset_ends_all_sessions_at_once(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    other = await begin_session(world, developer.email)
    await reset_password(anonymous, await _request_reset_token(services, developer))
    statuses = [(await client.get("/auth/me")).status_code for client in (developer, other)]
    assert statuses == [401, 401]


async def test_no_session_can_be_refreshed_after_a_reset(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await reset_password(anonymous, await _request_reset_token(services, developer))
    assert await refresh_own_tokens(developer) == 401


async def test_a_reset_ends_the_session_that_sends_it(
    developer: Client, services: Services
) -> None:
    await reset_password(developer, await _request_reset_token(services, developer))
    assert (await developer.get("/auth/me")).status_code == 401


async def test_a_session_of_another_user_does_not_prevent_a_reset(
    developer: Client, admin: Client, anonymous: Client, services: Services
) -> None:
    await reset_password(admin, await _request_reset_token(services, developer))
    assert (await admin.get("/auth/me")).status_code == 200
    assert await get_login_status(anonymous, developer.email, NEW_PASSWORD) == 200


async def test_a_reset_verifies_the_address(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    await reset_password(anonymous, await _request_reset_token(services, developer))
    me = (await (await begin_session(world, developer.email, NEW_PASSWORD)).get("/auth/me")).json()
    assert me["email_verified"] is True


async def test_a_reset_emits_the_verification_event_for_an_unverified_address_only(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for verified, event_count in ((False, 1), (True, 0)):
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(verified=verified, event_count=event_count):
            await set_user(services, developer, email_verified=verified)
            await reset_password(anonymous, await _request_reset_token(services, developer))
            assert (
                len(await read_events(services, "email_verified", developer.user_id)) == event_count
            )


async def test_a_reset_ends_a_block_of_signing_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await guess_passwords(anonymous, developer.email)
    before = await get_login_status(anonymous, developer.email, PASSWORD)
    await reset_password(anonymous, await _request_reset_token(services, developer))
    assert (before, await get_login_status(anonymous, developer.email, NEW_PASSWORD)) == (429, 200)


async def test_a_reset_ends_a_block_of_changing_the_password(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    for _ in range(5):
        await change_password(developer, WRONG_PASSWORD)
    await reset_password(anonymous, await _request_reset_token(services, developer))
    user = await begin_session(world, developer.email, NEW_PASSWORD)
    assert (await change_password(user, NEW_PASSWORD, "Another3Word")).status_code == 200


async def test_a_weak_new_password_is_refused(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for new in (*WEAK_PASSWORDS, *COMMON_PASSWORDS):
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(new=new):
            answer = await reset_password(
                anonymous, await _request_reset_token(services, developer), new
            )
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"new_password"}


async def test_a_weak_password_does_not_use_up_the_link(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _request_reset_token(services, developer)
    await reset_password(anonymous, token, "weak")
    assert (await reset_password(anonymous, token)).status_code == 200


async def test_a_link_expires_after_an_hour(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _request_reset_token(services, developer)
    with clock.frozen(clock.now() + timedelta(hours=1)):
        answer = await reset_password(anonymous, token)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token"}
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_a_link_is_valid_for_nearly_an_hour(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _request_reset_token(services, developer)
    with clock.frozen(clock.now() + timedelta(minutes=59)):
        answer = await reset_password(anonymous, token)
    assert answer.status_code == 200


async def test_an_invalid_reset_token_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[object] = ["unknown", "", " ", None, 5, [], "x" * 4096, "x" * 4097]
    for token in cases:
        with subtests.test(token=token):
            answer = await reset_password(anonymous, token)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"token"}


async def test_all_missing_fields_of_a_reset_are_reported(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/reset-password", {})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"token", "new_password"}


async def test_a_verification_token_does_not_reset_a_password(
    anonymous: Client, newcomer: Client, services: Services
) -> None:
    await newcomer.post("/auth/verify-email/resend")
    (token,) = await read_mailed_tokens(services, newcomer.email, "verify-email")
    answer = await reset_password(anonymous, token)
    assert answer.status_code == 422
    assert await get_login_status(anonymous, newcomer.email, PASSWORD) == 200


async def test_a_refused_reset_does_not_use_up_a_verification_token(
    anonymous: Client, newcomer: Client, services: Services
) -> None:
    await newcomer.post("/auth/verify-email/resend")
    (token,) = await read_mailed_tokens(services, newcomer.email, "verify-email")
    await reset_password(anonymous, token)
    assert (await anonymous.post("/auth/verify-email", {"token": token})).status_code == 200


async def test_an_mfa_token_does_not_reset_a_password(anonymous: Client, developer: Client) -> None:
    await enable_mfa(developer)
    answer = await reset_password(anonymous, await request_mfa_token(anonymous, developer.email))
    assert answer.status_code == 422


async def test_an_inactive_user_cannot_reset_the_password(
    anonymous: Client, developer: Client, services: Services
) -> None:
    token = await _request_reset_token(services, developer)
    await set_user(services, developer, status="inactive")
    answer = await reset_password(anonymous, token)
    await set_user(services, developer, status="active")
    assert answer.status_code == 422
    assert await get_login_status(anonymous, developer.email, PASSWORD) == 200


async def test_a_deactivated_users_link_stays_void_after_the_reactivation(
    world: World, anonymous: Client, developer: Client, services: Services
) -> None:
    admin = await world.user("tenant_admin", developer.tenant_id)
    token = await _request_reset_token(services, developer)
    await deactivate(admin, developer.user_id)
    await reactivate(admin, developer.user_id)
    assert (await reset_password(anonymous, token)).status_code == 422


async def test_mfa_stays_on_after_a_reset(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await enable_mfa(developer)
    await reset_password(anonymous, await _request_reset_token(services, developer))
    answer = await log_in(anonymous, developer.email, NEW_PASSWORD)
    assert answer.json()["mfa_required"] is True


async def test_a_reset_voids_the_mfa_token_of_a_started_sign_in(
    anonymous: Client, developer: Client, services: Services
) -> None:
    codes = await enable_mfa(developer)
    old = await request_mfa_token(anonymous, developer.email)
    await reset_password(anonymous, await _request_reset_token(services, developer))
    new = await request_mfa_token(anonymous, developer.email, NEW_PASSWORD)
    answers = [await verify_code(anonymous, token, codes[0]) for token in (old, new)]
    assert [answer.status_code for answer in answers] == [401, 200]


async def test_a_reset_is_in_the_event_log(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await reset_password(anonymous, await _request_reset_token(services, developer))
    assert await read_events(services, "password_changed", developer.user_id) == [
        {"user_id": developer.user_id, "by": "mail"}
    ]


async def test_the_owner_gets_a_notice_of_a_reset(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await reset_password(anonymous, await _request_reset_token(services, developer))
    subjects = [subject for subject, _ in await read_mails(services, developer.email)]
    assert subjects == ["Reset your password", "Your account changed"]


async def test_mails_and_events_of_a_reset_contain_no_password(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await reset_password(anonymous, await _request_reset_token(services, developer))
    events = str(await read_events(services, "password_changed", developer.user_id))
    assert NEW_PASSWORD not in events + str(await read_mails(services, developer.email))


# Logs


async def test_a_web_process_writes_no_password_and_no_token_to_its_log(
    stores: Stores, developer: Client, services: Services, capfd: pytest.CaptureFixture[str]
) -> None:
    server = Server(msgspec.structs.replace(stores.settings, log_level="debug"))
    try:
        server.wait()
        async with open_client(base_url=server.url) as web:
            token = await _change_and_reset(web, developer, services)
    finally:
        server.close()
    log = "".join(capfd.readouterr())
    assert "/auth/change-password" in log
    assert "/auth/reset-password" in log
    secrets = (PASSWORD, NEW_PASSWORD, WRONG_PASSWORD, token, UNKNOWN_TOKEN)
    assert not [secret for secret in secrets if secret in log]


async def _change_and_reset(web: httpx.AsyncClient, user: Client, services: Services) -> str:
    """Changes and resets the password, with wrong and right input; returns the used token."""
    headers = {"authorization": f"Bearer {user.token}"}
    for current in (WRONG_PASSWORD, PASSWORD):
        body = {"current_password": current, "new_password": NEW_PASSWORD}
        await web.post("/auth/change-password", json=body, headers=headers)
    await web.post("/auth/forgot-password", json={"email": user.email})
    (token,) = await read_mailed_tokens(services, user.email)
    for reset_token in (UNKNOWN_TOKEN, token):
        await web.post(
            "/auth/reset-password", json={"token": reset_token, "new_password": NEW_PASSWORD}
        )
    return token
