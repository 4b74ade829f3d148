"""Changing and removing the link to a sub-agent."""

import asyncio
from typing import Any

import pytest

from tests.agents.definition.api_calls import list_events
from tests.agents.definition.factories import PATH
from tests.agents.definition.sub_agent_requests import (
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
    read_error,
)
from tests.world import Client


async def test_a_delegation_is_changed(
    developer: Client, parent: str, sub_agent: dict[str, Any], subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {"is_enabled": False},
        {"is_enabled": True},
        {"delegation_prompt": "Other"},
        {"delegation_prompt": ""},
        {"delegation_prompt": "x" * 4000, "is_enabled": False},
        {},
    ]
    path, changed = f"{PATH}/{parent}/sub-agents/{sub_agent['id']}", sub_agent
    for change in cases:
        changed = changed | change
        with subtests.test(change=change):
            answer = await developer("PATCH", path, json=change)
            assert (answer.status_code, answer.json()) == (200, changed)
            assert await list_sub_agents(developer, parent) == [changed]


async def test_a_delegation_is_enabled_again(
    developer: Client, parent: str, sub_agent: dict[str, Any]
) -> None:
    path = f"{PATH}/{parent}/sub-agents/{sub_agent['id']}"
    for enabled in (False, True):
        answer = await developer("PATCH", path, json={"is_enabled": enabled})
        assert answer.json()["is_enabled"] is enabled


_INVALID_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"is_enabled": None}, "is_enabled"),
    ({"is_enabled": "no"}, "is_enabled"),
    ({"is_enabled": 0}, "is_enabled"),
    ({"delegation_prompt": None}, "delegation_prompt"),
    ({"delegation_prompt": "x" * 4001}, "delegation_prompt"),
]


async def test_a_wrong_field_of_a_delegation_is_refused(
    developer: Client, parent: str, sub_agent: dict[str, Any], subtests: pytest.Subtests
) -> None:
    for change, field in _INVALID_CHANGES:
        with subtests.test(change=change, field=field):
            path = f"{PATH}/{parent}/sub-agents/{sub_agent['id']}"
            answer = await developer("PATCH", path, json=change)
            assert read_error(answer) == (422, "validation_error")
            assert set(answer.json()["error"]["details"]) == {field}
    assert await list_sub_agents(developer, parent) == [sub_agent]


async def test_a_patch_changes_nothing_of_the_agent_itself(
    developer: Client, parent: str, sub_agent: dict[str, Any]
) -> None:
    before = (await developer.get(f"{PATH}/{sub_agent['id']}")).json()
    path = f"{PATH}/{parent}/sub-agents/{sub_agent['id']}"
    change = {"name": "Mine", "relationship_type": "direct"}
    answer = await developer("PATCH", path, json={**change, "delegation_prompt": "x"})
    assert answer.json() == {**sub_agent, "delegation_prompt": "x"}
    assert (await developer.get(f"{PATH}/{sub_agent['id']}")).json() == before


async def _attach_to_two_parents(caller: Client, child: str) -> list[str]:
    parents = [await create_agent_id(caller, name) for name in ("First", "Second")]
    for parent in parents:
        await attach_sub_agent(caller, parent, child)
    return parents


async def test_a_patch_applies_to_one_parent_only(developer: Client, child: str) -> None:
    first, second = await _attach_to_two_parents(developer, child)
    await developer("PATCH", f"{PATH}/{first}/sub-agents/{child}", json={"is_enabled": False})
    assert [item["is_enabled"] for item in await list_sub_agents(developer, second)] == [True]


async def test_an_attached_agent_is_only_detached(
    developer: Client, parent: str, child: str
) -> None:
    await attach_sub_agent(developer, parent, child)
    answer = await developer.delete(f"{PATH}/{parent}/sub-agents/{child}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_sub_agents(developer, parent) == []
    assert (await developer.get(f"{PATH}/{child}")).status_code == 200
    assert "agent.deleted" not in [kind for kind, _ in await list_events(developer)]


async def test_a_direct_sub_agent_is_deleted(developer: Client, parent: str) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    answer = await developer.delete(f"{PATH}/{parent}/sub-agents/{sub_agent['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_sub_agents(developer, parent) == []
    assert (await developer.get(f"{PATH}/{sub_agent['id']}")).status_code == 404
    deleted, updated = (await list_events(developer))[-2:]
    assert deleted == ("agent.deleted", {"agent_id": sub_agent["id"], "name": "Helper"})
    assert updated[0] == "agent.updated"
    assert (updated[1]["agent_id"], updated[1]["changed"]) == (parent, ["sub_agents"])


async def test_a_direct_sub_agent_that_is_deleted_as_an_agent_leaves_its_parent(
    developer: Client, parent: str
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    assert (await developer.delete(f"{PATH}/{sub_agent['id']}")).status_code == 204
    assert await list_sub_agents(developer, parent) == []


async def test_removing_a_sub_agent_does_not_affect_other_parents(
    developer: Client, child: str
) -> None:
    first, second = await _attach_to_two_parents(developer, child)
    await developer.delete(f"{PATH}/{first}/sub-agents/{child}")
    assert [item["id"] for item in await list_sub_agents(developer, second)] == [child]


async def test_concurrent_removals_remove_a_sub_agent_once(
    developer: Client, parent: str, sub_agent: dict[str, Any]
) -> None:
    path = f"{PATH}/{parent}/sub-agents/{sub_agent['id']}"
    answers = await asyncio.gather(*(developer.delete(path) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [204, 404, 404]
