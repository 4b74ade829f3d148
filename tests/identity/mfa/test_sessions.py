"""Sessions that were opened without a code must send one before they change MFA."""

import httpx
import pytest

from app.services import Services
from tests.identity.mfa.api_calls import (
    API,
    create_mfa_user,
    disable,
    list_devices,
    open_session,
    remove_device,
    replace_recovery_codes,
    sign_in,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.assertions import read_error
from tests.identity.mfa.authenticators import FrozenClock, MfaUser, find_wrong_code
from tests.identity.mfa.database import count_mfa_rows
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def _change_mfa(client: Client, change: str) -> httpx.Response:
    match change:
        case "set up":
            return await client.post(f"{API}/setup")
        case "remove":
            return await remove_device(client, (await list_devices(client))[0]["id"])
        case _:
            return await replace_recovery_codes(client)


EACH_CHANGE = pytest.mark.parametrize("change", ["set up", "remove", "recovery codes"])


@EACH_CHANGE
async def test_a_session_from_before_mfa_must_send_a_code_first(
    user_and_old_session: tuple[MfaUser, Client], change: str
) -> None:
    _, other = user_and_old_session
    answer = await _change_mfa(other, change)
    assert read_error(answer) == (403, "mfa_required")
    assert answer.json()["error"]["details"] == {
        "required": "mfa",
        "your_role": "agent_developer",
    }


@EACH_CHANGE
async def test_a_refused_change_changes_nothing(
    user_and_old_session: tuple[MfaUser, Client], services: Services, change: str
) -> None:
    mfa_user, other = user_and_old_session
    before = await count_mfa_rows(services, other)
    await _change_mfa(other, change)
    assert await count_mfa_rows(services, other) == before
    assert await verify_code(mfa_user.client, mfa_user.recovery_codes[0])


@EACH_CHANGE
@pytest.mark.parametrize("kind", ["code", "recovery code"])
async def test_a_session_from_before_mfa_that_sent_a_code_may_change_mfa(
    user_and_old_session: tuple[MfaUser, Client], change: str, kind: str
) -> None:
    mfa_user, other = user_and_old_session
    assert await verify_code(
        other, mfa_user.authenticator.next_code() if kind == "code" else mfa_user.recovery_codes[0]
    )
    assert (await _change_mfa(other, change)).status_code == 200


@EACH_CHANGE
async def test_a_session_that_sent_a_wrong_code_may_not_change_mfa(
    user_and_old_session: tuple[MfaUser, Client], change: str
) -> None:
    mfa_user, other = user_and_old_session
    await verify_code(other, find_wrong_code(mfa_user.authenticator))
    assert read_error(await _change_mfa(other, change)) == (403, "mfa_required")


@EACH_CHANGE
async def test_a_code_sent_by_one_session_does_not_count_for_another(
    user_and_old_session: tuple[MfaUser, Client], change: str
) -> None:
    mfa_user, other = user_and_old_session
    await verify_code(mfa_user.client, mfa_user.authenticator.next_code())
    assert read_error(await _change_mfa(other, change)) == (403, "mfa_required")


@EACH_CHANGE
async def test_a_session_opened_with_a_code_may_change_mfa(
    world: World, mfa_user: MfaUser, change: str
) -> None:
    token = (
        await sign_in(world, mfa_user.client.email, mfa_user.authenticator.next_code())
    ).json()["access_token"]
    assert (await _change_mfa(Client(world.app, token), change)).status_code == 200


async def test_a_refreshed_session_may_still_change_mfa(world: World, mfa_user: MfaUser) -> None:
    body = {"refresh_token": mfa_user.client.refresh_token}
    pair = (await world.anonymous().post("/auth/refresh", body)).json()
    refreshed_client = Client(world.app, pair["access_token"])
    assert (await replace_recovery_codes(refreshed_client)).status_code == 200


async def test_a_code_sent_before_mfa_was_turned_off_does_not_count_after_it_is_on_again(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for way in ("disable", "last device"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(way=way):
            old = mfa_user.client
            if way == "disable":
                await disable(old, mfa_user.authenticator.next_code())
            else:
                await remove_device(old, (await list_devices(old))[0]["id"])
            await turn_on_mfa(await open_session(world, old), frozen_clock)
            assert read_error(await replace_recovery_codes(old)) == (403, "mfa_required")


async def test_a_session_that_sent_no_code_still_sees_the_devices(
    user_and_old_session: tuple[MfaUser, Client],
) -> None:
    mfa_user, other = user_and_old_session
    assert await list_devices(other) == await list_devices(mfa_user.client)
