"""Direct sub-agents, which belong to one parent."""

from typing import Any

import pytest

from tests.agents.definition.api_calls import list_event_data, list_events
from tests.agents.definition.factories import NO_AGENT, PATH
from tests.agents.definition.sub_agent_requests import (
    LINK_KEYS,
    SUB_AGENT_BODY,
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
    read_error,
)
from tests.world import Client, World

DIRECT_KEYS = LINK_KEYS | {
    "description",
    "primary_model",
    "system_prompt",
    "temperature",
    "max_tokens",
    "created_at",
    "updated_at",
}


async def test_a_direct_sub_agent_is_created_with_required_fields_only(
    developer: Client, parent: str
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    assert set(sub_agent) == DIRECT_KEYS
    expected = {
        **SUB_AGENT_BODY,
        "relationship_type": "direct",
        "is_enabled": True,
        "delegation_prompt": "",
        "description": "",
        "temperature": 0.7,
        "max_tokens": 2048,
    }
    assert {name: sub_agent[name] for name in expected} == expected
    assert sub_agent["id"].startswith("agt_")
    assert sub_agent["created_at"].endswith("Z")


async def test_a_direct_sub_agent_is_created_with_every_field(
    developer: Client, parent: str
) -> None:
    fields = {
        "name": "Own",
        "primary_model": "local/smollm2",
        "system_prompt": "You count.",
        "delegation_prompt": "Counts things",
        "description": "A counter",
        "temperature": 0.0,
        "max_tokens": 9,
        "is_enabled": False,
    }
    sub_agent = await create_direct_sub_agent(developer, parent, **fields)
    assert {name: sub_agent[name] for name in fields} == fields
    full = (await developer.get(f"{PATH}/{sub_agent['id']}")).json()
    agent_fields = fields.keys() - {"delegation_prompt", "is_enabled"}
    assert {name: full[name] for name in agent_fields} == {
        name: fields[name] for name in agent_fields
    }
    assert await list_sub_agents(developer, parent) == [
        {name: sub_agent[name] for name in LINK_KEYS}
    ]


INVALID_FIELDS = [
    ("name", ""),
    ("name", "x" * 101),
    ("name", None),
    ("primary_model", ""),
    ("primary_model", "x" * 201),
    ("system_prompt", " "),
    ("system_prompt", "x" * 100_001),
    ("delegation_prompt", "x" * 4001),
    ("description", "x" * 2001),
    ("temperature", 1.01),
    ("temperature", -0.01),
    ("temperature", "0"),
    ("max_tokens", 0),
    ("max_tokens", 1_000_001),
    ("is_enabled", "true"),
    ("is_enabled", None),
]


async def test_a_wrong_field_of_a_direct_sub_agent_is_refused(
    developer: Client, parent: str, subtests: pytest.Subtests
) -> None:
    for field, value in INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            answer = await developer.post(
                f"{PATH}/{parent}/sub-agents/direct", {**SUB_AGENT_BODY, field: value}
            )
            assert read_error(answer) == (422, "validation_error")
            assert set(answer.json()["error"]["details"]) == {field}
    assert await list_sub_agents(developer, parent) == []


async def test_every_missing_field_of_a_direct_sub_agent_is_named(
    developer: Client, parent: str
) -> None:
    answer = await developer.post(f"{PATH}/{parent}/sub-agents/direct", {})
    assert set(answer.json()["error"]["details"]) == {"name", "primary_model", "system_prompt"}


async def test_read_only_fields_of_a_direct_sub_agent_are_ignored(
    developer: Client, parent: str, child: str
) -> None:
    fields = {"relationship_type": "template", "id": "agt_x"}
    sub_agent = await create_direct_sub_agent(developer, parent, **fields)
    assert sub_agent["relationship_type"] == "direct"
    full = (await developer.get(f"{PATH}/{sub_agent['id']}")).json()
    assert (full["status"], full["version"]) == ("published", 1)
    assert await list_sub_agents(developer, child) == []


async def test_an_unknown_agent_gets_no_direct_sub_agent(developer: Client) -> None:
    answer = await developer.post(f"{PATH}/{NO_AGENT}/sub-agents/direct", SUB_AGENT_BODY)
    assert read_error(answer) == (404, "agent_not_found")
    assert await list_events(developer) == []


async def test_creating_a_direct_sub_agent_emits_an_event(developer: Client, parent: str) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    events = await list_event_data(developer, "agent.created")
    assert events[-1] == {
        "agent_id": sub_agent["id"],
        "name": "Helper",
        "status": "published",
        "primary_model": "gpt-4o",
    }


_CASES: list[dict[str, Any]] = [
    {"name": "New"},
    {"primary_model": "claude-x"},
    {"system_prompt": "Other."},
    {"delegation_prompt": "Other tasks"},
    {"delegation_prompt": ""},
    {"description": "New text"},
    {"temperature": 0.1},
    {"max_tokens": 3},
    {"is_enabled": False},
    {"name": "New", "is_enabled": False, "delegation_prompt": "All"},
    {},
]


async def test_omitted_fields_of_a_direct_sub_agent_are_not_changed(
    world: World, subtests: pytest.Subtests
) -> None:
    for change in _CASES:
        developer = await world.user()
        parent = await create_agent_id(developer, "Parent")
        with subtests.test(change=change):
            sub_agent = await create_direct_sub_agent(developer, parent, delegation_prompt="Tasks")
            path = f"{PATH}/{parent}/sub-agents/direct/{sub_agent['id']}"
            answer = await developer.put(path, change)
            assert answer.status_code == 200
            updated = answer.json()
            assert {**updated, "updated_at": None} == {**sub_agent, **change, "updated_at": None}
            assert await list_sub_agents(developer, parent) == [
                {name: updated[name] for name in LINK_KEYS}
            ]
            full = (await developer.get(f"{PATH}/{sub_agent['id']}")).json()
            shared = full.keys() & updated.keys()
            assert {name: full[name] for name in shared} == {name: updated[name] for name in shared}


async def test_a_wrong_field_of_a_changed_sub_agent_is_refused(
    developer: Client, parent: str, subtests: pytest.Subtests
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    path = f"{PATH}/{parent}/sub-agents/direct/{sub_agent['id']}"
    for field, value in INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            answer = await developer.put(path, {"description": "Changed", field: value})
            assert read_error(answer) == (422, "validation_error")
            assert set(answer.json()["error"]["details"]) == {field}
    assert (await developer.put(path, {})).json() == sub_agent


async def test_changing_a_direct_sub_agent_emits_an_event(developer: Client, parent: str) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    path = f"{PATH}/{parent}/sub-agents/direct/{sub_agent['id']}"
    await developer.put(path, {"system_prompt": "Other.", "is_enabled": False})
    kind, data = (await list_events(developer))[-1]
    assert kind == "agent.updated"
    assert (data["agent_id"], data["version"]) == (sub_agent["id"], 2)
    assert data["changed"] == ["system_prompt"]


async def test_an_attached_agent_is_not_changed_as_a_direct_one(
    developer: Client, parent: str, child: str
) -> None:
    await attach_sub_agent(developer, parent, child)
    path = f"{PATH}/{parent}/sub-agents/direct/{child}"
    answer = await developer.put(path, {"name": "Mine", "is_enabled": False})
    assert read_error(answer) == (409, "conflict")
    (link,) = await list_sub_agents(developer, parent)
    assert (link["name"], link["is_enabled"]) == ("Child", True)
