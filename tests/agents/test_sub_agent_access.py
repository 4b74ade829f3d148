"""Access to sub-agents, and the events of their changes."""

import pytest

from tests.agents.api_calls import list_event_data
from tests.agents.factories import NO_AGENT, PATH
from tests.agents.sub_agent_requests import (
    SUB_AGENT_BODY,
    attach_sub_agent,
    create_agent_id,
    create_direct_sub_agent,
    list_sub_agents,
    read_error,
)
from tests.world import Client, World


@pytest.mark.parametrize(("method", "tail"), [("PATCH", ""), ("DELETE", ""), ("PUT", "direct/")])
@pytest.mark.parametrize("agent", ["nobody", "unattached", "another parent", "the parent itself"])
async def test_an_agent_that_is_no_sub_agent_of_the_parent_is_not_found(
    developer: Client, parent: str, child: str, method: str, tail: str, agent: str
) -> None:
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
    assert read_error(await developer(method, path, **content)) == (404, "sub_agent_not_found")
    assert [item["is_enabled"] for item in await list_sub_agents(developer, other)] == [True]


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""),
        ("POST", "attach"),
        ("POST", "direct"),
        ("PUT", "direct/{}"),
        ("PATCH", "{}"),
        ("DELETE", "{}"),
    ],
)
async def test_roles_without_the_permission_neither_read_nor_change_sub_agents(
    world: World, developer: Client, parent: str, role: str, method: str, tail: str
) -> None:
    sub_agent = await create_direct_sub_agent(developer, parent)
    caller = await world.user(role, developer.tenant_id)
    has_body = method not in {"GET", "DELETE"}
    content = {"json": {**SUB_AGENT_BODY, "agent_id": parent}} if has_body else {}
    path = f"{PATH}/{parent}/sub-agents/{tail.format(sub_agent['id'])}"
    answer = await caller(method, path, **content)
    assert read_error(answer) == (403, "forbidden")
    assert answer.json()["error"]["details"] == {"required": "agents:write", "your_role": role}
    assert [item["id"] for item in await list_sub_agents(developer, parent)] == [sub_agent["id"]]


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
