"""Access to sub-agents, and the events of their changes."""

import itertools

import pytest

from tests.agents.definition.api_calls import list_event_data
from tests.agents.definition.factories import NO_AGENT, PATH
from tests.agents.definition.sub_agent_requests import (
    SUB_AGENT_BODY,
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
    read_error,
)
from tests.world import Client, World


async def test_an_agent_that_is_no_sub_agent_of_the_parent_is_not_found(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["nobody", "unattached", "another parent", "the parent itself"]
    for (method, tail), agent in itertools.product(
        (("PATCH", ""), ("DELETE", ""), ("PUT", "direct/")), cases
    ):
        developer = await world.user()
        parent = await create_agent_id(developer, "Parent")
        child = await create_agent_id(developer, "Child")
        with subtests.test(method=method, tail=tail):
            other = await create_agent_id(developer, "Other")
            other_child = await create_direct_sub_agent(developer, other)
            ids = {
                "nobody": NO_AGENT,
                "unattached": child,
                "another parent": other_child["id"],
                "the parent itself": parent,
            }
            content = {} if method == "DELETE" else {"json": {"is_enabled": False}}
            path = f"{PATH}/{parent}/sub-agents/{tail}{ids[agent]}"
            assert read_error(await developer(method, path, **content)) == (
                404,
                "sub_agent_not_found",
            )
            assert [item["is_enabled"] for item in await list_sub_agents(developer, other)] == [
                True
            ]


async def test_roles_without_the_permission_neither_read_nor_change_sub_agents(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("GET", ""),
        ("POST", "attach"),
        ("POST", "direct"),
        ("PUT", "direct/{}"),
        ("PATCH", "{}"),
        ("DELETE", "{}"),
    ]
    for role, (method, tail) in itertools.product(("viewer", "agent_user"), cases):
        developer = await world.user()
        parent = await create_agent_id(developer, "Parent")
        with subtests.test(role=role, method=method):
            sub_agent = await create_direct_sub_agent(developer, parent)
            caller = await world.user(role, developer.tenant_id)
            has_body = method not in {"GET", "DELETE"}
            content = {"json": {**SUB_AGENT_BODY, "agent_id": parent}} if has_body else {}
            path = f"{PATH}/{parent}/sub-agents/{tail.format(sub_agent['id'])}"
            answer = await caller(method, path, **content)
            assert read_error(answer) == (403, "forbidden")
            assert answer.json()["error"]["details"] == {
                "required": "agents:write",
                "your_role": role,
            }
            assert [item["id"] for item in await list_sub_agents(developer, parent)] == [
                sub_agent["id"]
            ]


async def test_changes_of_sub_agents_emit_updates_of_the_parent(
    developer: Client, parent: str, child: str
) -> None:
    await attach_sub_agent(developer, parent, child)
    path = f"{PATH}/{parent}/sub-agents/{child}"
    await developer("PATCH", path, json={"is_enabled": False})
    await developer.delete(path)
    updates = await list_event_data(developer, "agent.updated")
    assert [(data["agent_id"], data["changed"]) for data in updates] == [
        (parent, ["sub_agents"])
    ] * 3
