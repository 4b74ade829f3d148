"""Requests that read and change web search configs."""

from typing import Any

from app.services import Services
from tests.database import run_sql
from tests.world import Client

DEFAULTS = {
    "enabled": False,
    "search_engine": "duckduckgo",
    "max_results": 5,
    "safe_search": True,
}
NO_AGENT = "agt_00000000000000000000000000"


def search_path(agent_id: str) -> str:
    return f"/api/v1/agents/{agent_id}/websearch"


async def create_agent(caller: Client) -> str:
    body = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}
    answer = await caller.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["id"]
    return agent_id


async def get_config(caller: Client, agent_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{search_path(agent_id)}/config")
    assert answer.status_code == 200, answer.text
    config: dict[str, Any] = answer.json()
    return config


async def set_config(caller: Client, agent_id: str, **fields: Any) -> dict[str, Any]:
    answer = await caller.put(f"{search_path(agent_id)}/config", fields)
    assert answer.status_code == 200, answer.text
    config: dict[str, Any] = answer.json()
    return config


async def insert_foreign_config(services: Services, tenant_id: str, agent_id: str) -> None:
    """Inserts an enabled config of this tenant for an agent of another one."""
    sql = "INSERT INTO web_search_configs VALUES ($1, true, 'searxng', 20, false, $2)"
    await run_sql(services, sql, agent_id, tenant_id)


async def add_search_key(caller: Client, provider: str, api_key: str = "key-0123456789") -> str:
    body = {"provider": provider, "name": "Search", "api_key": api_key}
    answer = await caller.post("/api/v1/api-keys", body)
    assert answer.status_code == 201, answer.text
    key_id: str = answer.json()["id"]
    return key_id
