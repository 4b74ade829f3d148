"""POST /api/v1/mfa/verify: which codes are valid, and how often."""

import pytest

from app.kit.ids import new_id
from tests.identity.mfa.api_calls import (
    API,
    create_mfa_user,
    get_status,
    sign_in,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import STEP_SECONDS, FrozenClock, MfaUser
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_a_right_code_is_valid(mfa_user: MfaUser) -> None:
    assert await verify_code(mfa_user.client, mfa_user.authenticator.next_code())


async def test_a_code_is_valid_once(mfa_user: MfaUser) -> None:
    code = mfa_user.authenticator.next_code()
    assert [await verify_code(mfa_user.client, code) for _ in range(2)] == [True, False]


async def test_the_code_that_enabled_mfa_is_not_valid_again(mfa_user: MfaUser) -> None:
    assert not await verify_code(mfa_user.client, mfa_user.authenticator.code())


async def test_a_used_code_is_not_valid_in_the_next_step(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    code = mfa_user.authenticator.next_code()
    await verify_code(mfa_user.client, code)
    frozen_clock.advance()
    assert not await verify_code(mfa_user.client, code)


async def test_codes_of_three_neighbouring_steps_are_valid_in_any_order(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    frozen_clock.advance(3 * STEP_SECONDS)
    codes = [mfa_user.authenticator.code(steps) for steps in (1, -1, 0)]
    assert [await verify_code(mfa_user.client, code) for code in codes] == [True] * 3


async def test_a_wrong_code_is_not_an_error(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "abc",
        "12345",
        "1234567",
        "ABCDEFGHJK",
        "x" * 32,
        " ",
        "-",
        "\u0661" * 6,
        "12345\u00b2",
    ]
    for code in cases:
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(code=code):
            assert not await verify_code(mfa_user.client, code)


async def test_a_code_of_another_step_is_not_valid(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    frozen_clock.advance(5 * STEP_SECONDS)
    assert not await verify_code(mfa_user.client, mfa_user.authenticator.code(-2))
    assert not await verify_code(mfa_user.client, mfa_user.authenticator.code(2))


async def test_a_recovery_code_is_valid_once(mfa_user: MfaUser) -> None:
    code = mfa_user.recovery_codes[5]
    assert [await verify_code(mfa_user.client, code) for _ in range(2)] == [True, False]


async def test_all_ten_recovery_codes_are_valid(mfa_user: MfaUser) -> None:
    assert [await verify_code(mfa_user.client, code) for code in mfa_user.recovery_codes] == [
        True
    ] * 10
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 0


async def test_a_code_may_be_written_in_groups(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for kind in ("code", "recovery code"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(kind=kind):
            code = (
                mfa_user.authenticator.next_code()
                if kind == "code"
                else mfa_user.recovery_codes[0].lower()
            )
            half = len(code) // 2
            separator = " " if kind == "code" else "-"
            assert await verify_code(mfa_user.client, f"{code[:half]}{separator}{code[half:]}")


async def test_without_mfa_no_code_is_valid(developer: Client) -> None:
    assert not await verify_code(developer, "123456")


async def test_the_codes_of_another_user_are_not_valid(
    mfa_user: MfaUser, world: World, frozen_clock: FrozenClock
) -> None:
    colleague = await world.user("agent_developer", mfa_user.client.tenant_id)
    await turn_on_mfa(colleague, frozen_clock)
    assert not await verify_code(colleague, mfa_user.authenticator.next_code())
    assert not await verify_code(colleague, mfa_user.recovery_codes[0])
    assert await verify_code(mfa_user.client, mfa_user.recovery_codes[0])


async def test_verifying_again_with_one_idempotency_key_does_not_repeat_the_answer(
    mfa_user: MfaUser,
) -> None:
    body, headers = {"code": mfa_user.authenticator.next_code()}, {"idempotency-key": new_id("key")}
    answers = [await mfa_user.client.post(f"{API}/verify", body, headers=headers) for _ in range(2)]
    assert [answer.json()["valid"] for answer in answers] == [True, False]


async def test_a_code_that_was_verified_does_not_sign_in(world: World, mfa_user: MfaUser) -> None:
    code = mfa_user.authenticator.next_code()
    await verify_code(mfa_user.client, code)
    assert (await sign_in(world, mfa_user.client.email, code)).status_code == 401


async def test_a_code_that_signed_in_does_not_verify(world: World, mfa_user: MfaUser) -> None:
    code = mfa_user.authenticator.next_code()
    await sign_in(world, mfa_user.client.email, code)
    assert not await verify_code(mfa_user.client, code)


async def test_a_recovery_code_signs_in_once(world: World, mfa_user: MfaUser) -> None:
    answers = [
        await sign_in(world, mfa_user.client.email, mfa_user.recovery_codes[0]) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [200, 401]


async def test_a_recovery_code_that_signed_in_is_used_up(world: World, mfa_user: MfaUser) -> None:
    await sign_in(world, mfa_user.client.email, mfa_user.recovery_codes[0])
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 9
