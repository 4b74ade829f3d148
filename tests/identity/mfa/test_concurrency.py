"""Concurrent requests on the MFA of one user."""

import asyncio

import pytest

from app.services import Services
from tests.identity.accounts.records import read_mail_texts, read_tenant_events
from tests.identity.mfa.api_calls import (
    MFA_OFF,
    MFA_ON,
    create_mfa_user,
    enable,
    get_status,
    list_devices,
    log_in,
    remove_device,
    replace_recovery_codes,
    send_code,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser, find_wrong_code
from tests.identity.mfa.database import count_mfa_rows
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_of_fifty_uses_of_one_code_at_once_one_is_valid(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for kind in ("code", "recovery code"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(kind=kind):
            code = (
                mfa_user.authenticator.next_code() if kind == "code" else mfa_user.recovery_codes[0]
            )
            answers = await asyncio.gather(
                *(send_code(mfa_user.client, "verify", code) for _ in range(50))
            )
            assert {answer.status_code for answer in answers} <= {200, 429}
            valid = [answer for answer in answers if answer.json().get("valid")]
            assert len(valid) == 1


async def test_a_recovery_code_used_fifty_times_at_once_emits_one_event(
    mfa_user: MfaUser, services: Services
) -> None:
    code = mfa_user.recovery_codes[0]
    await asyncio.gather(*(send_code(mfa_user.client, "verify", code) for _ in range(50)))
    assert len(await read_tenant_events(services, mfa_user.client, "recovery_code_used")) == 1
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 9


async def test_of_fifty_wrong_codes_at_once_five_are_checked(mfa_user: MfaUser) -> None:
    wrong = find_wrong_code(mfa_user.authenticator)
    answers = await asyncio.gather(
        *(send_code(mfa_user.client, "verify", wrong) for _ in range(50))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [429] * 45


async def test_of_two_ways_to_use_one_code_at_once_one_succeeds(
    world: World, mfa_user: MfaUser
) -> None:
    token = (await log_in(world, mfa_user.client.email))["mfa_token"]
    code = mfa_user.authenticator.next_code()
    signed_in, verified = await asyncio.gather(
        world.anonymous().post("/auth/mfa/verify", {"mfa_token": token, "code": code}),
        verify_code(mfa_user.client, code),
    )
    assert (signed_in.status_code, verified) in {(200, False), (401, True)}


async def test_two_enables_at_once_leave_one_device_with_ten_codes(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    setup = await set_up(developer)
    authenticator = Authenticator(frozen_clock, setup["secret"])
    answers = await asyncio.gather(
        *(enable(developer, authenticator.code(steps)) for steps in (0, -1))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert await get_status(developer) == MFA_ON
    assert [await verify_code(developer, code) for code in setup["recovery_codes"]] == [True] * 10


async def test_two_enables_at_once_emit_one_event_and_one_mail(
    developer: Client, frozen_clock: FrozenClock, services: Services
) -> None:
    authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
    await asyncio.gather(*(enable(developer, authenticator.code(steps)) for steps in (0, -1)))
    assert len(await read_tenant_events(services, developer, "mfa_enabled")) == 1
    assert len(await read_mail_texts(services, developer.email)) == 1


async def test_of_two_concurrent_set_ups_one_can_be_enabled(
    developer: Client, frozen_clock: FrozenClock, services: Services
) -> None:
    setups = await asyncio.gather(set_up(developer), set_up(developer))
    authenticators = [Authenticator(frozen_clock, setup["secret"]) for setup in setups]
    enabled = []
    for authenticator, setup in zip(authenticators, setups, strict=True):
        if (await enable(developer, authenticator.code())).status_code == 200:
            enabled.append(setup)
    assert len(enabled) == 1
    # One device, and its ten codes.
    assert await count_mfa_rows(services, developer) == 11
    assert await verify_code(developer, enabled[0]["recovery_codes"][0])


async def test_removing_the_last_two_devices_at_once_turns_mfa_off(
    mfa_user: MfaUser, frozen_clock: FrozenClock, services: Services
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    devices = await list_devices(mfa_user.client)
    answers = await asyncio.gather(
        *(remove_device(mfa_user.client, device["id"]) for device in devices)
    )
    assert [answer.status_code for answer in answers] == [200, 200]
    assert await get_status(mfa_user.client) == MFA_OFF
    assert await count_mfa_rows(services, mfa_user.client) == 0
    assert len(await read_tenant_events(services, mfa_user.client, "mfa_disabled")) == 1


async def test_removing_one_device_twice_at_once_removes_no_other(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    first, second = await list_devices(mfa_user.client)
    answers = await asyncio.gather(*(remove_device(mfa_user.client, first["id"]) for _ in range(2)))
    assert sorted(answer.status_code for answer in answers) == [200, 404]
    assert await list_devices(mfa_user.client) == [second]


async def test_of_two_concurrent_replacements_of_recovery_codes_one_is_stored(
    mfa_user: MfaUser,
) -> None:
    answers = await asyncio.gather(*(replace_recovery_codes(mfa_user.client) for _ in range(2)))
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10
    valid = [
        await verify_code(mfa_user.client, answer.json()["recovery_codes"][0]) for answer in answers
    ]
    assert sorted(valid) == [False, True]
