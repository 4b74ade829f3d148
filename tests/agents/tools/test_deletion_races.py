"""Deleting a tool while one of its executions finishes."""

import asyncio

from app.domain.agents.tools import queries, service
from app.services import Services
from tests.agents.tools.tool_requests import create_tool
from tests.workers.factories import wait_until
from tests.world import Client

_ADD_EXECUTION = """
INSERT INTO tool_executions (tenant_id, id, tool_id, work_id, status, input, correlation_id)
VALUES ($1::text, 'exe_' || $2::text, $2::text, '', 'running', '{}', '')
"""
_IS_WAITING = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"


async def test_a_tool_can_be_deleted_while_an_execution_finishes(
    developer: Client, services: Services
) -> None:
    tool_id, tenant_id = (await create_tool(developer))["id"], developer.tenant_id
    async with services.db.tx(tenant_id) as tx:
        await (await tx.raw()).execute(_ADD_EXECUTION, tenant_id, tool_id)

    async def finish() -> None:
        async with services.db.tx(tenant_id) as tx:
            execution_id = f"exe_{tool_id}"
            ending = ("completed", None, (None, None), 1)
            await queries.finish_execution(tx, tenant_id, execution_id, *ending)

    async with services.db.tx(tenant_id) as tx:
        raw = await tx.raw()
        await raw.execute("SELECT 1 FROM tools WHERE id = $1 FOR UPDATE", tool_id)
        finishing = asyncio.create_task(finish())
        await wait_until(lambda: raw.fetchval(_IS_WAITING))
        await service.delete(tx, tool_id)
    await finishing
    assert (await developer.get(f"/v1/tools/{tool_id}")).status_code == 404
