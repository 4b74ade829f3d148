"""Deleting a tool or a sub-agent emits agent.updated for the agents that used it."""

from typing import Any

from tests.agents.definition.api_calls import list_event_data
from tests.agents.definition.sub_agent_requests import attach_sub_agent, create_agent_id
from tests.world import Client

TOOL = {
    "name": "Add",
    "category": "automation",
    "tool_type": "function",
    "auth_type": "none",
    "config": {"runtime": "python", "code": "def main(input):\n    return 1\n"},
}


async def _list_changes(caller: Client, agent_id: str) -> list[Any]:
    updates = await list_event_data(caller, "agent.updated")
    return [data["changed"] for data in updates if data["agent_id"] == agent_id]


async def test_deleting_a_tool_changes_the_agents_that_used_it(developer: Client) -> None:
    agent_id = await create_agent_id(developer)
    tool_id = (await developer.post("/v1/tools", TOOL)).json()["data"]["id"]
    await developer.post(f"/v1/agents/{agent_id}/tools", {"tool_id": tool_id})
    await developer.delete(f"/v1/tools/{tool_id}")
    assert await _list_changes(developer, agent_id) == [["tools"], ["tools"]]


async def test_deleting_an_agent_changes_the_agents_that_delegated_to_it(developer: Client) -> None:
    parent, child = await create_agent_id(developer), await create_agent_id(developer)
    await attach_sub_agent(developer, parent, child)
    await developer.delete(f"/api/v1/agents/{child}")
    assert await _list_changes(developer, parent) == [["sub_agents"], ["sub_agents"]]
