"""Workflows with one node, and what happened to it."""

from typing import Any

from app.services import Services
from tests.assertions import wait_until
from tests.automation.workflows.factories import EXECUTIONS, create_workflow, read, run, start
from tests.database import Row, fetch_rows
from tests.world import Client

Record = dict[str, Any]


def build_node(node_type: str, config: Record, **fields: Any) -> Record:
    return {"id": "one", "type": node_type, "config": config, **fields}


async def create_single(client: Client, node_type: str, config: Record, **fields: Any) -> str:
    """Creates a workflow of one node; returns its id."""
    workflow = await create_workflow(client, [build_node(node_type, config, **fields)])
    return str(workflow["id"])


async def run_single(
    client: Client, node_type: str, config: Record, values: Record | None = None, **fields: Any
) -> Record:
    """Runs a workflow of one node; returns the node of the ended execution."""
    workflow_id = await create_single(client, node_type, config, **fields)
    record = await run(client, workflow_id, **(values or {}))
    node: Record = record["nodes"][0]
    assert node["status"] == record["status"]
    return node


async def start_single(
    client: Client, node_type: str, config: Record, values: Record | None = None, **fields: Any
) -> str:
    """Returns the id of the execution."""
    workflow_id = await create_single(client, node_type, config, **fields)
    return await start(client, workflow_id, input=values or {})


async def fail_single(
    client: Client, node_type: str, config: Record, values: Record | None = None, **fields: Any
) -> str:
    """Returns the code of the error of a node that must fail."""
    node = await run_single(client, node_type, config, values, **fields)
    assert node["status"] == "failed", node
    code: str = node["error"]["code"]
    return code


async def cancel(client: Client, execution_id: str) -> Record:
    answer = await client.post(f"{EXECUTIONS}/{execution_id}/cancel")
    assert answer.status_code == 200, answer.text
    record: Record = answer.json()["data"]
    return record


async def read_end(client: Client, execution_id: str) -> Record:
    record = await read(client, execution_id, wait=20)
    assert record["status"] in {"completed", "failed", "cancelled"}, record
    return record


async def wait_for_row(services: Services, sql: str, *args: object) -> Row:
    """Returns the first row of a query once there is one."""

    async def find() -> list[Row]:
        return await fetch_rows(services, sql, *args)

    return (await wait_until(find))[0]
