"""Events of signing in and out."""

import asyncio

from app.kit import clock
from app.services import Services
from tests.identity.accounts.api_calls import log_in, refresh_pair, refresh_tokens
from tests.identity.accounts.mfa_users import (
    MfaUser,
    create_mfa_tokens,
    guess_codes,
    request_mfa_token,
    verify_code,
)
from tests.identity.accounts.records import add_seconds, fetch_rows, read_tenant_events
from tests.identity.accounts.replays import ReplayedSession
from tests.identity.accounts.throttling import guess_passwords
from tests.identity.accounts.values import WRONG_PASSWORD
from tests.world import PASSWORD, Client


async def test_signing_out_is_in_the_event_log(developer: Client, services: Services) -> None:
    await developer.post("/auth/logout")
    assert await read_tenant_events(services, developer, "signed_out") == [
        {"user_id": developer.user_id}
    ]


async def test_a_refused_sign_out_emits_no_event(developer: Client, services: Services) -> None:
    for _ in range(2):
        await developer.post("/auth/logout")
    assert len(await read_tenant_events(services, developer, "signed_out")) == 1


async def test_a_block_for_wrong_passwords_emits_one_event(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await guess_passwords(anonymous, developer.email, 8)
    assert await read_tenant_events(services, developer, "sign_in_blocked") == [
        {
            "user_id": developer.user_id,
            "ip_address": anonymous.address,
            "reason": "password",
        }
    ]


async def test_a_block_for_concurrent_wrong_passwords_emits_one_event(
    anonymous: Client, developer: Client, services: Services
) -> None:
    with clock.frozen(clock.now()):
        await asyncio.gather(
            *(log_in(anonymous, developer.email, WRONG_PASSWORD) for _ in range(20))
        )
    assert len(await read_tenant_events(services, developer, "sign_in_blocked")) == 1


async def test_a_block_for_wrong_codes_emits_one_event(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    for token in await create_mfa_tokens(services, mfa_user, 2):
        await guess_codes(anonymous, mfa_user, token, 5)
    assert await read_tenant_events(services, mfa_user.user, "sign_in_blocked") == [
        {
            "user_id": mfa_user.user.user_id,
            "ip_address": anonymous.address,
            "reason": "code",
        }
    ]


async def test_wrong_passwords_without_a_block_emit_no_event(
    anonymous: Client, developer: Client, services: Services
) -> None:
    await guess_passwords(anonymous, developer.email, 4)
    assert await read_tenant_events(services, developer, "sign_in_blocked") == []


async def test_a_replayed_refresh_token_emits_no_sign_out_event(
    replayed_session: ReplayedSession, services: Services
) -> None:
    assert await read_tenant_events(services, replayed_session.user, "signed_out") == []


async def _run_all_sign_in_steps(
    caller: Client, mfa_user: MfaUser, services: Services
) -> list[str]:
    """Runs every step of signing in and out; returns the secrets that were sent or received."""
    email = mfa_user.user.email
    mfa_token, code = await request_mfa_token(caller, email), mfa_user.code()
    pair = (await verify_code(caller, mfa_token, code)).json()
    second = await refresh_pair(caller, pair["refresh_token"])
    with clock.frozen(add_seconds(clock.now(), 11)):
        await refresh_tokens(caller, pair["refresh_token"])
    other_token, recovery_code = await request_mfa_token(caller, email), mfa_user.recovery_codes[0]
    third = (await verify_code(caller, other_token, recovery_code)).json()
    headers = {"authorization": f"Bearer {third['access_token']}"}
    await caller.post("/auth/logout", headers=headers)
    [last_token] = await create_mfa_tokens(services, mfa_user, 1)
    await guess_codes(caller, mfa_user, last_token, 5)
    await guess_passwords(caller, email, 6)
    tokens = [
        item[name] for item in (pair, second, third) for name in item if name.endswith("token")
    ]
    tokens += [mfa_token, other_token, last_token]
    return [PASSWORD, WRONG_PASSWORD, code, recovery_code, mfa_user.seed, *tokens]


async def test_no_event_of_a_sign_in_contains_a_secret(
    anonymous: Client, mfa_user: MfaUser, services: Services
) -> None:
    secrets = await _run_all_sign_in_steps(anonymous, mfa_user, services)
    sql = "SELECT type, data::text FROM event_log WHERE tenant_id = $1"
    rows = await fetch_rows(services, sql, mfa_user.user.tenant_id)
    kinds = {kind.removeprefix("system.user.") for kind, _ in rows}
    assert {"signed_in", "signed_out", "sign_in_blocked", "session_revoked"} <= kinds
    assert [(kind, text) for kind, text in rows if any(secret in text for secret in secrets)] == []
