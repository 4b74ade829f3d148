"""A super_admin who acts in another tenant manages their own MFA."""

import pytest

from app.services import Services
from tests.identity.accounts.records import fetch_rows, read_tenant_events
from tests.identity.mfa.api_calls import (
    API,
    MFA_OFF,
    disable,
    get_status,
    list_devices,
    remove_device,
    replace_recovery_codes,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import FrozenClock
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_a_super_admin_acting_in_another_tenant_changes_their_own_mfa(
    super_admin: Client, world: World, frozen_clock: FrozenClock, services: Services
) -> None:
    other_tenant_id = await world.tenant()
    super_admin.http.headers["x-tenant-id"] = other_tenant_id
    mfa_user = await turn_on_mfa(super_admin, frozen_clock)
    assert await verify_code(super_admin, mfa_user.authenticator.next_code())
    assert (await replace_recovery_codes(super_admin)).status_code == 200
    sql = "SELECT DISTINCT tenant_id FROM {} WHERE user_id = $1"
    for table in ("mfa_devices", "recovery_codes"):
        rows = await fetch_rows(services, sql.format(table), super_admin.user_id)
        assert rows == [(super_admin.tenant_id,)]


async def test_a_super_admin_acting_in_another_tenant_sees_their_own_mfa(
    super_admin: Client, world: World, frozen_clock: FrozenClock
) -> None:
    await turn_on_mfa(super_admin, frozen_clock)
    headers = {"x-tenant-id": await world.tenant()}
    assert await get_status(super_admin, headers=headers) == await get_status(super_admin)
    answer = await super_admin.get(f"{API}/devices", headers=headers)
    assert answer.json()["devices"] == await list_devices(super_admin)


async def test_a_super_admin_acting_in_another_tenant_turns_their_own_mfa_off(
    world: World, frozen_clock: FrozenClock, subtests: pytest.Subtests
) -> None:
    for way in ("disable", "last device"):
        super_admin = await world.user("super_admin")
        with subtests.test(way=way):
            mfa_user = await turn_on_mfa(super_admin, frozen_clock)
            (device,) = await list_devices(super_admin)
            super_admin.http.headers["x-tenant-id"] = await world.tenant()
            if way == "disable":
                answer = await disable(super_admin, mfa_user.authenticator.next_code())
            else:
                answer = await remove_device(super_admin, device["id"])
            assert answer.status_code == 200
            del super_admin.http.headers["x-tenant-id"]
            assert await get_status(super_admin) == MFA_OFF


async def test_mfa_events_of_a_super_admin_acting_in_another_tenant_are_in_their_own(
    super_admin: Client, world: World, frozen_clock: FrozenClock, services: Services
) -> None:
    other_tenant_id = await world.tenant()
    super_admin.http.headers["x-tenant-id"] = other_tenant_id
    await turn_on_mfa(super_admin, frozen_clock)
    assert len(await read_tenant_events(services, super_admin, "mfa_enabled")) == 1
    sql = "SELECT 1 FROM event_log WHERE tenant_id = $1"
    assert await fetch_rows(services, sql, other_tenant_id) == []
