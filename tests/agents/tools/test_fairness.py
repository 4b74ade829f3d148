"""Long runs of one tenant leave room on a worker for the runs of others."""

import asyncio

from app.domain.agents.tools.executions import RUN_TOOL
from tests.agents.tools.execution_requests import ECHO, request_run
from tests.agents.tools.factories import create_tool_client
from tests.assertions import until
from tests.world import World
from workers.main import CONCURRENCY, WorkerProcess

_SHARE = RUN_TOOL.per_tenant or 0
_LONG = {
    "runtime": "python",
    "code": "import time\ndef main(input):\n    time.sleep(4)\n",
    "timeout_ms": 20_000,
}


def test_the_share_of_a_tenant_is_at_most_half_of_the_slots() -> None:
    assert 0 < _SHARE * 2 <= CONCURRENCY["tools"]


async def test_a_short_run_does_not_wait_for_the_long_runs_of_another_tenant(
    world: World, worker: WorkerProcess
) -> None:
    busy, other = await create_tool_client(world), await create_tool_client(world)
    long_tool, short_tool = (
        await busy.create("function", _LONG),
        await other.create("function", ECHO),
    )
    scanner, busy_id = worker.scanners["tools"], busy.client.tenant_id
    count = 2 * CONCURRENCY["tools"]
    runs = [asyncio.create_task(request_run(busy, long_tool)) for _ in range(count)]
    try:
        await until(lambda: scanner._tenants[busy_id] == _SHARE)
        for number in range(3):
            assert await other.get_output(short_tool, {"number": number}) == {"number": number}
        assert scanner._tenants[busy_id] == _SHARE
        assert not any(run.done() for run in runs)
    finally:
        # Those that wait end with it.
        await busy.client.delete(f"/v1/tools/{long_tool}")
        await asyncio.gather(*runs, return_exceptions=True)
