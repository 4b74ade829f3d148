"""Wrong codes are counted, and block further codes for a while."""

import pytest

from app.services import Services
from tests.identity.accounts.records import read_tenant_events
from tests.identity.mfa.api_calls import (
    EACH_ROUTE,
    get_status,
    send_code,
    set_up,
    sign_in,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.assertions import read_error
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser, find_wrong_code
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


@pytest.fixture
async def blocked_user(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> tuple[MfaUser, Authenticator]:
    """A user after five wrong codes on three routes, and their pending second device."""
    pending = Authenticator(frozen_clock, (await set_up(mfa_user.client))["secret"])
    wrong = find_wrong_code(mfa_user.authenticator, pending)
    answers = [
        await send_code(mfa_user.client, route, wrong)
        for route in ("enable", "disable", "verify", "disable", "enable")
    ]
    assert [answer.status_code for answer in answers] == [422, 422, 200, 422, 422]
    return mfa_user, pending


def _get_valid_code(blocked_user: tuple[MfaUser, Authenticator], route: str) -> str:
    mfa_user, pending = blocked_user
    return (pending if route == "enable" else mfa_user.authenticator).code(1)


@EACH_ROUTE
async def test_five_wrong_codes_block_the_right_code_too(
    blocked_user: tuple[MfaUser, Authenticator], route: str
) -> None:
    answer = await send_code(blocked_user[0].client, route, _get_valid_code(blocked_user, route))
    assert read_error(answer) == (429, "rate_limited")


@EACH_ROUTE
async def test_a_refusal_has_the_wait_in_details_message_and_header(
    blocked_user: tuple[MfaUser, Authenticator], route: str
) -> None:
    answer = await send_code(blocked_user[0].client, route, "123456")
    error = answer.json()["error"]
    assert error["details"] == {"limit": 5, "window": 86400, "retry_after": 15}
    assert "15 seconds" in error["message"]
    assert answer.headers["retry-after"] == "15"


@EACH_ROUTE
async def test_after_the_block_the_right_code_works(
    blocked_user: tuple[MfaUser, Authenticator], frozen_clock: FrozenClock, route: str
) -> None:
    frozen_clock.advance(15)
    answer = await send_code(blocked_user[0].client, route, _get_valid_code(blocked_user, route))
    assert answer.status_code == 200
    assert answer.json().get("valid", True)


@EACH_ROUTE
async def test_a_code_refused_by_a_block_is_not_used_up(
    blocked_user: tuple[MfaUser, Authenticator], frozen_clock: FrozenClock, route: str
) -> None:
    code = _get_valid_code(blocked_user, route)
    await send_code(blocked_user[0].client, route, code)
    frozen_clock.advance(15)
    answer = await send_code(blocked_user[0].client, route, code)
    assert answer.status_code == 200
    assert answer.json().get("valid", True)


async def test_a_block_refuses_recovery_codes_too(
    blocked_user: tuple[MfaUser, Authenticator],
) -> None:
    mfa_user, _ = blocked_user
    answer = await send_code(mfa_user.client, "verify", mfa_user.recovery_codes[0])
    assert answer.status_code == 429
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10


async def test_while_codes_are_blocked_a_password_is_accepted_but_its_code_is_not(
    world: World, blocked_user: tuple[MfaUser, Authenticator]
) -> None:
    mfa_user, _ = blocked_user
    answer = await sign_in(world, mfa_user.client.email, mfa_user.authenticator.code(1))
    assert read_error(answer) == (429, "rate_limited")


async def test_wrong_codes_at_a_sign_in_count_as_well(world: World, mfa_user: MfaUser) -> None:
    wrong = find_wrong_code(mfa_user.authenticator)
    for _ in range(3):
        await sign_in(world, mfa_user.client.email, wrong)
    for _ in range(2):
        await verify_code(mfa_user.client, wrong)
    assert (
        await send_code(mfa_user.client, "verify", mfa_user.authenticator.code(1))
    ).status_code == 429


async def test_a_wrong_code_after_a_block_starts_a_longer_one(
    blocked_user: tuple[MfaUser, Authenticator], frozen_clock: FrozenClock
) -> None:
    mfa_user, pending = blocked_user
    frozen_clock.advance(15)
    await verify_code(mfa_user.client, find_wrong_code(mfa_user.authenticator, pending))
    answer = await send_code(mfa_user.client, "verify", mfa_user.authenticator.code(1))
    assert answer.json()["error"]["details"]["retry_after"] == 30


async def test_a_right_code_clears_the_count(mfa_user: MfaUser) -> None:
    for _ in range(2):
        for _ in range(4):
            assert not await verify_code(mfa_user.client, find_wrong_code(mfa_user.authenticator))
        assert await verify_code(mfa_user.client, mfa_user.authenticator.next_code())


async def test_wrong_codes_of_one_user_do_not_block_another(
    blocked_user: tuple[MfaUser, Authenticator], world: World, frozen_clock: FrozenClock
) -> None:
    colleague = await world.user("agent_developer", blocked_user[0].client.tenant_id)
    other = await turn_on_mfa(colleague, frozen_clock)
    assert await verify_code(other.client, other.authenticator.next_code())


async def test_guesses_from_several_sessions_are_counted_together(
    user_and_old_session: tuple[MfaUser, Client],
) -> None:
    mfa_user, other = user_and_old_session
    for client in (mfa_user.client, other, mfa_user.client, other, mfa_user.client):
        await verify_code(client, find_wrong_code(mfa_user.authenticator))
    assert (await send_code(other, "verify", mfa_user.authenticator.code(1))).status_code == 429


async def test_a_block_emits_one_event(
    blocked_user: tuple[MfaUser, Authenticator], services: Services
) -> None:
    mfa_user, _ = blocked_user
    await send_code(mfa_user.client, "verify", "123456")
    assert await read_tenant_events(services, mfa_user.client, "sign_in_blocked") == [
        {
            "user_id": mfa_user.client.user_id,
            "ip_address": mfa_user.client.address,
            "reason": "code",
        }
    ]
