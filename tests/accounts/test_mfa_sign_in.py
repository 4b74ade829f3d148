"""The second step of a sign-in with MFA."""

from collections.abc import Awaitable, Callable

import httpx
import pytest

from app.domain.accounts import one_time_tokens
from app.kit import clock
from app.security import tokens
from app.services import Services
from db.session import ALL_TENANTS
from tests.accounts.api_calls import get_me_status, log_in, refresh_pair, refresh_tokens
from tests.accounts.mfa_users import (
    MfaUser,
    create_mfa_user,
    guess_codes,
    request_mfa_token,
    verify_code,
)
from tests.accounts.records import (
    add_seconds,
    execute,
    fetch_rows,
    read_sessions,
    read_tenant_events,
)
from tests.accounts.values import NEW_PASSWORD, PAIR_KEYS, WRONG_PASSWORD
from tests.world import PASSWORD, Client, World


async def test_with_mfa_a_right_password_gives_a_token_for_the_second_step(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    answer = await log_in(anonymous, mfa_user.user.email)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"mfa_required", "mfa_token", "message"}
    assert body["mfa_required"] is True


async def test_with_mfa_a_wrong_password_does_not_reveal_it(
    anonymous: Client, mfa_user: MfaUser, developer: Client
) -> None:
    with_mfa = await log_in(anonymous, mfa_user.user.email, WRONG_PASSWORD)
    without = await log_in(anonymous, developer.email, WRONG_PASSWORD)
    assert (with_mfa.status_code, with_mfa.content) == (without.status_code, without.content)


