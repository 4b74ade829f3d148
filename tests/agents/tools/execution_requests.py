"""Requests for executions of tools, and rows of executions."""

from datetime import datetime
from typing import Any

import httpx

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.tools.factories import ToolClient

ECHO = {"runtime": "python", "code": "def main(input):\n    return input\n"}
FAILING = {"runtime": "python", "code": "def main(input):\n    raise ValueError('no luck')\n"}
SLOW = {
    "runtime": "python",
    "code": "import time\ndef main(input):\n    time.sleep(30)\n",
    "timeout_ms": 300,
}

NO_AGENT = "agt_00000000000000000000000000"
NO_TOOL = "tool_00000000000000000000000000"
EXECUTION_KEYS = {
    "id",
    "tool_id",
    "agent_id",
    "status",
    "input",
    "output",
    "error",
    "execution_time_ms",
    "executed_at",
}


async def request_run(tools: ToolClient, tool_id: str, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    body = {"input": {}, **fields}
    return await tools.client.post(f"/v1/tools/{tool_id}/execute", body, headers=headers)


async def list_executions(tools: ToolClient, tool_id: str, **params: Any) -> list[dict[str, Any]]:
    answer = await tools.client.get(f"/v1/tools/{tool_id}/executions", params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "pagination"}
    records: list[dict[str, Any]] = answer.json()["data"]
    return records


async def get_execution(tools: ToolClient, tool_id: str, execution_id: str) -> dict[str, Any]:
    answer = await tools.client.get(f"/v1/tools/{tool_id}/executions/{execution_id}")
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    record: dict[str, Any] = answer.json()["data"]
    return record


async def get_tool(tools: ToolClient, tool_id: str) -> dict[str, Any]:
    tool: dict[str, Any] = (await tools.client.get(f"/v1/tools/{tool_id}")).json()["data"]
    return tool


async def execute_sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def fetch_value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


async def insert_execution(
    services: Services, tools: ToolClient, tool_id: str, at: datetime, **fields: Any
) -> str:
    """Inserts a run at a given time; returns its id."""
    row = {"status": "completed", "ms": 10, "agent_id": None, "finished": True, **fields}
    execution_id = new_id("exe")
    await execute_sql(
        services,
        "INSERT INTO tool_executions (tenant_id, id, tool_id, agent_id, work_id, status, input,"
        " output, correlation_id, execution_time_ms, executed_at, finished_at)"
        " VALUES ($1, $2, $3, $4, 'wrk_x', $5, '{}', '{}', 'cor_x', $6, $7, $8)",
        tools.client.tenant_id,
        execution_id,
        tool_id,
        row["agent_id"],
        row["status"],
        row["ms"],
        at,
        at if row["finished"] else None,
    )
    return execution_id
