"""Events and mails about changes of MFA."""

import pytest

from app.services import Services
from tests.identity.accounts.records import fetch_rows, read_mail_texts, read_tenant_events
from tests.identity.mfa.api_calls import (
    create_mfa_user,
    disable,
    list_devices,
    remove_device,
    replace_recovery_codes,
    reset_mfa,
    set_up,
    sign_in,
    turn_on_mfa,
    verify_code,
)
from tests.identity.mfa.authenticators import FrozenClock, MfaUser, find_wrong_code
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("frozen_clock")


async def test_enabling_emits_one_event(mfa_user: MfaUser, services: Services) -> None:
    (device,) = await list_devices(mfa_user.client)
    assert await read_tenant_events(services, mfa_user.client, "mfa_enabled") == [
        {"user_id": mfa_user.client.user_id, "device_id": device["id"]}
    ]


async def test_the_first_device_emits_no_device_added_event(
    mfa_user: MfaUser, services: Services
) -> None:
    assert await read_tenant_events(services, mfa_user.client, "mfa_device_added") == []


async def test_another_device_emits_one_event(
    mfa_user: MfaUser, frozen_clock: FrozenClock, services: Services
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    _, second = await list_devices(mfa_user.client)
    assert await read_tenant_events(services, mfa_user.client, "mfa_device_added") == [
        {"user_id": mfa_user.client.user_id, "device_id": second["id"]}
    ]
    assert len(await read_tenant_events(services, mfa_user.client, "mfa_enabled")) == 1


async def test_removing_a_device_emits_one_event(
    mfa_user: MfaUser, frozen_clock: FrozenClock, services: Services
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    first, _ = await list_devices(mfa_user.client)
    await remove_device(mfa_user.client, first["id"])
    assert await read_tenant_events(services, mfa_user.client, "mfa_device_removed") == [
        {"user_id": mfa_user.client.user_id, "device_id": first["id"]}
    ]
    assert await read_tenant_events(services, mfa_user.client, "mfa_disabled") == []


async def test_removing_the_last_device_also_emits_mfa_disabled(
    mfa_user: MfaUser, services: Services
) -> None:
    (device,) = await list_devices(mfa_user.client)
    await remove_device(mfa_user.client, device["id"])
    assert len(await read_tenant_events(services, mfa_user.client, "mfa_device_removed")) == 1
    assert await read_tenant_events(services, mfa_user.client, "mfa_disabled") == [
        {"user_id": mfa_user.client.user_id}
    ]


async def test_turning_off_emits_one_event(mfa_user: MfaUser, services: Services) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    assert await read_tenant_events(services, mfa_user.client, "mfa_disabled") == [
        {"user_id": mfa_user.client.user_id}
    ]


async def test_a_reset_emits_one_event(
    user_and_admin: tuple[MfaUser, Client], services: Services
) -> None:
    mfa_user, admin = user_and_admin
    for _ in range(2):
        await reset_mfa(admin, mfa_user.client.user_id)
    assert await read_tenant_events(services, mfa_user.client, "mfa_reset") == [
        {"user_id": mfa_user.client.user_id}
    ]


async def test_a_reset_by_a_super_admin_emits_its_event_in_the_tenant_of_the_user(
    mfa_user: MfaUser, super_admin: Client, services: Services
) -> None:
    await reset_mfa(super_admin, mfa_user.client.user_id)
    assert len(await read_tenant_events(services, mfa_user.client, "mfa_reset")) == 1
    assert await read_tenant_events(services, super_admin, "mfa_reset") == []


async def test_using_a_recovery_code_emits_one_event(
    frozen_clock: FrozenClock, world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for use in ("verify", "sign in", "disable"):
        mfa_user = await create_mfa_user(world, frozen_clock)
        with subtests.test(use=use):
            code = mfa_user.recovery_codes[0]
            match use:
                case "verify":
                    await verify_code(mfa_user.client, code)
                case "sign in":
                    await sign_in(world, mfa_user.client.email, code)
                case _:
                    await disable(mfa_user.client, code)
            assert await read_tenant_events(services, mfa_user.client, "recovery_code_used") == [
                {"user_id": mfa_user.client.user_id}
            ]


async def test_new_recovery_codes_emit_one_event(mfa_user: MfaUser, services: Services) -> None:
    await replace_recovery_codes(mfa_user.client)
    assert await read_tenant_events(services, mfa_user.client, "recovery_codes_replaced") == [
        {"user_id": mfa_user.client.user_id}
    ]


async def test_refused_changes_emit_no_event(
    user_and_old_session: tuple[MfaUser, Client], services: Services
) -> None:
    mfa_user, other = user_and_old_session
    sql = "SELECT count(*) FROM event_log WHERE tenant_id = $1"
    before = await fetch_rows(services, sql, mfa_user.client.tenant_id)
    (device,) = await list_devices(other)
    await disable(other, find_wrong_code(mfa_user.authenticator))
    await remove_device(other, device["id"])
    await replace_recovery_codes(other)
    assert await fetch_rows(services, sql, mfa_user.client.tenant_id) == before


async def test_a_set_up_alone_emits_no_event_and_no_mail(
    developer: Client, services: Services
) -> None:
    await set_up(developer)
    sql = "SELECT type FROM event_log WHERE tenant_id = $1"
    assert await fetch_rows(services, sql, developer.tenant_id) == []
    assert await read_mail_texts(services, developer.email) == []


async def test_the_owner_gets_a_mail_when_a_device_is_enabled(
    mfa_user: MfaUser, services: Services
) -> None:
    (text,) = await read_mail_texts(services, mfa_user.client.email)
    assert "An authenticator was added." in text


async def test_the_owner_gets_a_mail_for_another_device(
    mfa_user: MfaUser, frozen_clock: FrozenClock, services: Services
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    assert len(await read_mail_texts(services, mfa_user.client.email)) == 2


async def test_the_owner_gets_a_mail_when_mfa_is_turned_off(
    mfa_user: MfaUser, services: Services
) -> None:
    await disable(mfa_user.client, mfa_user.authenticator.next_code())
    (text,) = (await read_mail_texts(services, mfa_user.client.email))[1:]
    assert "Multi-factor authentication was turned off." in text


async def test_the_owner_gets_a_mail_when_a_device_is_removed(
    mfa_user: MfaUser, frozen_clock: FrozenClock, services: Services
) -> None:
    await turn_on_mfa(mfa_user.client, frozen_clock)
    await remove_device(mfa_user.client, (await list_devices(mfa_user.client))[0]["id"])
    (text,) = (await read_mail_texts(services, mfa_user.client.email))[2:]
    assert "An authenticator was removed." in text


async def test_the_owner_gets_a_mail_that_removing_the_last_device_turned_mfa_off(
    mfa_user: MfaUser, services: Services
) -> None:
    await remove_device(mfa_user.client, (await list_devices(mfa_user.client))[0]["id"])
    texts = (await read_mail_texts(services, mfa_user.client.email))[1:]
    assert any("Multi-factor authentication was turned off." in text for text in texts)


async def test_the_owner_gets_a_mail_when_recovery_codes_are_replaced(
    mfa_user: MfaUser, services: Services
) -> None:
    await replace_recovery_codes(mfa_user.client)
    (text,) = (await read_mail_texts(services, mfa_user.client.email))[1:]
    assert "New recovery codes were created." in text


async def test_the_owner_gets_one_mail_when_mfa_is_reset(
    user_and_admin: tuple[MfaUser, Client], services: Services
) -> None:
    mfa_user, admin = user_and_admin
    for _ in range(2):
        await reset_mfa(admin, mfa_user.client.user_id)
    (text,) = (await read_mail_texts(services, mfa_user.client.email))[1:]
    assert "An administrator removed your authenticators." in text


async def test_the_mail_is_queued_in_the_transaction_of_the_change(
    mfa_user: MfaUser, services: Services
) -> None:
    """Device, event, mail and its work are written in one transaction."""
    sql = """
    SELECT xmin::text FROM mfa_devices WHERE user_id = $1
    UNION ALL SELECT xmin::text FROM event_log WHERE data ->> 'user_id' = $1
    UNION ALL SELECT xmin::text FROM mail_messages WHERE recipient = $2
    UNION ALL SELECT w.xmin::text FROM work AS w JOIN mail_messages AS m ON m.id = w.ref_id
              WHERE m.recipient = $2
    """
    rows = await fetch_rows(services, sql, mfa_user.client.user_id, mfa_user.client.email)
    assert (len(rows), len(set(rows))) == (4, 1)
