"""How executions are counted: once each, in the transaction that ends them."""

import asyncio

import pytest

from app.domain.agents.tools import queries
from app.domain.agents.usage import service as usage
from app.kit.ids import new_id
from app.services import Services
from tests.agents.tools.execution_requests import ECHO
from tests.agents.tools.factories import ToolClient, create_tool_client
from tests.agents.usage.rows import get_usage
from tests.database import run_sql
from tests.world import World
from workers.main import WorkerProcess

_ADD_EXECUTION = """
INSERT INTO tool_executions (tenant_id, id, tool_id, agent_id, work_id, input, correlation_id)
VALUES ($1, $2, $3, $4, 'wrk_1', '{}', 'cor_1')
"""


class _NotCommitted(Exception):
    pass


@pytest.fixture
async def tools(world: World) -> ToolClient:
    return await create_tool_client(world)


async def _count(tools: ToolClient) -> int:
    count: int = (await get_usage(tools.client))["totals"]["tool_executions"]
    return count


async def _add_execution(services: Services, tools: ToolClient, tool_id: str) -> str:
    execution_id = new_id("exe")
    await run_sql(
        services, _ADD_EXECUTION, tools.client.tenant_id, execution_id, tool_id, "agt_used"
    )
    return execution_id


async def _finish(
    services: Services, tools: ToolClient, execution_id: str, *, fails: bool = False
) -> None:
    tenant_id = tools.client.tenant_id
    async with services.db.tx(tenant_id) as tx:
        values = ("failed" if fails else "completed", "{}", (None, None), 5)
        await queries.finish_execution(tx, tenant_id, execution_id, *values)
        if fails:
            raise _NotCommitted


async def test_executions_count_when_they_end_whatever_their_outcome(
    tools: ToolClient, worker: WorkerProcess, services: Services
) -> None:
    good = await tools.create("function", ECHO)
    broken = await tools.create("function", {"runtime": "python", "code": "def main(input): 1/0"})
    for tool_id in (good, broken, good):
        await tools.run(tool_id)
    assert await _count(tools) == 3
    await usage.roll_up(services)
    assert await _count(tools) == 3


async def test_an_execution_that_is_finished_several_times_counts_once(
    tools: ToolClient, services: Services
) -> None:
    """As after a worker was killed, or when a request gives up while a worker ends the run."""
    tool_id = await tools.create("function", ECHO)
    execution_id = await _add_execution(services, tools, tool_id)
    with pytest.raises(_NotCommitted):
        await _finish(services, tools, execution_id, fails=True)
    assert await _count(tools) == 0
    await asyncio.gather(*(_finish(services, tools, execution_id) for _ in range(10)))
    assert await _count(tools) == 1
    await usage.roll_up(services)
    await _finish(services, tools, execution_id)
    assert await _count(tools) == 1


async def test_an_execution_counts_for_its_agent(tools: ToolClient, services: Services) -> None:
    tool_id = await tools.create("function", ECHO)
    await _finish(services, tools, await _add_execution(services, tools, tool_id))
    for _ in range(2):
        report = await get_usage(tools.client, agent_id="agt_used")
        assert report["totals"]["tool_executions"] == 1
        (agent,) = report["by_agent"]
        assert (agent["agent_id"], agent["tool_executions"]) == ("agt_used", 1)
        await usage.roll_up(services)


async def test_counts_outlive_their_tool(tools: ToolClient, services: Services) -> None:
    tool_id = await tools.create("function", ECHO)
    await _finish(services, tools, await _add_execution(services, tools, tool_id))
    assert (await tools.client.delete(f"/v1/tools/{tool_id}")).status_code == 204
    assert await _count(tools) == 1


async def test_other_areas_count_their_executions(tools: ToolClient, services: Services) -> None:
    tenant_id = tools.client.tenant_id

    async def finish(execution_id: str) -> None:
        async with services.db.tx(tenant_id) as tx:
            await usage.count(tx, tenant_id, "workflow_executions", execution_id)

    execution_ids = [new_id("wex") for _ in range(50)]
    await asyncio.gather(
        *(finish(execution_id) for execution_id in execution_ids),
        *(usage.roll_up(services) for _ in range(5)),
    )
    await usage.roll_up(services)
    totals = (await get_usage(tools.client))["totals"]
    assert (totals["workflow_executions"], totals["tool_executions"]) == (50, 0)


async def test_a_count_of_a_deleted_tenant_does_not_stop_the_others(
    tools: ToolClient, services: Services
) -> None:
    async with services.db.tx("ten_deleted") as tx:
        await usage.count(tx, "ten_deleted", "tool_executions", new_id("exe"))
    tenant_id = tools.client.tenant_id
    async with services.db.tx(tenant_id) as tx:
        await usage.count(tx, tenant_id, "tool_executions", new_id("exe"))
    await usage.roll_up(services)
    assert (
        await run_sql(services, "SELECT 1 FROM usage_counts WHERE tenant_id LIKE 'ten_del%'") == []
    )
    assert await _count(tools) == 1


async def test_the_counts_of_a_tenant_are_deleted_with_it(world: World, services: Services) -> None:
    admin, tenant_id = await world.user("super_admin"), await world.tenant()
    for is_rolled in (True, False):
        async with services.db.tx(tenant_id) as tx:
            await usage.count(tx, tenant_id, "tool_executions", new_id("exe"))
        if is_rolled:
            await usage.roll_up(services)
    assert (await admin.delete(f"/api/v1/tenants/{tenant_id}")).status_code == 204
    for table in ("usage_counts", "usage_count_hours", "usage_count_days"):
        sql = f"SELECT 1 FROM {table} WHERE tenant_id = $1"
        assert await run_sql(services, sql, tenant_id) == []
