"""Workflows and executions for tests."""

from itertools import pairwise
from typing import Any

from tests.assertions import wait_until
from tests.world import Client

PATH = "/api/v1/workflows"
EXECUTIONS = "/api/v1/workflow-executions"


def transform(node_id: str, output: Any, **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "transform", "config": {"output": output}, **fields}


def condition(node_id: str, expression: str) -> dict[str, Any]:
    return {"id": node_id, "type": "condition", "config": {"expression": expression}}


def edge(source: str, target: str, *, when: bool | None = None) -> dict[str, Any]:
    return {"from": source, "to": target, **({} if when is None else {"when": when})}


def chain(*ids: str) -> list[dict[str, Any]]:
    return [edge(source, target) for source, target in pairwise(ids)]


async def create_workflow(
    client: Client,
    nodes: list[dict[str, Any]],
    edges: list[dict[str, Any]] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    body = {"name": "Orders", "nodes": nodes, "edges": edges or [], **fields}
    answer = await client.post(PATH, body)
    assert answer.status_code == 201, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def publish(client: Client, workflow_id: str) -> dict[str, Any]:
    answer = await client.post(f"{PATH}/{workflow_id}/publish")
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def create_published(
    client: Client, nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None = None
) -> str:
    workflow = await create_workflow(client, nodes, edges)
    await publish(client, workflow["id"])
    return str(workflow["id"])


async def start(client: Client, workflow_id: str, **body: Any) -> str:
    answer = await client.post(f"{PATH}/{workflow_id}/execute", body)
    assert answer.status_code == 202, answer.text
    execution_id: str = answer.json()["data"]["id"]
    return execution_id


async def read(client: Client, execution_id: str, wait: int = 0) -> dict[str, Any]:
    answer = await client.get(f"{EXECUTIONS}/{execution_id}", params={"wait": wait})
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def run(client: Client, workflow_id: str, **values: Any) -> dict[str, Any]:
    """Executes a workflow and returns the record once it has ended."""
    execution_id = await start(client, workflow_id, input=values)
    record = await read(client, execution_id, wait=20)
    assert record["status"] in {"completed", "failed", "cancelled"}, record
    return record


async def wait_for_status(client: Client, execution_id: str, status: str) -> dict[str, Any]:
    async def find() -> dict[str, Any] | None:
        record = await read(client, execution_id)
        return record if record["status"] == status else None

    record = await wait_until(find)
    assert record is not None
    return record


def by_node(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["node_id"]: node for node in record["nodes"]}


def statuses(record: dict[str, Any]) -> dict[str, str]:
    return {node["node_id"]: node["status"] for node in record["nodes"]}
