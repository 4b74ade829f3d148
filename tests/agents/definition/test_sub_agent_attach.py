"""POST /api/v1/agents/:id/sub-agents/attach."""

import asyncio
from typing import Any

import pytest

from app.kit.ids import new_id
from tests.agents.definition.factories import NO_AGENT, PATH
from tests.agents.definition.sub_agent_requests import (
    LINK_KEYS,
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
    read_error,
    request_attachment,
)
from tests.world import Client, World


async def test_an_agent_is_attached_with_its_id_only(
    developer: Client, parent: str, child: str
) -> None:
    sub_agent = await attach_sub_agent(developer, parent, child)
    assert sub_agent == {
        "id": child,
        "name": "Child",
        "relationship_type": "template",
        "is_enabled": True,
        "delegation_prompt": "",
    }
    assert await list_sub_agents(developer, parent) == [sub_agent]


async def test_an_agent_is_attached_with_every_field(
    developer: Client, parent: str, child: str
) -> None:
    fields = {"delegation_prompt": "Looks\nthings up", "is_enabled": False}
    sub_agent = await attach_sub_agent(developer, parent, child, **fields)
    assert {name: sub_agent[name] for name in fields} == fields
    assert await list_sub_agents(developer, parent) == [sub_agent]


async def test_sub_agents_are_listed_in_the_order_of_attachment(
    developer: Client, parent: str
) -> None:
    assert await list_sub_agents(developer, parent) == []
    names = ["Zoe", "Adam", "Mia"]
    for name in names:
        await attach_sub_agent(developer, parent, await create_agent_id(developer, name))
    await create_direct_sub_agent(developer, parent, name="Ben")
    assert [item["name"] for item in await list_sub_agents(developer, parent)] == [*names, "Ben"]


async def test_a_renamed_agent_is_listed_by_its_new_name(
    developer: Client, parent: str, child: str
) -> None:
    await attach_sub_agent(developer, parent, child)
    await developer.put(f"{PATH}/{child}", {"name": "Renamed"})
    assert [item["name"] for item in await list_sub_agents(developer, parent)] == ["Renamed"]


async def test_an_agent_can_have_several_parents(developer: Client, child: str) -> None:
    for name in ("One", "Two"):
        parent = await create_agent_id(developer, name)
        await attach_sub_agent(developer, parent, child, delegation_prompt=name)
        assert [item["delegation_prompt"] for item in await list_sub_agents(developer, parent)] == [
            name
        ]


async def test_an_agent_is_attached_in_any_status(world: World, subtests: pytest.Subtests) -> None:
    for status in ("draft", "published", "archived"):
        developer = await world.user()
        parent = await create_agent_id(developer, "Parent")
        child = await create_agent_id(developer, "Child")
        with subtests.test(status=status):
            await developer.put(f"{PATH}/{child}", {"status": status})
            await attach_sub_agent(developer, parent, child)


_INVALID_BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "agent_id"),
    ({"agent_id": None}, "agent_id"),
    ({"agent_id": 5}, "agent_id"),
    ({"agent_id": "x", "is_enabled": "yes"}, "is_enabled"),
    ({"agent_id": "x", "is_enabled": None}, "is_enabled"),
    ({"agent_id": "x", "is_enabled": 1}, "is_enabled"),
    ({"agent_id": "x", "delegation_prompt": "x" * 4001}, "delegation_prompt"),
    ({"agent_id": "x", "delegation_prompt": None}, "delegation_prompt"),
]


async def test_a_wrong_field_of_an_attachment_is_refused(
    developer: Client, parent: str, subtests: pytest.Subtests
) -> None:
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            answer = await developer.post(f"{PATH}/{parent}/sub-agents/attach", body)
            assert read_error(answer) == (422, "validation_error")
            assert set(answer.json()["error"]["details"]) == {field}


async def test_a_delegation_prompt_may_have_four_thousand_characters(
    developer: Client, parent: str, child: str
) -> None:
    sub_agent = await attach_sub_agent(developer, parent, child, delegation_prompt="ü" * 4000)
    assert sub_agent["delegation_prompt"] == "ü" * 4000


async def test_read_only_fields_of_an_attachment_are_ignored(
    developer: Client, parent: str, child: str
) -> None:
    fields = {"relationship_type": "direct", "id": "sag_x", "name": "Mine"}
    sub_agent = await attach_sub_agent(developer, parent, child, **fields)
    assert set(sub_agent) == LINK_KEYS
    assert (sub_agent["id"], sub_agent["name"]) == (child, "Child")
    assert sub_agent["relationship_type"] == "template"


async def test_an_unknown_agent_is_not_attached(world: World, subtests: pytest.Subtests) -> None:
    cases: list[str] = [NO_AGENT, "", "x", "x" * 3000]
    for missing in cases:
        developer = await world.user()
        parent = await create_agent_id(developer, "Parent")
        with subtests.test(missing=missing):
            assert read_error(await request_attachment(developer, parent, missing)) == (
                404,
                "agent_not_found",
            )
            assert read_error(await request_attachment(developer, NO_AGENT, parent)) == (
                404,
                "agent_not_found",
            )


async def test_an_agent_is_attached_once(developer: Client, parent: str, child: str) -> None:
    sub_agent = await attach_sub_agent(developer, parent, child, delegation_prompt="First")
    second = await request_attachment(developer, parent, child, delegation_prompt="Second")
    assert read_error(second) == (409, "conflict")
    assert await list_sub_agents(developer, parent) == [sub_agent]


async def test_one_of_equal_concurrent_attachments_succeeds(
    developer: Client, parent: str, child: str
) -> None:
    answers = await asyncio.gather(
        *(request_attachment(developer, parent, child) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert len(await list_sub_agents(developer, parent)) == 1


async def test_a_detached_agent_can_be_attached_again(
    developer: Client, parent: str, child: str
) -> None:
    await attach_sub_agent(developer, parent, child)
    await developer.delete(f"{PATH}/{parent}/sub-agents/{child}")
    await attach_sub_agent(developer, parent, child)


async def test_the_same_idempotency_key_attaches_once(
    developer: Client, parent: str, child: str
) -> None:
    path, headers = f"{PATH}/{parent}/sub-agents/attach", {"Idempotency-Key": new_id("key")}
    first = await developer.post(path, {"agent_id": child}, headers=headers)
    second = await developer.post(path, {"agent_id": child}, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()


async def test_a_direct_sub_agent_of_another_agent_is_not_attached(
    developer: Client, parent: str
) -> None:
    other = await create_agent_id(developer, "Other")
    sub_agent = await create_direct_sub_agent(developer, other)
    assert read_error(await request_attachment(developer, parent, sub_agent["id"])) == (
        409,
        "conflict",
    )
    assert await list_sub_agents(developer, parent) == []


async def test_a_direct_sub_agent_of_the_same_parent_is_not_attached(
    developer: Client, parent: str
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    assert read_error(await request_attachment(developer, parent, sub_agent["id"])) == (
        409,
        "conflict",
    )
    assert [item["relationship_type"] for item in await list_sub_agents(developer, parent)] == [
        "direct"
    ]


async def test_a_direct_sub_agent_has_sub_agents_itself(
    developer: Client, parent: str, child: str
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    await attach_sub_agent(developer, sub_agent["id"], child)
    assert [item["id"] for item in await list_sub_agents(developer, sub_agent["id"])] == [child]
