"""POST /api/v1/mfa/disable."""

import pytest

from app.services import Services
from tests.identity.mfa.api_calls import (
    MFA_OFF,
    create_mfa_user,
    disable,
    enable,
    get_status,
    list_devices,
    log_in,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.assertions import assert_code_refused, read_error
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser, find_wrong_code
from tests.identity.mfa.database import count_mfa_rows
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_a_code_turns_mfa_off(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for kind in ("code", "recovery code"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(kind=kind):
            code = (
                mfa_user.authenticator.next_code() if kind == "code" else mfa_user.recovery_codes[3]
            )
            answer = await disable(mfa_user.client, code)
            assert answer.status_code == 200
            assert set(answer.json()) == {"message"}
            assert await get_status(mfa_user.client) == MFA_OFF


async def test_a_code_of_any_device_turns_mfa_off(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert (await disable(mfa_user.client, mfa_user.authenticator.next_code())).status_code == 200
    assert await get_status(mfa_user.client) == MFA_OFF


async def test_a_session_from_before_mfa_turns_it_off_with_a_code(
    user_and_old_session: tuple[MfaUser, Client],
) -> None:
    mfa_user, other = user_and_old_session
    assert (await disable(other, mfa_user.authenticator.next_code())).status_code == 200


async def test_a_wrong_code_does_not_turn_mfa_off(mfa_user: MfaUser) -> None:
    before = await get_status(mfa_user.client)
    assert_code_refused(await disable(mfa_user.client, find_wrong_code(mfa_user.authenticator)))
    assert await get_status(mfa_user.client) == before


async def test_a_used_code_does_not_turn_mfa_off(mfa_user: MfaUser) -> None:
    assert_code_refused(await disable(mfa_user.client, mfa_user.authenticator.code()))


async def test_a_used_recovery_code_does_not_turn_mfa_off(mfa_user: MfaUser) -> None:
    await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    assert_code_refused(await disable(mfa_user.client, mfa_user.recovery_codes[0]))


async def test_a_code_of_a_device_that_is_only_set_up_does_not_turn_mfa_off(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    pending = Authenticator(frozen_clock, (await set_up(mfa_user.client))["secret"])
    assert_code_refused(await disable(mfa_user.client, pending.next_code()))


async def test_mfa_that_is_off_cannot_be_turned_off(developer: Client) -> None:
    assert read_error(await disable(developer, "123456")) == (409, "mfa_not_enabled")


async def test_mfa_that_is_only_set_up_cannot_be_turned_off(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
    assert read_error(await disable(developer, authenticator.next_code())) == (
        409,
        "mfa_not_enabled",
    )


async def test_mfa_cannot_be_turned_off_twice(mfa_user: MfaUser) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    answer = await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert read_error(answer) == (409, "mfa_not_enabled")


async def test_turning_off_deletes_devices_and_codes(mfa_user: MfaUser, services: Services) -> None:
    await set_up(mfa_user.client)
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert await list_devices(mfa_user.client) == []
    assert await count_mfa_rows(services, mfa_user.client) == 0


async def test_turning_off_removes_the_pending_device(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    pending = Authenticator(frozen_clock, (await set_up(mfa_user.client))["secret"])
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert read_error(await enable(mfa_user.client, pending.code())) == (409, "mfa_not_set_up")


async def test_once_turned_off_a_password_signs_in(world: World, mfa_user: MfaUser) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert "access_token" in await log_in(world, mfa_user.client.email)


async def test_once_turned_off_the_account_has_mfa_disabled(mfa_user: MfaUser) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert (await mfa_user.client.get("/auth/me")).json()["mfa_enabled"] is False


async def test_an_mfa_token_is_not_valid_after_turning_off(world: World, mfa_user: MfaUser) -> None:
    token = (await log_in(world, mfa_user.client.email))["mfa_token"]
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    body = {"mfa_token": token, "code": mfa_user.authenticator.next_code()}
    assert (await world.anonymous().post("/auth/mfa/verify", body)).status_code == 401


async def test_earlier_codes_do_not_work_once_mfa_is_on_again(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert not await verify_code(mfa_user.client, mfa_user.authenticator.next_code())
    assert not await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
