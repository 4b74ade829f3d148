"""Batch requests and their operations."""

from typing import Any

import httpx

from tests.agents.definition.api_calls import list_names
from tests.agents.definition.factories import BODY
from tests.world import Client

BATCH_PATH = "/v1/agents/batch"


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


async def list_sorted_names(caller: Client) -> list[str]:
    """Returns the names of all agents in alphabetical order."""
    return await list_names(caller, per_page=100, sort="name")
