"""Versions of agents: created at every change of behaviour, listed, restored."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.agents.definition.api_calls import list_event_data
from tests.agents.definition.database import fetch_agent
from tests.agents.definition.factories import BODY, PATH, create_agent
from tests.scripted_agents import Talker
from tests.world import Client, World

SETTINGS = {"temperature": 0.5, "max_tokens": 100}
BEHAVIOUR = ("primary_model", "system_prompt", "temperature", "max_tokens")
SENT = {**BODY, **SETTINGS}
KEYS = {"version", *BEHAVIOUR, "note", "created_by", "created_at"}


async def _create_agent(caller: Client) -> dict[str, Any]:
    return await create_agent(caller, **SETTINGS)


async def _change_agent(caller: Client, agent_id: str, **fields: Any) -> dict[str, Any]:
    answer = await caller.put(f"{PATH}/{agent_id}", fields)
    assert answer.status_code == 200, answer.text
    agent: dict[str, Any] = answer.json()
    return agent


async def _list_versions(caller: Client, agent_id: str, **params: Any) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}/{agent_id}/versions", params=params)
    assert answer.status_code == 200, answer.text
    versions: list[dict[str, Any]] = answer.json()["data"]
    return versions


# List


async def test_a_new_agent_has_one_version(developer: Client) -> None:
    agent = await _create_agent(developer)
    answer = (await developer.get(f"{PATH}/{agent['id']}/versions")).json()
    assert answer["pagination"] == {"page": 1, "per_page": 20, "total": 1, "total_pages": 1}
    (version,) = answer["data"]
    assert set(version) == KEYS
    assert version["version"] == 1
    assert version["created_by"] == developer.user_id
    assert version["created_at"].endswith("Z")
    assert {name: version[name] for name in BEHAVIOUR} == {name: SENT[name] for name in BEHAVIOUR}


async def test_a_change_of_behaviour_is_a_new_version(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [
        {"primary_model": "claude-x"},
        {"system_prompt": "Other."},
        {"temperature": 0.1},
        {"max_tokens": 7},
        {"name": "New", "temperature": 0.0},
    ]
    for change in cases:
        developer = await world.user()
        with subtests.test(change=change):
            agent = await _create_agent(developer)
            updated = await _change_agent(developer, agent["id"], **change)
            assert updated["version"] == 2
            new, old = await _list_versions(developer, agent["id"])
            assert (new["version"], old["version"]) == (2, 1)
            assert {name: new[name] for name in BEHAVIOUR} == {
                name: updated[name] for name in BEHAVIOUR
            }
            assert {name: old[name] for name in BEHAVIOUR} == {
                name: agent[name] for name in BEHAVIOUR
            }


async def test_other_changes_are_no_new_version(world: World, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"name": "New"},
        {"description": "New text"},
        {"status": "published"},
        {"temperature": 0.5},
        {},
    ]
    for change in cases:
        developer = await world.user()
        with subtests.test(change=change):
            agent = await _create_agent(developer)
            assert (await _change_agent(developer, agent["id"], **change))["version"] == 1
            assert len(await _list_versions(developer, agent["id"])) == 1


async def test_log_settings_are_no_new_version(developer: Client) -> None:
    agent = await _create_agent(developer)
    await developer.put(f"{PATH}/{agent['id']}/log-settings", {"retention_days": 3})
    assert len(await _list_versions(developer, agent["id"])) == 1


async def test_a_version_has_the_user_that_created_it(world: World, developer: Client) -> None:
    colleague = await world.user("agent_developer", developer.tenant_id)
    agent = await _create_agent(developer)
    await _change_agent(colleague, agent["id"], temperature=0.1)
    creators = [item["created_by"] for item in await _list_versions(developer, agent["id"])]
    assert creators == [colleague.user_id, developer.user_id]


async def test_versions_come_in_pages_the_newest_first(developer: Client) -> None:
    agent = await _create_agent(developer)
    for number in range(1, 12):
        await _change_agent(developer, agent["id"], max_tokens=number)
    versions = []
    for page in (1, 2, 3):
        versions += await _list_versions(developer, agent["id"], page=page, per_page=5)
    assert [item["version"] for item in versions] == list(range(12, 0, -1))


async def test_a_wrong_parameter_is_refused(world: World, subtests: pytest.Subtests) -> None:
    for name, value in (("page", 0), ("per_page", 0), ("per_page", 101)):
        developer = await world.user()
        with subtests.test(name=name, value=value):
            agent = await _create_agent(developer)
            answer = await developer.get(f"{PATH}/{agent['id']}/versions", params={name: value})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {name}


async def test_concurrent_changes_create_consecutive_versions(
    developer: Client,
) -> None:
    agent = await _create_agent(developer)
    answers = await asyncio.gather(
        *(_change_agent(developer, agent["id"], max_tokens=number) for number in range(1, 6))
    )
    assert sorted(item["version"] for item in answers) == [2, 3, 4, 5, 6]
    stored = {
        item["version"]: item["max_tokens"] for item in await _list_versions(developer, agent["id"])
    }
    assert stored == {1: 100, **{item["version"]: item["max_tokens"] for item in answers}}


async def test_a_direct_sub_agent_has_versions(developer: Client) -> None:
    parent = await _create_agent(developer)
    path = f"{PATH}/{parent['id']}/sub-agents/direct"
    child = (await developer.post(path, BODY)).json()["id"]
    await developer.put(f"{path}/{child}", {"system_prompt": "Other.", "delegation_prompt": "x"})
    prompts = [item["system_prompt"] for item in await _list_versions(developer, child)]
    assert prompts == ["Other.", "You help."]
    assert len(await _list_versions(developer, parent["id"])) == 1


async def test_versions_of_another_tenants_agent_are_not_found(
    world: World, subtests: pytest.Subtests
) -> None:
    for tail in ("versions", "versions/1/restore"):
        developer = await world.user()
        with subtests.test(tail=tail):
            agent = await _create_agent(await world.user())
            method = "POST" if tail.endswith("restore") else "GET"
            answer = await developer(method, f"{PATH}/{agent['id']}/{tail}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "agent_not_found"


# Restore


async def _restore_version(caller: Client, agent_id: str, version: object) -> Any:
    return await caller.post(f"{PATH}/{agent_id}/versions/{version}/restore")


async def test_restoring_sets_the_behaviour_of_the_version(developer: Client) -> None:
    agent = await _create_agent(developer)
    await _change_agent(
        developer,
        agent["id"],
        primary_model="claude-x",
        system_prompt="Other.",
        temperature=0.9,
        max_tokens=7,
    )
    answer = await _restore_version(developer, agent["id"], 1)
    assert answer.status_code == 200
    updated = answer.json()
    assert {name: updated[name] for name in BEHAVIOUR} == {name: agent[name] for name in BEHAVIOUR}
    assert updated["version"] == 3
    stored = (await developer.get(f"{PATH}/{agent['id']}")).json()
    assert {name: stored[name] for name in updated} == updated


async def test_restoring_creates_a_new_version(developer: Client) -> None:
    agent = await _create_agent(developer)
    await _change_agent(developer, agent["id"], temperature=0.9)
    await _restore_version(developer, agent["id"], 1)
    versions = [
        (item["version"], item["temperature"])
        for item in await _list_versions(developer, agent["id"])
    ]
    assert versions == [(3, 0.5), (2, 0.9), (1, 0.5)]


async def test_a_restore_can_be_undone(developer: Client) -> None:
    agent = await _create_agent(developer)
    await _change_agent(developer, agent["id"], temperature=0.9)
    await _restore_version(developer, agent["id"], 1)
    answer = await _restore_version(developer, agent["id"], 2)
    assert (answer.json()["temperature"], answer.json()["version"]) == (0.9, 4)


async def test_restoring_changes_only_the_behaviour(developer: Client) -> None:
    agent = await _create_agent(developer)
    await _change_agent(developer, agent["id"], temperature=0.9)
    fields = {"name": "New", "description": "New text", "status": "archived"}
    await _change_agent(developer, agent["id"], **fields)
    settings = {"log_messages": False, "retention_days": 3}
    await developer.put(f"{PATH}/{agent['id']}/log-settings", settings)
    updated = (await _restore_version(developer, agent["id"], 1)).json()
    assert {name: updated[name] for name in fields} == fields
    stored = (await developer.get(f"{PATH}/{agent['id']}/log-settings")).json()
    assert {name: stored[name] for name in settings} == settings


async def test_the_event_of_a_restore_has_the_changed_fields(developer: Client) -> None:
    agent = await _create_agent(developer)
    await _change_agent(developer, agent["id"], temperature=0.9, max_tokens=7)
    await _restore_version(developer, agent["id"], 1)
    assert (await list_event_data(developer, "agent.updated"))[-1] == {
        "agent_id": agent["id"],
        "name": "Shop",
        "status": "draft",
        "version": 3,
        "changed": ["temperature", "max_tokens"],
    }


async def test_restoring_the_current_version_changes_nothing(developer: Client) -> None:
    agent = await _create_agent(developer)
    answer = await _restore_version(developer, agent["id"], 1)
    assert (answer.status_code, answer.json()) == (200, agent)
    assert len(await _list_versions(developer, agent["id"])) == 1
    assert await list_event_data(developer, "agent.updated") == []


async def test_restoring_a_model_restores_its_provider(
    developer: Client, services: Services
) -> None:
    agent = await _create_agent(developer)
    await _change_agent(developer, agent["id"], primary_model="claude-x")
    await _restore_version(developer, agent["id"], 1)
    assert (await fetch_agent(services, agent["id"]))["provider"] == "openai"


async def test_a_restored_prompt_applies_to_the_next_turn(talk: Talker) -> None:
    await _change_agent(talk.client, talk.agent_id, system_prompt="Be rude.")
    await _restore_version(talk.client, talk.agent_id, 1)
    await talk.say("Hello")
    assert talk.asked[-1]["messages"][0]["content"] == "You are a test."


async def test_an_unknown_version_is_not_found(
    developer: Client, subtests: pytest.Subtests
) -> None:
    agent = await _create_agent(developer)
    for version in ("0", "2", "-1", "1.0", "x", "1x", "%20", "٣", "9" * 30):
        with subtests.test(version=version):
            answer = await _restore_version(developer, agent["id"], version)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "version_not_found"


async def test_a_version_of_very_many_digits_is_not_found(developer: Client) -> None:
    agent = await _create_agent(developer)
    answer = await _restore_version(developer, agent["id"], "9" * 5000)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "version_not_found"


async def test_another_agents_version_is_not_found(developer: Client) -> None:
    agent, other = await _create_agent(developer), await _create_agent(developer)
    await _change_agent(developer, other["id"], temperature=0.9)
    answer = await _restore_version(developer, agent["id"], 2)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "version_not_found"


async def test_the_same_idempotency_key_restores_once(developer: Client) -> None:
    agent = await _create_agent(developer)
    await _change_agent(developer, agent["id"], temperature=0.9)
    path, headers = f"{PATH}/{agent['id']}/versions/1/restore", {"Idempotency-Key": agent["id"]}
    first = await developer.post(path, headers=headers)
    await _change_agent(developer, agent["id"], temperature=0.9)
    second = await developer.post(path, headers=headers)
    assert first.json() == second.json()
    assert (await developer.get(f"{PATH}/{agent['id']}")).json()["temperature"] == 0.9


async def test_roles_without_the_permission_neither_read_nor_restore_versions(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "agent_user"):
        developer = await world.user()
        with subtests.test(role=role):
            agent = await _create_agent(developer)
            caller = await world.user(role, developer.tenant_id)
            for answer in (
                await caller.get(f"{PATH}/{agent['id']}/versions"),
                await _restore_version(caller, agent["id"], 1),
            ):
                assert answer.status_code == 403
                assert answer.json()["error"]["details"] == {
                    "required": "agents:write",
                    "your_role": role,
                }
