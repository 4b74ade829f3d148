"""Executions without a worker, and with workers that die."""

import asyncio
from typing import Any

import pytest

from app.areas import AREAS
from app.domain.agents.tools import executions, queries
from app.jobs.work import WorkKind
from app.services import Services
from db import ledger
from db.session import ALL_TENANTS
from tests.agents.tools.execution_requests import (
    ECHO,
    fetch_value,
    get_tool,
    list_executions,
    request_run,
)
from tests.agents.tools.factories import ToolClient, create_tool_client
from tests.agents.tools.site import Site
from tests.assertions import refused
from tests.world import World
from workers.main import WorkerProcess


@pytest.fixture
async def tools(world: World) -> ToolClient:
    return await create_tool_client(world)


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves runs to a queue that no worker of this test process serves."""
    kind = WorkKind("tools.run", "speech", retry_delays=(0, 0), awaited=True)
    monkeypatch.setitem(AREAS.work_kinds, kind.name, kind)
    monkeypatch.setattr(executions, "RUN_TOOL", kind)


async def test_a_run_that_no_worker_takes_ends_as_a_timeout(
    tools: ToolClient, services: Services, no_worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "QUEUE_SECONDS", 0.3)
    tool_id = await tools.create("function", {**ECHO, "timeout_ms": 50})
    data = await tools.run(tool_id)
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert "no worker ran it" in data["error"]["message"]
    assert "share of 6 runs" in data["error"]["message"]
    assert [record["id"] for record in await list_executions(tools, tool_id, status="timeout")] == [
        data["execution_id"]
    ]
    state = "SELECT state FROM work WHERE ref_id = $1"
    assert await fetch_value(services, state, data["execution_id"]) == "cancelled"


async def test_a_worker_that_comes_too_late_runs_nothing(
    tools: ToolClient,
    services: Services,
    site: Site,
    worker: WorkerProcess,
    no_worker: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executions, "QUEUE_SECONDS", 0.1)
    tool_id = await tools.create("webhook", {"url": site.url, "timeout_ms": 50})
    data = await tools.run(tool_id)
    work = "SELECT id FROM work WHERE ref_id = $1"
    await worker.runner.run(await fetch_value(services, work, data["execution_id"]))
    assert site.requests == []
    assert (await get_tool(tools, tool_id))["usage_count"] == 1


async def _wait_for_execution(services: Services, tool_id: str) -> tuple[str, str]:
    """Waits until the tool has a run; returns the ids of the run and of its work."""
    async with asyncio.timeout(10):
        while True:
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                sql = "SELECT id, work_id FROM tool_executions WHERE tool_id = $1"
                row = await (await tx.raw()).fetchrow(sql, tool_id)
            if row is not None:
                return row["id"], row["work_id"]
            await asyncio.sleep(0.01)


async def _abandon_execution(
    tools: ToolClient, services: Services, execution_id: str, work_id: str
) -> None:
    """Leaves the run as a worker does that is killed after it started the run."""
    async with services.db.tx(ALL_TENANTS) as tx:
        assert await ledger.claim(await tx.raw(), work_id, "lea_dead", 0.0) is not None
        assert await queries.start_execution(tx, tools.client.tenant_id, execution_id) is not None


async def _run_after_worker_death(
    tools: ToolClient,
    services: Services,
    worker: WorkerProcess,
    tool_id: str,
    arguments: dict[str, Any],
) -> dict[str, Any]:
    run_task = asyncio.create_task(tools.run(tool_id, arguments))
    execution_id, work_id = await _wait_for_execution(services, tool_id)
    await _abandon_execution(tools, services, execution_id, work_id)
    await worker.runner.run(work_id)
    data = await run_task
    assert data["execution_id"] == execution_id
    return data


async def test_a_function_whose_worker_died_is_run_again(
    tools: ToolClient, services: Services, worker: WorkerProcess, no_worker: None
) -> None:
    tool_id = await tools.create("function", ECHO)
    data = await _run_after_worker_death(tools, services, worker, tool_id, {"a": 1})
    assert (data["status"], data["output"]) == ("completed", {"a": 1})
    assert (await get_tool(tools, tool_id))["usage_count"] == 1


async def test_a_call_with_effects_whose_worker_died_is_not_repeated(
    tools: ToolClient,
    services: Services,
    worker: WorkerProcess,
    site: Site,
    no_worker: None,
    subtests: pytest.Subtests,
) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        with subtests.test(method=method):
            site.reset()
            tool_id = await tools.create("webhook", {"url": site.url, "method": method})
            data = await _run_after_worker_death(tools, services, worker, tool_id, {})
            assert data["status"] == "failed"
            assert "not repeated because it may have had effects" in data["error"]["message"]
            assert site.requests == []


async def test_a_call_that_only_reads_is_repeated_when_its_worker_died(
    tools: ToolClient, services: Services, worker: WorkerProcess, site: Site, no_worker: None
) -> None:
    tool_id = await tools.create("webhook", {"url": site.url, "method": "GET"})
    data = await _run_after_worker_death(tools, services, worker, tool_id, {})
    assert data["status"] == "completed"
    assert len(site.requests) == 1


async def test_a_run_whose_every_worker_died_ends_as_failed(
    tools: ToolClient, services: Services, worker: WorkerProcess, no_worker: None
) -> None:
    tool_id = await tools.create("function", ECHO)
    run_task = asyncio.create_task(tools.run(tool_id))
    execution_id, work_id = await _wait_for_execution(services, tool_id)
    for _ in range(3):
        await _abandon_execution(tools, services, execution_id, work_id)
    await worker.runner.run(work_id)
    data = await run_task
    assert (data["status"], data["error"]["code"]) == ("failed", "runtime_error")


async def test_a_worker_that_lost_its_run_to_another_changes_nothing(
    tools: ToolClient, services: Services, worker: WorkerProcess, site: Site, no_worker: None
) -> None:
    tool_id = await tools.create("webhook", {"url": site.url})
    run_task = asyncio.create_task(tools.run(tool_id))
    execution_id, work_id = await _wait_for_execution(services, tool_id)
    runs = [asyncio.create_task(worker.runner.run(work_id)) for _ in range(5)]
    await asyncio.gather(*runs)
    assert (await run_task)["status"] == "completed"
    assert len(site.requests) == 1
    count = "SELECT count(*) FROM tool_executions WHERE id = $1"
    assert await fetch_value(services, count, execution_id) == 1


async def test_a_run_of_a_tool_that_is_deleted_meanwhile_is_not_found(
    tools: ToolClient, services: Services, worker: WorkerProcess, no_worker: None
) -> None:
    tool_id = await tools.create("function", ECHO)
    run_task = asyncio.create_task(request_run(tools, tool_id))
    _, work_id = await _wait_for_execution(services, tool_id)
    assert (await tools.client.delete(f"/v1/tools/{tool_id}")).status_code == 204
    await worker.runner.run(work_id)
    refused(await run_task, 404, "tool_not_found")


async def test_the_ledger_contains_ids_and_no_input(
    tools: ToolClient, services: Services, no_worker: None
) -> None:
    tool_id = await tools.create("function", ECHO)
    run_task = asyncio.create_task(tools.run(tool_id, {"pin": "planted-pin"}))
    execution_id, work_id = await _wait_for_execution(services, tool_id)
    text = await fetch_value(services, "SELECT w::text FROM work w WHERE id = $1", work_id)
    assert execution_id in text
    assert "planted-pin" not in text
    await tools.client.delete(f"/v1/tools/{tool_id}")
    run_task.cancel()
    await asyncio.gather(run_task, return_exceptions=True)
