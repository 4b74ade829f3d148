"""Authenticator devices: list, add, remove."""

from datetime import datetime

import pytest

from app.kit import clock
from app.services import Services
from tests.identity.mfa.api_calls import (
    MFA_OFF,
    MFA_ON,
    create_mfa_user,
    enable,
    get_status,
    list_devices,
    log_in,
    remove_device,
    set_up,
    sign_in,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.assertions import read_error
from tests.identity.mfa.authenticators import (
    STEP_SECONDS,
    Authenticator,
    FrozenClock,
    MfaUser,
    find_wrong_code,
)
from tests.identity.mfa.database import count_mfa_rows
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_a_device_is_listed_with_its_fields(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    await turn_on_mfa(developer, frozen_clock, name="My phone")
    (device,) = await list_devices(developer)
    assert set(device) == {"id", "name", "type", "created_at", "last_used_at"}
    assert (device["name"], device["type"]) == ("My phone", "totp")
    assert device["created_at"].endswith("Z")


async def test_the_last_use_of_a_device_is_listed(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    frozen_clock.advance(2 * STEP_SECONDS)
    await verify_code(mfa_user.client, mfa_user.authenticator.next_code())
    (device,) = await list_devices(mfa_user.client)
    assert datetime.fromisoformat(device["last_used_at"]) == clock.now()


async def test_a_wrong_code_does_not_change_the_last_use_of_a_device(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    before = await list_devices(mfa_user.client)
    frozen_clock.advance(2 * STEP_SECONDS)
    await verify_code(mfa_user.client, find_wrong_code(mfa_user.authenticator))
    assert await list_devices(mfa_user.client) == before


async def test_the_use_of_one_device_does_not_change_the_last_use_of_another(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    second = await turn_on_mfa(mfa_user.client, frozen_clock)
    before = await list_devices(mfa_user.client)
    await verify_code(mfa_user.client, second.authenticator.next_code())
    after = await list_devices(mfa_user.client)
    assert (after[0], after[1]["id"]) == (before[0], before[1]["id"])
    assert after[1]["last_used_at"] > before[1]["last_used_at"]


async def test_a_device_has_a_default_name(mfa_user: MfaUser) -> None:
    assert (await list_devices(mfa_user.client))[0]["name"]


async def test_devices_have_the_names_given_when_they_were_enabled(
    developer: Client, frozen_clock: FrozenClock
) -> None:
    for name in ("Phone", "  Tablet "):
        await turn_on_mfa(developer, frozen_clock, name=name)
    assert [device["name"] for device in await list_devices(developer)] == ["Phone", "Tablet"]


async def test_an_invalid_name_is_refused(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    cases: list[object] = ["", "  ", "two\nlines", "x" * 101, None, 5]
    for name in cases:
        developer = await world.user()
        with subtests.test(name=name):
            authenticator = Authenticator(frozen_clock, (await set_up(developer))["secret"])
            answer = await enable(developer, authenticator.code(), name=name)
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"name"}


async def test_each_device_signs_in(
    world: World, mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    second = await turn_on_mfa(mfa_user.client, frozen_clock)
    for authenticator in (mfa_user.authenticator, second.authenticator):
        answer = await sign_in(world, mfa_user.client.email, authenticator.next_code())
        assert answer.status_code == 200


async def test_a_step_used_on_one_device_is_valid_on_another(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    second = await turn_on_mfa(mfa_user.client, frozen_clock)
    frozen_clock.advance()
    assert await verify_code(mfa_user.client, mfa_user.authenticator.code())
    assert await verify_code(mfa_user.client, second.authenticator.code())


async def test_earlier_recovery_codes_are_valid_until_another_device_is_enabled(
    mfa_user: MfaUser,
) -> None:
    pending = await set_up(mfa_user.client)
    assert await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    assert not await verify_code(mfa_user.client, pending["recovery_codes"][0])


async def test_enabling_another_device_replaces_the_recovery_codes(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    second = await turn_on_mfa(mfa_user.client, frozen_clock)
    assert not await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    assert await verify_code(mfa_user.client, second.recovery_codes[0])


async def test_after_another_device_there_are_ten_codes_again(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10


async def test_only_devices_of_the_caller_are_listed(mfa_user: MfaUser, world: World) -> None:
    colleague = await world.user("agent_developer", mfa_user.client.tenant_id)
    assert await list_devices(colleague) == []


async def test_a_removed_device_can_be_replaced_by_another(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    for _ in range(9):
        await turn_on_mfa(mfa_user.client, frozen_clock)
    await remove_device(mfa_user.client, (await list_devices(mfa_user.client))[0]["id"])
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert (await get_status(mfa_user.client))["devices_count"] == 10


async def test_an_unknown_device_is_404(mfa_user: MfaUser, subtests: pytest.Subtests) -> None:
    cases: list[str] = ["dev_nothing", "x", "%20", "0" * 300]
    for device_id in cases:
        with subtests.test(device_id=device_id):
            assert read_error(await remove_device(mfa_user.client, device_id)) == (
                404,
                "device_not_found",
            )


async def test_without_mfa_there_is_no_device_to_remove(developer: Client) -> None:
    assert read_error(await remove_device(developer, "dev_nothing")) == (404, "device_not_found")


async def test_the_device_of_another_user_is_404_and_stays(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for tenant in ("same", "another"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(tenant=tenant):
            tenant_id = mfa_user.client.tenant_id if tenant == "same" else None
            other = await turn_on_mfa(await world.user("tenant_admin", tenant_id), frozen_clock)
            (device,) = await list_devices(mfa_user.client)
            answer = await remove_device(other.client, device["id"])
            assert read_error(answer) == (404, "device_not_found")
            assert await list_devices(mfa_user.client) == [device]


async def test_removing_a_device_returns_a_message(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    first, _ = await list_devices(mfa_user.client)
    answer = await remove_device(mfa_user.client, first["id"])
    assert answer.status_code == 200
    assert set(answer.json()) == {"message"}


async def test_removing_one_of_two_devices_keeps_mfa_on(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    first, second = await list_devices(mfa_user.client)
    await remove_device(mfa_user.client, first["id"])
    assert await list_devices(mfa_user.client) == [second]
    assert await get_status(mfa_user.client) == MFA_ON


async def test_a_removed_device_does_not_sign_in(
    world: World, mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    second = await turn_on_mfa(mfa_user.client, frozen_clock)
    first, _ = await list_devices(mfa_user.client)
    await remove_device(mfa_user.client, first["id"])
    answers = [
        await sign_in(world, mfa_user.client.email, authenticator.next_code())
        for authenticator in (mfa_user.authenticator, second.authenticator)
    ]
    assert [answer.status_code for answer in answers] == [401, 200]


async def test_removing_one_of_two_devices_leaves_the_recovery_codes(
    mfa_user: MfaUser, frozen_clock: FrozenClock
) -> None:
    second = await turn_on_mfa(mfa_user.client, frozen_clock)
    for device in (await list_devices(mfa_user.client))[1:]:
        await remove_device(mfa_user.client, device["id"])
    assert await verify_code(mfa_user.client, second.recovery_codes[0])


async def test_removing_the_last_device_turns_mfa_off(mfa_user: MfaUser, world: World) -> None:
    (device,) = await list_devices(mfa_user.client)
    assert (await remove_device(mfa_user.client, device["id"])).status_code == 200
    assert await get_status(mfa_user.client) == MFA_OFF
    assert "access_token" in await log_in(world, mfa_user.client.email)


async def test_removing_the_last_device_deletes_the_recovery_codes(
    mfa_user: MfaUser, services: Services
) -> None:
    (device,) = await list_devices(mfa_user.client)
    await remove_device(mfa_user.client, device["id"])
    assert await count_mfa_rows(services, mfa_user.client) == 0


async def test_a_device_can_be_removed_once(mfa_user: MfaUser, frozen_clock: FrozenClock) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    first, _ = await list_devices(mfa_user.client)
    answers = [await remove_device(mfa_user.client, first["id"]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 404]
