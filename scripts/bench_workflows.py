"""Measures nodes of workflows per second and worker against jobs of the ledger."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable

from app import settings as configuration
from app.domain.automation.workflows import api as workflows
from db.session import ALL_TENANTS
from tests.world import Client, World
from workers.main import main as worker_main

_ROUNDS = 3
_EXECUTIONS = 200
# Two branches between a first and a last node, ten nodes in all.
_NODES = ["first", *(f"{side}{n}" for side in ("left", "right") for n in range(4)), "last"]
_LIMITS = "UPDATE tenants SET plan = 'enterprise', limits = $2::jsonb WHERE id = $1"
_OPEN = "SELECT count(*) FROM workflow_executions WHERE tenant_id = $1 AND finished_at IS NULL"
_UNCOMPLETED = """
SELECT count(*) FROM workflow_executions WHERE tenant_id = $1 AND status <> 'completed'
"""

Row = Callable[..., None]
LedgerRate = Callable[[], Awaitable[float]]


def worker() -> None:
    worker_main(configuration.load(), ["workflows"])


async def bench(world: World, row: Row, ledger_rate: LedgerRate) -> None:
    user = await world.user("tenant_admin")
    async with world.services.db.tx(ALL_TENANTS) as tx:
        limits = '{"concurrent_executions": 100000, "workflow_executions_per_minute": 1000000}'
        await (await tx.raw()).execute(_LIMITS, user.tenant_id, limits)
    workflow_id = await _create_workflow(user)
    ours, jobs = [], []
    for number in range(_ROUNDS + 1):
        nodes, ledger = await _node_rate(world, user.tenant_id, workflow_id), await ledger_rate()
        if number:
            ours.append(nodes)
            jobs.append(ledger)
    rate, bare = statistics.median(ours), statistics.median(jobs)
    share = rate / bare
    row("nodes of workflows, beside jobs", f"{rate:.0f}/s", f"{bare:.0f}/s", f"{share:.0%}",
        "≥ 50 %", holds=share >= 0.5)  # fmt: skip


async def _create_workflow(user: Client) -> str:
    nodes = [
        {"id": name, "type": "transform", "config": {"output": "{{ input.number }}"}}
        for name in _NODES
    ]
    edges = [
        {"from": source, "to": target}
        for side in ("left", "right")
        for source, target in itertools.pairwise(
            ["first", *(f"{side}{n}" for n in range(4)), "last"]
        )
    ]
    body = {"name": "Bench", "nodes": nodes, "edges": edges}
    answer = await user.post("/api/v1/workflows", body)
    answer.raise_for_status()
    workflow_id: str = answer.json()["data"]["id"]
    (await user.post(f"/api/v1/workflows/{workflow_id}/publish")).raise_for_status()
    return workflow_id


async def _node_rate(world: World, tenant_id: str, workflow_id: str) -> float:
    """From the first acceptance to the end of the last execution."""
    services, numbers = world.services, itertools.count()
    started = time.perf_counter()

    async def accept() -> None:
        while (number := next(numbers)) < _EXECUTIONS:
            new = workflows.NewExecution(
                tenant_id=tenant_id,
                workflow_id=workflow_id,
                input={"number": number},
                trigger_type="event",
            )
            async with services.db.tx(tenant_id) as tx:
                await workflows.accept(tx, services, new)

    await asyncio.gather(*(accept() for _ in range(8)))
    while await _count(world, tenant_id, _OPEN):  # noqa: ASYNC110  # a worker writes
        await asyncio.sleep(0.02)
    if await _count(world, tenant_id, _UNCOMPLETED):
        raise RuntimeError("an execution has not completed")
    return _EXECUTIONS * len(_NODES) / (time.perf_counter() - started)


async def _count(world: World, tenant_id: str, sql: str) -> int:
    async with world.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int = await (await tx.raw()).fetchval(sql, tenant_id)
    return count
