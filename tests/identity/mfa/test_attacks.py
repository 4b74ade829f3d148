"""Attacks on the MFA of a user."""

import pytest

from app.services import Services
from tests.identity.accounts.records import set_user
from tests.identity.accounts.throttling import skip_block_check
from tests.identity.mfa.api_calls import (
    API,
    enable,
    get_status,
    log_in,
    open_session,
    replace_recovery_codes,
    reset_mfa,
    send_code,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.assertions import read_error
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser, find_wrong_code
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_a_code_of_removed_devices_does_not_count_for_new_ones(
    world: World, admin: Client, frozen_clock: FrozenClock
) -> None:
    old_session = await world.user("viewer", admin.tenant_id)
    new_session = await open_session(world, old_session)
    await turn_on_mfa(old_session, frozen_clock)
    await reset_mfa(admin, old_session.user_id)
    await turn_on_mfa(new_session, frozen_clock)
    assert read_error(await replace_recovery_codes(old_session)) == (403, "mfa_required")


async def test_an_idempotency_key_does_not_replay_secrets_to_another_session(
    user_and_old_session: tuple[MfaUser, Client], subtests: pytest.Subtests
) -> None:
    for route in ("setup", "recovery-codes"):
        with subtests.test(route=route):
            mfa_user, other = user_and_old_session
            headers = {"idempotency-key": f"{route}-1"}
            answers = [
                await client.post(f"{API}/{route}", headers=headers)
                for client in (mfa_user.client, other)
            ]
            assert [answer.status_code for answer in answers] == [200, 403]


async def test_a_user_has_no_more_than_ten_devices(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    for _ in range(10):
        await turn_on_mfa(developer, frozen_clock)
    assert read_error(await developer.post(f"{API}/setup")) == (409, "too_many_devices")


async def _send_five_wrong_codes(mfa_user: MfaUser) -> None:
    for _ in range(5):
        assert not await verify_code(mfa_user.client, find_wrong_code(mfa_user.authenticator))


async def test_a_code_that_is_not_recorded_is_not_used_up(
    mfa_user: MfaUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _send_five_wrong_codes(mfa_user)
    skip_block_check(monkeypatch)
    answer = await send_code(mfa_user.client, "verify", mfa_user.recovery_codes[0])
    assert answer.status_code == 429
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10


async def test_a_code_at_sign_in_that_is_not_recorded_is_not_used_up(
    world: World, mfa_user: MfaUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _send_five_wrong_codes(mfa_user)
    token = (await log_in(world, mfa_user.client.email))["mfa_token"]
    skip_block_check(monkeypatch)
    body = {"mfa_token": token, "code": mfa_user.recovery_codes[0]}
    assert (await world.anonymous().post("/auth/mfa/verify", body)).status_code == 429
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10


async def test_a_set_up_from_before_mfa_is_not_enabled_without_a_code(
    world: World, developer: Client, frozen_clock: FrozenClock, services: Services
) -> None:
    other = await open_session(world, developer)
    authenticator = Authenticator(frozen_clock, (await set_up(other))["secret"])
    await set_user(services, developer, mfa_enabled=True)
    assert read_error(await enable(other, authenticator.code())) == (403, "mfa_required")
