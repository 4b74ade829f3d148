"""GET and PUT /api/v1/notifications/preferences."""

import asyncio
from typing import Any

import pytest

from app.domain.messaging.notifications.types import TYPES
from tests.messaging.notifications.center.api import PATH, read_preferences, set_preferences
from tests.platform.events.responses import read_field_errors, read_json
from tests.world import Client, World

PREFERENCES = f"{PATH}/preferences"
QUIET = {"start": "22:00", "end": "07:00"}
OFF = {"in_app": True, "email": False, "team_chat": False}


async def test_a_new_user_gets_everything_in_the_center_alone(developer: Client) -> None:
    """Except that pending decisions, a disabled webhook and a full quota are also mailed."""
    preferences = await read_preferences(developer)
    assert preferences.keys() == TYPES.keys()
    for name in ("approval_requested", "webhook_disabled", "storage_quota"):
        assert preferences.pop(name) == OFF | {"email": True}
    assert list(preferences.values()) == [OFF] * len(preferences)


async def test_a_change_answers_all_preferences_and_keeps_the_rest(developer: Client) -> None:
    defaults = await read_preferences(developer)
    first = await set_preferences(developer, message={"email": True})
    assert first == defaults | {"message": OFF | {"email": True}}
    second = await set_preferences(
        developer, message={"in_app": False, "digest": "daily"}, security={"quiet_hours": QUIET}
    )
    assert second == defaults | {
        "message": {"in_app": False, "email": True, "team_chat": False, "digest": "daily"},
        "security": OFF | {"quiet_hours": QUIET},
    }
    assert await read_preferences(developer) == second


async def test_null_removes_quiet_hours_and_nothing_else(developer: Client) -> None:
    await set_preferences(developer, message={"quiet_hours": QUIET, "digest": "hourly"})
    changed = await set_preferences(developer, message={"quiet_hours": None})
    assert changed["message"] == OFF | {"digest": "hourly"}
    assert (await set_preferences(developer, message={"digest": "off"}))["message"] == OFF


_CASES: list[tuple[Any, str]] = [
    ({"unknown": {"email": True}}, "preferences.unknown"),
    ({"": {}}, "preferences."),
    ({"message": {"fax": True}}, "preferences.message"),
    ({"message": {"email": "yes"}}, "preferences.message.email"),
    ({"message": {"email": None}}, "preferences.message.email"),
    ({"message": {"digest": "weekly"}}, "preferences.message.digest"),
    ({"message": {"quiet_hours": {"start": "24:00", "end": "07:00"}}}, "start"),
    ({"message": {"quiet_hours": {"start": "22:00", "end": "7:00"}}}, "end"),
    ({"message": {"quiet_hours": {"start": "22:00"}}}, "quiet_hours"),
    ({"message": {"quiet_hours": {"start": "22:00", "end": "22:00"}}}, "quiet_hours"),
    ({"message": {"quiet_hours": QUIET | {"zone": "UTC"}}}, "quiet_hours"),
    ({"message": True}, "preferences.message"),
    ([], "preferences"),
    (None, "preferences"),
]


async def test_a_wrong_change_is_refused_and_changes_nothing(
    world: World, subtests: pytest.Subtests
) -> None:
    for preferences, field in _CASES:
        developer = await world.user()
        with subtests.test(preferences=preferences, field=field):
            before = await read_preferences(developer)
            body = {"preferences": preferences}
            if isinstance(preferences, dict):
                body = {"preferences": {"security": {"email": True}, **preferences}}
            errors = read_field_errors(await developer.put(PREFERENCES, body))
            assert any(field in name for name in errors), errors
            assert await read_preferences(developer) == before


async def test_an_empty_change_is_accepted(developer: Client) -> None:
    assert await set_preferences(developer) == await read_preferences(developer)


async def test_concurrent_changes_of_different_types_are_all_kept(developer: Client) -> None:
    await asyncio.gather(
        *(set_preferences(developer, **{name: {"team_chat": True}}) for name in TYPES)
    )
    preferences = await read_preferences(developer)
    assert [name for name in TYPES if not preferences[name]["team_chat"]] == []


async def test_users_of_one_tenant_have_preferences_of_their_own(
    world: World, developer: Client
) -> None:
    other = await world.user("tenant_admin", developer.tenant_id)
    await set_preferences(developer, message={"email": True})
    assert (await read_preferences(other))["message"] == OFF


async def test_super_admin_in_another_tenant_changes_own_preferences(
    super_admin: Client, developer: Client
) -> None:
    headers = {"x-tenant-id": developer.tenant_id}
    body = {"preferences": {"message": {"email": True}}}
    changed = read_json(await super_admin.put(PREFERENCES, body, headers=headers))["preferences"]
    assert changed["message"] == OFF | {"email": True}
    assert await read_preferences(super_admin) == changed
    again = read_json(await super_admin.get(PREFERENCES, headers=headers))["preferences"]
    assert again == changed
    assert (await read_preferences(developer))["message"] == OFF
