"""Requests that create, attach and list sub-agents."""

from typing import Any

import httpx

from tests.agents.definition.factories import BODY, PATH, create_agent
from tests.world import Client

SUB_AGENT_BODY = {**BODY, "name": "Helper"}
LINK_KEYS = {"id", "name", "relationship_type", "is_enabled", "delegation_prompt"}


async def create_agent_id(caller: Client, name: str = "Agent", **fields: Any) -> str:
    agent_id: str = (await create_agent(caller, name=name, **fields))["id"]
    return agent_id


async def request_attachment(
    caller: Client, parent: str, child: str, **more: Any
) -> httpx.Response:
    return await caller.post(f"{PATH}/{parent}/sub-agents/attach", {"agent_id": child, **more})


async def attach_sub_agent(caller: Client, parent: str, child: str, **more: Any) -> dict[str, Any]:
    answer = await request_attachment(caller, parent, child, **more)
    assert answer.status_code == 201, answer.text
    sub_agent: dict[str, Any] = answer.json()
    return sub_agent


async def create_direct_sub_agent(caller: Client, parent: str, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(f"{PATH}/{parent}/sub-agents/direct", {**SUB_AGENT_BODY, **fields})
    assert answer.status_code == 201, answer.text
    sub_agent: dict[str, Any] = answer.json()
    return sub_agent


async def list_sub_agents(caller: Client, parent: str) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}/{parent}/sub-agents")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    sub_agents: list[dict[str, Any]] = answer.json()["data"]
    return sub_agents


def read_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]
