"""Requests that create, attach and list sub-agents."""

from typing import Any

import httpx

from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client

PATH = "/api/v1/agents"
BODY = {"name": "Helper", "primary_model": "gpt-4o", "system_prompt": "You help."}
LINK_KEYS = {"id", "name", "relationship_type", "is_enabled", "delegation_prompt"}
NO_AGENT = "agt_00000000000000000000000000"


async def create_agent_id(caller: Client, name: str = "Agent", **fields: Any) -> str:
    answer = await caller.post(PATH, {**BODY, "name": name, **fields})
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["id"]
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


async def create_direct(caller: Client, parent: str, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(f"{PATH}/{parent}/sub-agents/direct", {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    sub_agent: dict[str, Any] = answer.json()
    return sub_agent


async def list_sub_agents(caller: Client, parent: str) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}/{parent}/sub-agents")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    sub_agents: list[dict[str, Any]] = answer.json()["data"]
    return sub_agents


async def count_links(services: Services, tenant_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT count(*) FROM sub_agents WHERE tenant_id = $1"
        return int(await (await tx.raw()).fetchval(sql, tenant_id))


def read_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]
