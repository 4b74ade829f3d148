"""GET and PUT /api/v1/agents/:id/log-settings."""

from typing import Any

import pytest

from tests.agents.definition.api_calls import list_event_data
from tests.agents.definition.factories import PATH, create_agent
from tests.assertions import refused
from tests.world import Client, World

DEFAULTS = {
    "log_messages": True,
    "log_tool_calls": True,
    "log_token_usage": True,
    "retention_days": 365,
}


async def _create_settings_path(caller: Client) -> str:
    agent = await create_agent(caller)
    return f"{PATH}/{agent['id']}/log-settings"


async def test_a_new_agent_logs_everything_for_a_year(developer: Client) -> None:
    answer = await developer.get(await _create_settings_path(developer))
    assert (answer.status_code, answer.json()) == (200, DEFAULTS)


async def test_omitted_settings_are_not_changed(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"log_messages": False},
        {"log_tool_calls": False},
        {"log_token_usage": False},
        {"retention_days": 30},
        {"log_messages": False, "retention_days": 7},
        dict.fromkeys(DEFAULTS.keys() - {"retention_days"}, False) | {"retention_days": 1},
        {},
    ]
    for change in cases:
        developer = await world.user()
        with subtests.test(change=change):
            path = await _create_settings_path(developer)
            answer = await developer.put(path, change)
            assert (answer.status_code, answer.json()) == (200, {**DEFAULTS, **change})
            assert (await developer.get(path)).json() == {**DEFAULTS, **change}


async def test_a_setting_can_be_turned_on_again(developer: Client) -> None:
    path = await _create_settings_path(developer)
    for value in (False, True):
        answer = await developer.put(path, {"log_messages": value})
        assert answer.json() == {**DEFAULTS, "log_messages": value}


async def test_the_bounds_themselves_are_allowed(world: World, subtests: pytest.Subtests) -> None:
    for days in (1, 3650):
        developer = await world.user()
        with subtests.test(days=days):
            answer = await developer.put(
                await _create_settings_path(developer), {"retention_days": days}
            )
            assert (answer.status_code, answer.json()["retention_days"]) == (200, days)


_INVALID_FIELDS: list[tuple[str, object]] = [
    ("retention_days", 0),
    ("retention_days", -1),
    ("retention_days", 3651),
    ("retention_days", 10**30),
    ("retention_days", 1.5),
    ("retention_days", "30"),
    ("retention_days", True),
    ("retention_days", None),
    ("log_messages", None),
    ("log_messages", "false"),
    ("log_messages", 0),
    ("log_tool_calls", 1),
    ("log_token_usage", "yes"),
]


async def test_a_wrong_setting_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    path = await _create_settings_path(developer)
    for field, value in _INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            answer = await developer.put(path, {**DEFAULTS, "retention_days": 9, field: value})
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {field}
    assert (await developer.get(path)).json() == DEFAULTS


async def test_other_fields_of_the_agent_are_refused(developer: Client) -> None:
    path = await _create_settings_path(developer)
    agent_path = path.removesuffix("/log-settings")
    before = (await developer.get(agent_path)).json()
    body = {"name": "Other", "tenant_id": "ten_x", "status": "archived", "system_prompt": "Obey."}
    answer = await developer.put(path, body)
    assert set(refused(answer, 422, "validation_error")["details"]) == set(body)
    assert (await developer.get(agent_path)).json() == before


async def test_a_changed_setting_emits_an_event(developer: Client) -> None:
    path = await _create_settings_path(developer)
    await developer.put(path, {"log_messages": False, "retention_days": 30, "log_tool_calls": True})
    (event,) = await list_event_data(developer, "agent.updated")
    assert event["changed"] == ["log_messages", "retention_days"]
    assert event["version"] == 1


async def test_settings_of_another_tenants_agent_are_not_found(
    world: World, subtests: pytest.Subtests
) -> None:
    for method in ("GET", "PUT"):
        developer = await world.user()
        with subtests.test(method=method):
            owner = await world.user()
            path = await _create_settings_path(owner)
            content = {"json": {"retention_days": 1}} if method == "PUT" else {}
            answer = await developer(method, path, **content)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "agent_not_found"
            assert (await owner.get(path)).json() == DEFAULTS


async def test_roles_without_the_permission_neither_read_nor_change_settings(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "agent_user"):
        developer = await world.user()
        with subtests.test(role=role):
            path = await _create_settings_path(developer)
            caller = await world.user(role, developer.tenant_id)
            for answer in (await caller.get(path), await caller.put(path, {"retention_days": 1})):
                assert answer.status_code == 403
                assert answer.json()["error"]["details"] == {
                    "required": "agents:write",
                    "your_role": role,
                }
