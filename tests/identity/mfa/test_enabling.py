"""POST /api/v1/mfa/enable: which codes confirm a device."""

import pytest

from tests.identity.mfa.api_calls import (
    MFA_OFF,
    create_mfa_user,
    enable,
    get_status,
    log_in,
    set_up,
    sign_in,
    verify_code,
)
from tests.identity.mfa.assertions import assert_code_refused, read_error
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser, find_wrong_code
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_enabling_must_follow_a_set_up(developer: Client) -> None:
    assert read_error(await enable(developer, "123456")) == (409, "mfa_not_set_up")


async def test_a_set_up_is_enabled_once(mfa_user: MfaUser) -> None:
    answer = await enable(mfa_user.client, mfa_user.authenticator.next_code())
    assert read_error(answer) == (409, "mfa_not_set_up")


async def test_enabling_returns_the_number_of_recovery_codes(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
    answer = (await enable(developer, authenticator.next_code())).json()
    assert set(answer) == {"message", "recovery_codes_count"}
    assert answer["message"]
    assert answer["recovery_codes_count"] == 10


async def test_an_enabled_user_has_mfa_enabled_in_their_account(mfa_user: MfaUser) -> None:
    assert (await mfa_user.client.get("/auth/me")).json()["mfa_enabled"] is True


async def test_once_enabled_a_password_alone_does_not_sign_in(
    world: World, mfa_user: MfaUser
) -> None:
    body = await log_in(world, mfa_user.client.email)
    assert set(body) == {"mfa_required", "mfa_token", "message"}
    assert body["mfa_required"] is True


async def test_once_enabled_a_password_and_a_code_sign_in(world: World, mfa_user: MfaUser) -> None:
    answer = await sign_in(world, mfa_user.client.email, mfa_user.authenticator.next_code())
    assert answer.status_code == 200
    assert set(answer.json()) == {"access_token", "refresh_token", "token_type", "expires_in"}


async def test_a_wrong_code_does_not_enable(developer: Client, frozen_clock: FrozenClock) -> None:
    authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
    assert_code_refused(await enable(developer, find_wrong_code(authenticator)))
    assert await get_status(developer) == MFA_OFF


async def test_after_a_wrong_code_the_right_one_still_enables(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
    await enable(developer, find_wrong_code(authenticator))
    assert (await enable(developer, authenticator.code())).status_code == 200


async def test_a_code_of_an_earlier_set_up_does_not_enable(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    first = Authenticator(frozen_clock, (await set_up(developer))["secret"])
    await set_up(developer)
    assert_code_refused(await enable(developer, first.code()))


async def test_a_recovery_code_does_not_enable(developer: Client) -> None:
    setup = await set_up(developer)
    assert_code_refused(await enable(developer, setup["recovery_codes"][0]))


async def test_a_recovery_code_sent_to_enable_is_not_used_up(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    setup = await set_up(developer)
    await enable(developer, setup["recovery_codes"][0])
    await enable(developer, Authenticator(frozen_clock, setup["secret"]).next_code())
    assert await verify_code(developer, setup["recovery_codes"][0])


async def test_a_recovery_code_of_the_first_device_does_not_enable_a_second(
    mfa_user: MfaUser,
) -> None:
    await set_up(mfa_user.client)
    assert_code_refused(await enable(mfa_user.client, mfa_user.recovery_codes[0]))
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10


async def test_a_code_of_the_first_device_does_not_enable_a_second(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    cases: dict[str, bool] = {
        "used": True,
        "fresh": False,
    }
    for name, used in cases.items():
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(name):
            await set_up(mfa_user.client)
            code = mfa_user.authenticator.code() if used else mfa_user.authenticator.next_code()
            assert_code_refused(await enable(mfa_user.client, code))


async def test_a_code_of_a_neighbouring_step_is_accepted(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    cases: list[int] = [-1, 0, 1]
    for steps in cases:
        developer = await world.user()
        with subtests.test(steps=steps):
            authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
            assert (await enable(developer, authenticator.code(steps))).status_code == 200


async def test_a_code_of_a_step_further_away_is_refused(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    cases: list[int] = [-3, -2, 2, 3]
    for steps in cases:
        developer = await world.user()
        with subtests.test(steps=steps):
            authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
            assert_code_refused(await enable(developer, authenticator.code(steps)))


async def test_a_code_is_valid_from_one_step_before_its_own_to_one_after(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[int, int]] = [(-46, 422), (-44, 200), (44, 200), (46, 422)]
    for offset, expected in cases:
        developer = await world.user()
        with subtests.test(offset=offset, expected=expected):
            authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
            code = authenticator.code()
            frozen_clock.advance(offset)
            assert (await enable(developer, code)).status_code == expected


async def test_the_code_that_enabled_mfa_does_not_sign_in(world: World, mfa_user: MfaUser) -> None:
    answer = await sign_in(world, mfa_user.client.email, mfa_user.authenticator.code())
    assert read_error(answer) == (401, "unauthorized")


async def test_enabling_leaves_other_sessions_signed_in(
    user_and_old_session: tuple[MfaUser, Client],
) -> None:
    assert (await user_and_old_session[1].get("/auth/me")).status_code == 200
