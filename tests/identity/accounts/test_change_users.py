"""Changing roles, deactivating and reactivating users."""

from typing import Any

import pytest

from app.services import Services
from tests.identity.accounts.api_calls import (
    ACCESS_REMOVALS,
    begin_session,
    change_role,
    deactivate,
    get_own_status,
    invite,
    log_in,
    reactivate,
    refresh_own_tokens,
)
from tests.identity.accounts.mfa_users import enable_mfa, request_mfa_token, verify_code
from tests.identity.accounts.records import fetch_value, read_user_events
from tests.world import Client, World

# Role


async def test_a_change_of_role_returns_the_new_role(admin: Client, colleague: Client) -> None:
    answer = await change_role(admin, colleague.user_id, "agent_developer")
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "role", "message"}
    assert (body["id"], body["role"]) == (colleague.user_id, "agent_developer")


async def test_a_changed_role_is_stored(admin: Client, colleague: Client) -> None:
    await change_role(admin, colleague.user_id, "agent_developer")
    answer = await admin.get(f"/users/{colleague.user_id}")
    assert answer.json()["role"] == "agent_developer"


async def test_a_changed_role_applies_after_the_next_sign_in(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("tenant_admin", "viewer"):
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        anonymous = world.anonymous()
        with subtests.test(role=role):
            await change_role(admin, colleague.user_id, role)
            token = (await log_in(anonymous, colleague.email)).json()["access_token"]
            answer = await anonymous.get(
                "/me/permissions", headers={"authorization": f"Bearer {token}"}
            )
            assert answer.json()["role"] == role


async def test_setting_the_same_role_again_returns_it(admin: Client, colleague: Client) -> None:
    answer = await change_role(admin, colleague.user_id, "agent_user")
    assert answer.status_code == 200
    assert (answer.json()["id"], answer.json()["role"]) == (colleague.user_id, "agent_user")


async def test_setting_the_same_role_again_ends_no_session(
    admin: Client, colleague: Client
) -> None:
    assert (await change_role(admin, colleague.user_id, "agent_user")).status_code == 200
    assert (await get_own_status(colleague), await refresh_own_tokens(colleague)) == (200, 200)


async def test_setting_the_same_role_again_emits_no_event(
    admin: Client, colleague: Client, services: Services
) -> None:
    await change_role(admin, colleague.user_id, "agent_user")
    assert await read_user_events(services, colleague, "role_changed") == []


async def test_a_changed_role_is_in_the_event_log(
    admin: Client, colleague: Client, services: Services
) -> None:
    await change_role(admin, colleague.user_id, "viewer")
    assert await read_user_events(services, colleague, "role_changed") == [
        {"user_id": colleague.user_id, "before": "agent_user", "after": "viewer"}
    ]


async def test_a_change_by_super_admin_is_in_the_event_log_of_the_users_tenant(
    super_admin: Client, stranger: Client, services: Services
) -> None:
    await change_role(super_admin, stranger.user_id, "agent_user")
    assert len(await read_user_events(services, stranger, "role_changed")) == 1


async def test_a_refused_change_of_role_emits_no_event(
    admin: Client, colleague: Client, services: Services
) -> None:
    await change_role(admin, colleague.user_id, "super_admin")
    assert await read_user_events(services, colleague, "role_changed") == []


async def test_a_promoted_inviters_invitations_stay_valid(
    super_admin: Client, admin: Client, services: Services
) -> None:
    invitation = await invite(admin)
    await change_role(super_admin, admin.user_id, "super_admin")
    sql = "SELECT expires_at > now() FROM invitations WHERE id = $1"
    assert await fetch_value(services, sql, invitation["id"])


_INVALID_BODIES: list[dict[str, Any]] = [
    {},
    {"role": None},
    {"role": ""},
    {"role": "owner"},
    {"role": "VIEWER"},
    {"role": " viewer"},
    {"role": 5},
    {"role": ["viewer"]},
]


async def test_an_invalid_role_is_refused(
    admin: Client, colleague: Client, subtests: pytest.Subtests
) -> None:
    for body in _INVALID_BODIES:
        with subtests.test(body=body):
            answer = await admin.put(f"/users/{colleague.user_id}/role", body)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {"role"}


async def test_no_other_field_changes_with_a_role(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str]] = [
        ("tenant_id", "ten_other"),
        ("status", "inactive"),
        ("email", "x@y.example"),
        ("id", "x"),
    ]
    for field, value in cases:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(field=field, value=value):
            body = {"role": "viewer", field: value}
            await admin.put(f"/users/{colleague.user_id}/role", body)
            user = (await admin.get(f"/users/{colleague.user_id}")).json()
            assert user[field] != value


# Sessions of a user who loses access


async def test_the_session_of_a_user_who_loses_access_ends_at_once(
    world: World, subtests: pytest.Subtests
) -> None:
    for action in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(action=action.__name__):
            before = await get_own_status(colleague)
            await action(admin, colleague.user_id)
            assert (before, await get_own_status(colleague)) == (200, 401)


