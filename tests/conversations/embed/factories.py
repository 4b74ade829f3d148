"""Agents and embed keys, and requests with them."""

from typing import Any

import httpx

from tests.world import Client, World

KEYS_PATH = "/api/v1/embed/api-keys"


async def create_embed_key(
    caller: Client, agent_id: str, name: str = "Our shop", **fields: Any
) -> dict[str, Any]:
    answer = await caller.post(KEYS_PATH, {"agent_id": agent_id, "name": name, **fields})
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


async def create_agent(caller: Client, name: str = "Agent") -> str:
    body = {
        "name": name,
        "primary_model": "openai/gpt-4o",
        "system_prompt": "Be.",
        "status": "published",
    }
    answer = await caller.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    agent_id: str = answer.json()["id"]
    return agent_id


async def list_embed_keys(caller: Client, **params: Any) -> list[dict[str, Any]]:
    answer = await caller.get(KEYS_PATH, params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "pagination"}
    keys: list[dict[str, Any]] = answer.json()["data"]
    return keys


async def use_key(world: World, agent_id: str, api_key: str) -> httpx.Response:
    """Sends the cheapest request that accepts an embed key."""
    path = f"/api/v1/public/agents/{agent_id}/embed"
    return await world.anonymous().get(path, headers={"x-api-key": api_key})


async def revoke_key(caller: Client, key_id: str) -> httpx.Response:
    return await caller.delete(KEYS_PATH, params={"id": key_id})


async def list_key_events(caller: Client) -> list[tuple[str, dict[str, Any]]]:
    log = (await caller.get("/api/v1/event-log")).json()["data"]
    return [
        (entry["type"], entry["data"])
        for entry in reversed(log)
        if entry["type"].startswith("system.embed_key")
    ]
