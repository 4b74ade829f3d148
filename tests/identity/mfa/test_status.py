"""GET /api/v1/mfa/status."""

import pytest

from tests.identity.mfa.api_calls import (
    MFA_OFF,
    MFA_ON,
    disable,
    get_status,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import FrozenClock, MfaUser
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_without_mfa_the_status_is_off(developer: Client) -> None:
    assert await get_status(developer) == MFA_OFF


async def test_a_set_up_alone_leaves_the_status_off(developer: Client) -> None:
    await set_up(developer)
    assert await get_status(developer) == MFA_OFF


async def test_with_mfa_the_status_counts_devices_and_codes(mfa_user: MfaUser) -> None:
    assert await get_status(mfa_user.client) == MFA_ON


async def test_a_second_device_is_counted(mfa_user: MfaUser, frozen_clock: FrozenClock) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert (await get_status(mfa_user.client))["devices_count"] == 2


async def test_a_second_device_that_is_only_set_up_is_not_counted(mfa_user: MfaUser) -> None:
    before = await get_status(mfa_user.client)
    await set_up(mfa_user.client)
    assert await get_status(mfa_user.client) == before


async def test_a_used_recovery_code_is_no_longer_counted(mfa_user: MfaUser) -> None:
    await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 9


async def test_the_status_is_off_again_once_mfa_is_turned_off(mfa_user: MfaUser) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert await get_status(mfa_user.client) == MFA_OFF


async def test_the_status_of_a_user_is_not_affected_by_others(
    mfa_user: MfaUser, world: World
) -> None:
    colleague = await world.user("agent_developer", mfa_user.client.tenant_id)
    assert await get_status(colleague) == MFA_OFF