async def test_the_session_of_a_user_who_loses_access_is_ended_after_redis_lost_its_data(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for action in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(action=action.__name__):
            await get_own_status(colleague)
            await action(admin, colleague.user_id)
            await services.redis.flushall()
            assert await get_own_status(colleague) == 401


async def test_the_session_of_a_user_who_loses_access_cannot_be_refreshed(
    world: World, subtests: pytest.Subtests
) -> None:
    for action in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(action=action.__name__):
            await action(admin, colleague.user_id)
            assert await refresh_own_tokens(colleague) == 401


async def test_all_sessions_of_a_user_who_loses_access_end(
    world: World, subtests: pytest.Subtests
) -> None:
    for action in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(action=action.__name__):
            second = await begin_session(world, colleague.email)
            await action(admin, colleague.user_id)
            assert (await get_own_status(second), await refresh_own_tokens(second)) == (401, 401)


async def test_a_loss_of_access_ends_no_session_of_another_user(
    world: World, subtests: pytest.Subtests
) -> None:
    for action in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        with subtests.test(action=action.__name__):
            other = await world.user("agent_user", admin.tenant_id)
            assert (await action(admin, colleague.user_id)).status_code == 200
            assert [await get_own_status(user) for user in (admin, other)] == [200, 200]


async def test_a_loss_of_access_voids_the_mfa_token_of_a_started_sign_in(
    world: World, subtests: pytest.Subtests
) -> None:
    for action in ACCESS_REMOVALS:
        admin = await world.user("tenant_admin")
        colleague = await world.user("agent_user", admin.tenant_id)
        anonymous = world.anonymous()
        with subtests.test(action=action.__name__):
            codes = await enable_mfa(colleague)
            token = await request_mfa_token(anonymous, colleague.email)
            await action(admin, colleague.user_id)
            await reactivate(admin, colleague.user_id)
            assert (await verify_code(anonymous, token, codes[0])).status_code == 401


# Deactivate and reactivate


async def test_a_deactivation_returns_the_new_status(admin: Client, colleague: Client) -> None:
    answer = await deactivate(admin, colleague.user_id)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "status", "message"}
    assert (body["id"], body["status"]) == (colleague.user_id, "inactive")


async def test_a_deactivated_user_is_shown_as_inactive(admin: Client, colleague: Client) -> None:
    await deactivate(admin, colleague.user_id)
    user = (await admin.get(f"/users/{colleague.user_id}")).json()
    assert (user["status"], user["role"]) == ("inactive", "agent_user")


async def test_a_deactivated_user_cannot_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await deactivate(admin, colleague.user_id)
    answer = await log_in(anonymous, colleague.email)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"


async def test_a_second_deactivation_gives_the_same_answer(
    admin: Client, colleague: Client
) -> None:
    answers = [await deactivate(admin, colleague.user_id) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


async def test_two_deactivations_emit_one_event(
    admin: Client, colleague: Client, services: Services
) -> None:
    for _ in range(2):
        await deactivate(admin, colleague.user_id)
    assert await read_user_events(services, colleague, "deactivated") == [
        {"user_id": colleague.user_id}
    ]


async def test_a_reactivation_returns_the_new_status(admin: Client, colleague: Client) -> None:
    await deactivate(admin, colleague.user_id)
    answer = await reactivate(admin, colleague.user_id)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {"id", "status", "message"}
    assert (body["id"], body["status"]) == (colleague.user_id, "active")


async def test_a_reactivated_user_can_sign_in(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await deactivate(admin, colleague.user_id)
    await reactivate(admin, colleague.user_id)
    answer = await log_in(anonymous, colleague.email)
    assert answer.status_code == 200
    assert answer.json()["user"]["role"] == "agent_user"


async def test_a_reactivated_users_old_sessions_stay_ended(
    admin: Client, colleague: Client
) -> None:
    await deactivate(admin, colleague.user_id)
    await reactivate(admin, colleague.user_id)
    assert (await get_own_status(colleague), await refresh_own_tokens(colleague)) == (401, 401)


async def test_a_reactivated_users_old_sessions_stay_ended_after_redis_lost_its_data(
    admin: Client, colleague: Client, services: Services
) -> None:
    await deactivate(admin, colleague.user_id)
    await reactivate(admin, colleague.user_id)
    await services.redis.flushall()
    assert await get_own_status(colleague) == 401


async def test_a_reactivated_user_still_needs_a_code(
    admin: Client, colleague: Client, anonymous: Client
) -> None:
    await enable_mfa(colleague)
    await deactivate(admin, colleague.user_id)
    await reactivate(admin, colleague.user_id)
    assert (await log_in(anonymous, colleague.email)).json()["mfa_required"] is True


async def test_reactivating_an_active_user_ends_no_session(
    admin: Client, colleague: Client
) -> None:
    answer = await reactivate(admin, colleague.user_id)
    assert (answer.status_code, answer.json()["status"]) == (200, "active")
    assert await get_own_status(colleague) == 200


async def test_two_reactivations_emit_one_event(
    admin: Client, colleague: Client, services: Services
) -> None:
    await deactivate(admin, colleague.user_id)
    for _ in range(2):
        await reactivate(admin, colleague.user_id)
    assert await read_user_events(services, colleague, "reactivated") == [
        {"user_id": colleague.user_id}
    ]


async def test_an_event_names_the_administrator_as_its_actor(
    admin: Client, colleague: Client, services: Services
) -> None:
    await deactivate(admin, colleague.user_id)
    sql = (
        "SELECT actor_id FROM event_log "
        "WHERE type = 'system.user.deactivated' AND data ->> 'user_id' = $1"
    )
    assert await fetch_value(services, sql, colleague.user_id) == admin.user_id
