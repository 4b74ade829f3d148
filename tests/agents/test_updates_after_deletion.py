"""Deleting a tool or a sub-agent emits agent.updated for the agents that used it."""

from typing import Any

from tests.world import Client

AGENT = {"name": "Ann", "primary_model": "local/smollm2", "system_prompt": "Be short."}
TOOL = {
    "name": "Add",
    "category": "automation",
    "tool_type": "function",
    "auth_type": "none",
    "config": {"runtime": "python", "code": "def main(input):\n    return 1\n"},
}


async def _create_agent(client: Client) -> str:
    answer = await client.post("/api/v1/agents", AGENT)
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["id"]
    return agent_id


async def _list_changes(client: Client, agent_id: str) -> list[Any]:
    answer = await client.get("/api/v1/event-log", params={"event_type": "agent.updated"})
    updates = [event["data"] for event in answer.json()["data"]]
    return [data["changed"] for data in updates if data["agent_id"] == agent_id]


async def test_deleting_a_tool_changes_the_agents_that_used_it(developer: Client) -> None:
    agent_id = await _create_agent(developer)
    tool_id = (await developer.post("/v1/tools", TOOL)).json()["data"]["id"]
    await developer.post(f"/v1/agents/{agent_id}/tools", {"tool_id": tool_id})
    await developer.delete(f"/v1/tools/{tool_id}")
    assert await _list_changes(developer, agent_id) == [["tools"], ["tools"]]


async def test_deleting_an_agent_changes_the_agents_that_delegated_to_it(developer: Client) -> None:
    parent, child = await _create_agent(developer), await _create_agent(developer)
    attached = await developer.post(
        f"/api/v1/agents/{parent}/sub-agents/attach", {"agent_id": child}
    )
    assert attached.status_code == 201, attached.text
    await developer.delete(f"/api/v1/agents/{child}")
    assert await _list_changes(developer, parent) == [["sub_agents"], ["sub_agents"]]