async def test_the_first_step_of_a_sign_in_begins_no_session(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    before = await read_sessions(services, mfa_user.user)
    await request_mfa_token(anonymous, mfa_user.user.email)
    assert await read_sessions(services, mfa_user.user) == before


async def test_the_first_step_of_a_sign_in_emits_no_sign_in_event(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    await request_mfa_token(anonymous, mfa_user.user.email)
    assert await read_tenant_events(services, mfa_user.user, "signed_in") == []


async def test_the_mfa_token_is_stored_hashed(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    sql = "SELECT token_hash FROM one_time_tokens WHERE user_id = $1 AND purpose = 'mfa'"
    assert await fetch_rows(services, sql, mfa_user.user.user_id) == [(tokens.hash_secret(token),)]


async def test_the_mfa_token_is_no_access_token(anonymous: Client, mfa_user: MfaUser) -> None:
    assert (
        await get_me_status(anonymous, await request_mfa_token(anonymous, mfa_user.user.email))
        == 401
    )


async def test_the_mfa_token_is_no_refresh_token(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    assert (await refresh_tokens(anonymous, token)).status_code == 401


async def test_a_right_code_gives_both_tokens(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    answer = await verify_code(anonymous, token, mfa_user.code())
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == PAIR_KEYS
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)


async def test_the_access_token_of_a_right_code_opens_the_account(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    pair = (await verify_code(anonymous, token, mfa_user.code())).json()
    assert await get_me_status(anonymous, pair["access_token"]) == 200


async def test_the_refresh_token_of_a_right_code_gives_a_new_pair_without_another(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    pair = (await verify_code(anonymous, token, mfa_user.code())).json()
    assert set(await refresh_pair(anonymous, pair["refresh_token"])) == PAIR_KEYS


async def test_a_sign_in_with_a_code_is_in_the_event_log(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await verify_code(anonymous, token, mfa_user.code())
    assert await read_tenant_events(services, mfa_user.user, "signed_in") == [
        {"user_id": mfa_user.user.user_id, "ip_address": anonymous.address, "mfa": True}
    ]


async def test_a_sign_in_with_a_code_may_change_mfa(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    pair = (await verify_code(anonymous, token, mfa_user.code())).json()
    headers = {"authorization": f"Bearer {pair['access_token']}"}
    answer = await anonymous.post("/api/v1/mfa/recovery-codes", headers=headers)
    assert answer.status_code == 200


async def test_a_wrong_code_is_401(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    answer = await verify_code(anonymous, token, mfa_user.wrong_code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_a_code_of_somebody_else_is_wrong(
    world: World, anonymous: Client, mfa_user: MfaUser
) -> None:
    other = await create_mfa_user(await world.user())
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    for code in (other.code(), other.recovery_codes[0]):
        assert (await verify_code(anonymous, token, code)).status_code == 401


async def test_an_mfa_token_that_nobody_was_given_is_401(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    answer = await verify_code(anonymous, tokens.new_secret(), mfa_user.code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("kind", ["access", "refresh", "hash"])
async def test_nothing_else_serves_as_an_mfa_token(
    anonymous: Client, mfa_user: MfaUser, kind: str
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    others = {
        "access": mfa_user.user.token,
        "refresh": mfa_user.user.refresh_token,
        "hash": tokens.hash_secret(token),
    }
    assert (await verify_code(anonymous, others[kind], mfa_user.code())).status_code == 401


@pytest.mark.parametrize("field", ["mfa_token", "code"])
@pytest.mark.parametrize("value", ["", None, 123456, "x" * 4097])
async def test_a_wrong_field_of_the_second_step_is_named(
    anonymous: Client, field: str, value: object
) -> None:
    body = {"mfa_token": "x", "code": "123456", field: value}
    answer = await anonymous.post("/auth/mfa/verify", body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


@pytest.mark.parametrize(("seconds", "status"), [(299, 200), (300, 401)])
async def test_an_mfa_token_holds_for_five_minutes(
    anonymous: Client, mfa_user: MfaUser, seconds: int, status: int
) -> None:
    now = clock.now()
    with clock.frozen(now):
        token = await request_mfa_token(anonymous, mfa_user.user.email)
    with clock.frozen(add_seconds(now, seconds)):
        assert (await verify_code(anonymous, token, mfa_user.code())).status_code == status


async def test_an_mfa_token_holds_for_five_tries(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    statuses = await guess_codes(anonymous, mfa_user, token, 4)
    statuses.append((await verify_code(anonymous, token, mfa_user.code())).status_code)
    assert statuses == [401] * 4 + [200]


async def test_an_mfa_token_holds_for_no_sixth_try(anonymous: Client, mfa_user: MfaUser) -> None:
    """The same holds after the wait that five wrong codes cause."""
    now = clock.now()
    with clock.frozen(now):
        token = await request_mfa_token(anonymous, mfa_user.user.email)
        await guess_codes(anonymous, mfa_user, token, 5)
    with clock.frozen(add_seconds(now, 60)):
        answer = await verify_code(anonymous, token, mfa_user.code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_an_mfa_token_works_once(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await verify_code(anonymous, token, mfa_user.code())
    answer = await verify_code(anonymous, token, mfa_user.recovery_codes[0])
    assert answer.status_code == 401


async def test_an_mfa_token_that_was_used_up_uses_up_no_recovery_code(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await verify_code(anonymous, token, mfa_user.code())
    await verify_code(anonymous, token, mfa_user.recovery_codes[0])
    status = (await mfa_user.user.get("/api/v1/mfa/status")).json()
    assert status["recovery_codes_remaining"] == 10


async def test_an_mfa_token_is_void_after_a_change_of_the_password(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    body = {"current_password": PASSWORD, "new_password": NEW_PASSWORD}
    assert (await mfa_user.user.post("/auth/change-password", body)).status_code == 200
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401


async def test_an_mfa_token_is_void_after_a_reset_of_the_password(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    async with services.db.tx(ALL_TENANTS) as tx:
        mailed = await one_time_tokens.create_token(
            tx, one_time_tokens.RESET_PASSWORD, mfa_user.user.tenant_id, mfa_user.user.user_id
        )
    body = {"token": mailed, "new_password": NEW_PASSWORD}
    assert (await anonymous.post("/auth/reset-password", body)).status_code == 200
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401


Change = Callable[[Client, str], Awaitable[httpx.Response]]


ADMIN_CHANGES: dict[str, list[Change]] = {
    "deactivation": [lambda admin, user: admin.post(f"/users/{user}/deactivate")],
    "deactivation and reactivation": [
        lambda admin, user: admin.post(f"/users/{user}/deactivate"),
        lambda admin, user: admin.post(f"/users/{user}/reactivate"),
    ],
    "change of role": [
        lambda admin, user: admin.put(f"/users/{user}/role", {"role": "agent_user"})
    ],
    "reset of MFA": [lambda admin, user: admin.post(f"/api/v1/users/{user}/mfa/reset")],
    "deletion": [lambda admin, user: admin.delete(f"/users/{user}")],
}


@pytest.mark.parametrize("name", ADMIN_CHANGES)
async def test_an_mfa_token_is_void_after_what_an_administrator_does(
    anonymous: Client, mfa_user: MfaUser, admin: Client, name: str
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    for change in ADMIN_CHANGES[name]:
        assert (await change(admin, mfa_user.user.user_id)).status_code == 200
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401


async def test_the_token_of_a_user_who_is_inactive_gives_nothing(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await execute(
        services, "UPDATE users SET status = 'inactive' WHERE id = $1", mfa_user.user.user_id
    )
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401
