"""Helpers for tests that call tools in conversations."""

from typing import Any

from tests.scripted_agents import Talker


async def attach_tool(talk: Talker, tool_id: str, **fields: Any) -> None:
    path = f"/v1/agents/{talk.agent_id}/tools"
    answer = await talk.client.post(path, {"tool_id": tool_id, **fields})
    assert answer.status_code == 201, answer.text


async def list_executions(talk: Talker, tool_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/v1/tools/{tool_id}/executions")
    assert answer.status_code == 200, answer.text
    records: list[dict[str, Any]] = answer.json()["data"]
    return records
