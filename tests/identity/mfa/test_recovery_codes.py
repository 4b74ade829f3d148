"""POST /api/v1/mfa/recovery-codes."""

import re

import pytest

from tests.identity.mfa.api_calls import (
    get_status,
    list_devices,
    replace_recovery_codes,
    set_up,
    verify_code,
)
from tests.identity.mfa.assertions import read_error
from tests.identity.mfa.authenticators import MfaUser
from tests.world import World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_ten_new_recovery_codes_are_returned(mfa_user: MfaUser) -> None:
    answer = await replace_recovery_codes(mfa_user.client)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"recovery_codes", "message"}
    assert len(set(body["recovery_codes"]) - set(mfa_user.recovery_codes)) == 10
    assert all(re.fullmatch("[A-Za-z0-9]{10}", code) for code in body["recovery_codes"])


async def test_all_new_recovery_codes_work(mfa_user: MfaUser) -> None:
    recovery_codes = (await replace_recovery_codes(mfa_user.client)).json()["recovery_codes"]
    assert [await verify_code(mfa_user.client, code) for code in recovery_codes] == [True] * 10


async def test_earlier_recovery_codes_no_longer_work(mfa_user: MfaUser) -> None:
    await replace_recovery_codes(mfa_user.client)
    for code in mfa_user.recovery_codes:
        assert not await verify_code(mfa_user.client, code)
        # A valid code in between resets the count, so that each old code is really checked.
        assert await verify_code(mfa_user.client, mfa_user.authenticator.next_code())


async def test_after_a_replacement_ten_recovery_codes_remain(mfa_user: MfaUser) -> None:
    await verify_code(mfa_user.client, mfa_user.recovery_codes[0])
    await replace_recovery_codes(mfa_user.client)
    assert (await get_status(mfa_user.client))["recovery_codes_remaining"] == 10


async def test_new_recovery_codes_do_not_change_the_devices(mfa_user: MfaUser) -> None:
    before = await list_devices(mfa_user.client)
    await replace_recovery_codes(mfa_user.client)
    assert await list_devices(mfa_user.client) == before


async def test_without_mfa_recovery_codes_cannot_be_replaced(
    world: World, subtests: pytest.Subtests
) -> None:
    for state in ("off", "set up"):
        developer = await world.user()
        with subtests.test(state=state):
            if state == "set up":
                await set_up(developer)
            assert read_error(await replace_recovery_codes(developer)) == (409, "mfa_not_enabled")
