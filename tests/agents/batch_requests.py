"""Batch requests and their operations."""

from typing import Any

import httpx

from tests.world import Client

BATCH_PATH = "/v1/agents/batch"
AGENTS_PATH = "/api/v1/agents"
BODY = {"name": "Shop", "primary_model": "gpt-4o", "system_prompt": "You help."}
NO_AGENT = "agt_00000000000000000000000000"


def build_create(**fields: Any) -> dict[str, Any]:
    return {"action": "create", "data": {**BODY, **fields}}


def build_update(agent_id: str, **fields: Any) -> dict[str, Any]:
    return {"action": "update", "id": agent_id, "data": fields}


def build_delete(agent_id: str) -> dict[str, Any]:
    return {"action": "delete", "id": agent_id}


async def send_batch(caller: Client, *operations: object, **more: Any) -> httpx.Response:
    return await caller.post(BATCH_PATH, {"operations": operations}, **more)


async def run_batch(caller: Client, *operations: object) -> list[dict[str, Any]]:
    answer = await send_batch(caller, *operations)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"results"}
    results: list[dict[str, Any]] = answer.json()["results"]
    assert [result["index"] for result in results] == list(range(len(operations)))
    return results


async def create_agent(caller: Client, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(AGENTS_PATH, {**BODY, **fields})
    assert answer.status_code == 201, answer.text
    agent: dict[str, Any] = answer.json()
    return agent


async def list_names(caller: Client) -> list[str]:
    answer = await caller.get(AGENTS_PATH, params={"per_page": 100, "sort": "name"})
    return [item["name"] for item in answer.json()["data"]]
