"""Administrators reset the MFA of users."""

import pytest

from app.services import Services
from tests.identity.accounts.values import NON_ADMIN_ROLES
from tests.identity.mfa.api_calls import (
    MFA_OFF,
    create_mfa_user,
    enable,
    get_status,
    log_in,
    open_session,
    reset_mfa,
    set_up,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.assertions import read_error
from tests.identity.mfa.authenticators import Authenticator, FrozenClock, MfaUser
from tests.identity.mfa.database import count_mfa_rows
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_an_administrator_resets_mfa(user_and_admin: tuple[MfaUser, Client]) -> None:
    mfa_user, admin = user_and_admin
    answer = await reset_mfa(admin, mfa_user.client.user_id)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "mfa_enabled", "message"}
    assert (body["id"], body["mfa_enabled"]) == (mfa_user.client.user_id, False)
    assert body["message"]


async def test_after_a_reset_the_status_is_off(
    user_and_admin: tuple[MfaUser, Client], services: Services
) -> None:
    mfa_user, admin = user_and_admin
    await reset_mfa(admin, mfa_user.client.user_id)
    assert await get_status(mfa_user.client) == MFA_OFF
    assert await count_mfa_rows(services, mfa_user.client) == 0


async def test_after_a_reset_a_password_signs_in(
    world: World, user_and_admin: tuple[MfaUser, Client]
) -> None:
    mfa_user, admin = user_and_admin
    await reset_mfa(admin, mfa_user.client.user_id)
    assert "access_token" in await log_in(world, mfa_user.client.email)


async def test_an_mfa_token_is_not_valid_after_a_reset(
    world: World, user_and_admin: tuple[MfaUser, Client]
) -> None:
    mfa_user, admin = user_and_admin
    token = (await log_in(world, mfa_user.client.email))["mfa_token"]
    await reset_mfa(admin, mfa_user.client.user_id)
    body = {"mfa_token": token, "code": mfa_user.authenticator.next_code()}
    assert (await world.anonymous().post("/auth/mfa/verify", body)).status_code == 401


async def test_after_a_reset_the_user_must_set_up_again(
    user_and_admin: tuple[MfaUser, Client], frozen_clock: FrozenClock
) -> None:
    mfa_user, admin = user_and_admin
    pending = Authenticator(frozen_clock, (await set_up(mfa_user.client))["secret"])
    await reset_mfa(admin, mfa_user.client.user_id)
    assert read_error(await enable(mfa_user.client, pending.next_code())) == (409, "mfa_not_set_up")


async def test_after_a_reset_mfa_can_be_enabled_again(
    user_and_admin: tuple[MfaUser, Client], frozen_clock: FrozenClock
) -> None:
    mfa_user, admin = user_and_admin
    await reset_mfa(admin, mfa_user.client.user_id)
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert (await get_status(mfa_user.client))["enabled"] is True


async def test_a_second_reset_gives_the_same_answer(user_and_admin: tuple[MfaUser, Client]) -> None:
    mfa_user, admin = user_and_admin
    answers = [await reset_mfa(admin, mfa_user.client.user_id) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_a_user_without_mfa_can_be_reset(admin: Client, world: World) -> None:
    user = await world.user("viewer", admin.tenant_id)
    answer = await reset_mfa(admin, user.user_id)
    assert (answer.status_code, answer.json()["mfa_enabled"]) == (200, False)


async def test_a_reset_does_not_affect_other_users(
    user_and_admin: tuple[MfaUser, Client], frozen_clock: FrozenClock
) -> None:
    mfa_user, admin = user_and_admin
    await turn_on_mfa(admin, frozen_clock)
    assert (await reset_mfa(admin, mfa_user.client.user_id)).status_code == 200
    assert (await get_status(admin))["enabled"] is True


async def test_only_administrators_reset_mfa(
    frozen_clock: FrozenClock, world: World, subtests: pytest.Subtests
) -> None:
    for role in NON_ADMIN_ROLES:
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(role=role):
            caller = await world.user(role, mfa_user.client.tenant_id)
            answer = await reset_mfa(caller, mfa_user.client.user_id)
            assert read_error(answer) == (403, "forbidden")
            assert answer.json()["error"]["details"] == {
                "required": "admin:users",
                "your_role": role,
            }
            assert (await get_status(mfa_user.client))["enabled"] is True


async def test_a_user_without_the_permission_cannot_reset_their_own_mfa(mfa_user: MfaUser) -> None:
    assert (await reset_mfa(mfa_user.client, mfa_user.client.user_id)).status_code == 403


async def test_a_tenant_admin_cannot_reset_users_of_another_tenant(
    mfa_user: MfaUser, admin: Client
) -> None:
    answer = await reset_mfa(admin, mfa_user.client.user_id)
    assert read_error(answer) == (404, "user_not_found")
    assert (await get_status(mfa_user.client))["enabled"] is True


async def test_an_unknown_user_cannot_be_reset(admin: Client) -> None:
    assert read_error(await reset_mfa(admin, "usr_nothing")) == (404, "user_not_found")


async def test_a_super_admin_resets_users_of_any_tenant(
    mfa_user: MfaUser, super_admin: Client
) -> None:
    assert (await reset_mfa(super_admin, mfa_user.client.user_id)).status_code == 200
    assert await get_status(mfa_user.client) == MFA_OFF


async def test_a_super_admin_acting_in_a_tenant_cannot_reset_users_of_another(
    mfa_user: MfaUser, super_admin: Client, world: World
) -> None:
    headers = {"x-tenant-id": await world.tenant()}
    path = f"/api/v1/users/{mfa_user.client.user_id}/mfa/reset"
    answer = await super_admin.post(path, headers=headers)
    assert read_error(answer) == (404, "user_not_found")


async def test_users_with_a_higher_role_cannot_be_reset(
    world: World, admin: Client, frozen_clock: FrozenClock
) -> None:
    higher = await turn_on_mfa(await world.user("super_admin", admin.tenant_id), frozen_clock)
    answer = await reset_mfa(admin, higher.client.user_id)
    assert read_error(answer) == (403, "forbidden")
    assert answer.json()["error"]["details"]["your_role"] == "tenant_admin"
    assert (await get_status(higher.client))["enabled"] is True


async def test_an_administrator_resets_another_of_the_same_role(
    world: World, admin: Client, frozen_clock: FrozenClock
) -> None:
    other = await turn_on_mfa(await world.user("tenant_admin", admin.tenant_id), frozen_clock)
    assert (await reset_mfa(admin, other.client.user_id)).status_code == 200


async def test_resetting_ones_own_mfa_needs_a_code(
    world: World, admin: Client, frozen_clock: FrozenClock
) -> None:
    other = await open_session(world, admin)
    await turn_on_mfa(admin, frozen_clock)
    answer = await reset_mfa(other, admin.user_id)
    assert read_error(answer) == (403, "mfa_required")
    assert (await get_status(admin))["enabled"] is True


async def test_a_session_that_sent_a_code_can_reset_the_mfa_of_its_user(
    world: World, admin: Client, frozen_clock: FrozenClock
) -> None:
    other = await open_session(world, admin)
    mfa_user = await turn_on_mfa(admin, frozen_clock)
    await verify_code(other, mfa_user.authenticator.next_code())
    assert (await reset_mfa(other, admin.user_id)).status_code == 200
    assert await get_status(admin) == MFA_OFF
