"""The second step of a sign-in with MFA."""

import itertools

import pytest

from app.domain.identity.accounts import one_time_tokens
from app.kit import clock
from app.security import tokens
from app.services import Services
from db.session import ALL_TENANTS
from tests.identity.accounts.api_calls import (
    UserAction,
    change_password,
    change_role,
    deactivate,
    delete_user,
    get_me_status,
    log_in,
    reactivate,
    refresh_pair,
    refresh_tokens,
    reset_password,
)
from tests.identity.accounts.mfa_users import (
    MfaUser,
    create_mfa_user,
    guess_codes,
    request_mfa_token,
    verify_code,
)
from tests.identity.accounts.records import (
    add_seconds,
    fetch_rows,
    read_sessions,
    read_tenant_events,
    set_user,
)
from tests.identity.accounts.values import PAIR_KEYS, WRONG_PASSWORD
from tests.identity.mfa.api_calls import reset_mfa
from tests.world import Client, World


async def test_with_mfa_a_right_password_returns_an_mfa_token(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    answer = await log_in(anonymous, mfa_user.user.email)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"mfa_required", "mfa_token", "message"}
    assert body["mfa_required"] is True


async def test_a_wrong_password_does_not_reveal_that_mfa_is_on(
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
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    assert await get_me_status(anonymous, token) == 401


async def test_the_mfa_token_is_no_refresh_token(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    assert (await refresh_tokens(anonymous, token)).status_code == 401


async def test_a_right_code_returns_both_tokens(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    answer = await verify_code(anonymous, token, mfa_user.code())
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == PAIR_KEYS
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 900)


async def test_the_access_token_of_a_right_code_is_accepted(
    anonymous: Client, mfa_user: MfaUser
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    pair = (await verify_code(anonymous, token, mfa_user.code())).json()
    assert await get_me_status(anonymous, pair["access_token"]) == 200


async def test_the_refresh_token_of_a_right_code_returns_a_new_pair_without_a_code(
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


async def test_a_code_of_another_user_is_401(
    world: World, anonymous: Client, mfa_user: MfaUser
) -> None:
    other = await create_mfa_user(await world.user())
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    for code in (other.code(), other.recovery_codes[0]):
        assert (await verify_code(anonymous, token, code)).status_code == 401


async def test_an_unknown_mfa_token_is_401(anonymous: Client, mfa_user: MfaUser) -> None:
    answer = await verify_code(anonymous, tokens.new_secret(), mfa_user.code())
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_other_tokens_are_not_accepted_as_an_mfa_token(
    world: World, subtests: pytest.Subtests
) -> None:
    for kind in ("access", "refresh", "hash"):
        anonymous = world.anonymous()
        admin = await world.user("tenant_admin")
        mfa_user = await create_mfa_user(await world.user("viewer", admin.tenant_id))
        with subtests.test(kind=kind):
            token = await request_mfa_token(anonymous, mfa_user.user.email)
            others = {
                "access": mfa_user.user.token,
                "refresh": mfa_user.user.refresh_token,
                "hash": tokens.hash_secret(token),
            }
            assert (await verify_code(anonymous, others[kind], mfa_user.code())).status_code == 401


async def test_an_invalid_field_of_the_second_step_is_refused(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[object] = ["", None, 123456, "x" * 4097]
    for field, value in itertools.product(("mfa_token", "code"), cases):
        with subtests.test(field=field, value=value):
            body = {"mfa_token": "x", "code": "123456", field: value}
            answer = await anonymous.post("/auth/mfa/verify", body)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}


async def test_an_mfa_token_is_valid_for_five_minutes(
    world: World, subtests: pytest.Subtests
) -> None:
    for seconds, status in ((299, 200), (300, 401)):
        anonymous = world.anonymous()
        admin = await world.user("tenant_admin")
        mfa_user = await create_mfa_user(await world.user("viewer", admin.tenant_id))
        with subtests.test(seconds=seconds, status=status):
            now = clock.now()
            with clock.frozen(now):
                token = await request_mfa_token(anonymous, mfa_user.user.email)
            with clock.frozen(add_seconds(now, seconds)):
                assert (await verify_code(anonymous, token, mfa_user.code())).status_code == status


async def test_an_mfa_token_allows_five_attempts(anonymous: Client, mfa_user: MfaUser) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    statuses = await guess_codes(anonymous, mfa_user, token, 4)
    statuses.append((await verify_code(anonymous, token, mfa_user.code())).status_code)
    assert statuses == [401] * 4 + [200]


async def test_an_mfa_token_allows_no_sixth_attempt(anonymous: Client, mfa_user: MfaUser) -> None:
    """The token stays void after the block that five wrong codes start."""
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


async def test_a_used_mfa_token_uses_up_no_recovery_code(
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
    assert (await change_password(mfa_user.user)).status_code == 200
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401


async def test_an_mfa_token_is_void_after_a_reset_of_the_password(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    async with services.db.tx(ALL_TENANTS) as tx:
        reset_token = await one_time_tokens.create_token(
            tx, one_time_tokens.RESET_PASSWORD, mfa_user.user.tenant_id, mfa_user.user.user_id
        )
    assert (await reset_password(anonymous, reset_token)).status_code == 200
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401


ADMIN_CHANGES: dict[str, list[UserAction]] = {
    "deactivation": [deactivate],
    "deactivation and reactivation": [deactivate, reactivate],
    "change of role": [lambda admin, user_id: change_role(admin, user_id, "agent_user")],
    "reset of MFA": [reset_mfa],
    "deletion": [delete_user],
}


async def test_an_mfa_token_is_void_after_a_change_by_an_administrator(
    world: World, subtests: pytest.Subtests
) -> None:
    for name, changes in ADMIN_CHANGES.items():
        anonymous = world.anonymous()
        admin = await world.user("tenant_admin")
        mfa_user = await create_mfa_user(await world.user("viewer", admin.tenant_id))
        with subtests.test(name=name):
            token = await request_mfa_token(anonymous, mfa_user.user.email)
            for change in changes:
                assert (await change(admin, mfa_user.user.user_id)).status_code == 200
            assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401


async def test_the_mfa_token_of_an_inactive_user_is_401(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    token = await request_mfa_token(anonymous, mfa_user.user.email)
    await set_user(services, mfa_user.user, status="inactive")
    assert (await verify_code(anonymous, token, mfa_user.code())).status_code == 401
