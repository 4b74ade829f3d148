"""Tool executions while workers are killed and Redis is flushed."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import psutil
import pytest
from aiohttp import web

from app.services import Services
from tests.assertions import until
from tests.database import run_sql
from tests.faults.instance import fetch_value
from tests.lengths import rounds
from tests.peer import answering
from tests.preloaded import PreloadedProcess
from tests.processes import Processes
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import Client, World

WORKER = """
import os
from app import settings
from workers import main
main.CONCURRENCY["tools"] = 4
# Imports for tools of other types than these.
main._warm_up = lambda queues: None
main.main(settings.load(os.environ), ["tools"])
"""
EXECUTIONS = rounds(6, 40)
SLOW = "import time\ndef main(input):\n    time.sleep(0.15)\n    return input['number'] * 2\n"
# Otherwise the next worker would run them again.
CANCEL_FUNCTIONS = """
UPDATE work SET state = 'cancelled', finished_at = now()
WHERE id IN (
    SELECT work_id FROM tool_executions JOIN tools ON tools.id = tool_id
    WHERE tools.tenant_id = $1 AND tool_type = 'function'
)
"""
ENDLESS = "import time\ndef main(input):\n    time.sleep(60)\n"

pytestmark = pytest.mark.timeout(120)


class Workers(Processes):
    def start(self) -> PreloadedProcess:
        return self.python("-c", WORKER)


@pytest.fixture
def workers(own_stores: Stores) -> Iterator[Workers]:
    with closing(Workers(own_stores.settings)) as workers:
        yield workers


@pytest.fixture
async def client(own_world: World) -> Client:
    return await own_world.user("tenant_admin")


async def _create_tool(client: Client, tool_type: str, config: dict[str, Any]) -> str:
    body = {
        "name": "Tool",
        "category": "custom",
        "tool_type": tool_type,
        "auth_type": "none",
        "config": config,
    }
    answer = await client.post("/v1/tools", body)
    assert answer.status_code == 201, answer.text
    tool_id: str = answer.json()["data"]["id"]
    return tool_id


async def _execute_tool(client: Client, tool_id: str, **values: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/tools/{tool_id}/execute", {"input": values}, timeout=90)
    assert answer.status_code == 200, answer.text
    execution: dict[str, Any] = answer.json()["data"]
    return execution


def _are_done(executions: list[asyncio.Task[Any]], count: int) -> bool:
    return sum(execution.done() for execution in executions) >= count


async def test_functions_return_their_result_although_workers_are_killed(
    own_services: Services, workers: Workers, client: Client
) -> None:
    """A function has no effect but its result, so it is run again until there is one."""
    tool_id = await _create_tool(client, "function", {"runtime": "python", "code": SLOW})
    processes = [workers.start(), workers.start()]
    executions = [
        asyncio.create_task(_execute_tool(client, tool_id, number=number))
        for number in range(EXECUTIONS)
    ]
    for count in range(EXECUTIONS // 4, EXECUTIONS * 3 // 4, EXECUTIONS // rounds(2, 8)):
        await until(partial(_are_done, executions, count), 60)
        workers.kill(processes.pop(0))
        await own_services.redis.flushall()
        processes.append(workers.start())
    results = [await execution for execution in executions]
    outputs = [result["output"] for result in results]
    assert outputs == [number * 2 for number in range(EXECUTIONS)]
    answer = await client.get(f"/v1/tools/{tool_id}/executions", params={"per_page": 100})
    ids = Counter(row["id"] for row in answer.json()["data"])
    assert ids == Counter(result["execution_id"] for result in results)
    retried = f"SELECT count(*) FROM work WHERE tenant_id = '{client.tenant_id}' AND attempt > 1"
    assert await fetch_value(own_services, retried) > 0
    # Each execution counts once, however often it was started.
    report = (await client.get("/api/v1/usage")).json()
    assert report["totals"]["tool_executions"] == EXECUTIONS


async def test_a_webhook_is_never_sent_twice_and_a_sandbox_ends_when_a_worker_is_killed(
    own_services: Services, workers: Workers, client: Client
) -> None:
    received: list[str] = []
    killed = asyncio.Event()

    async def wait_for_kill(request: web.Request) -> web.Response:
        received.append((await request.json())["number"])
        await killed.wait()
        return web.json_response({})

    async with answering(wait_for_kill) as url:
        tool_id = await _create_tool(client, "webhook", {"url": url, "timeout_ms": 20000})
        worker = workers.start()
        execution = asyncio.create_task(_execute_tool(client, tool_id, number="one"))
        children = await _start_endless(client, worker)
        await until(lambda: received, 30)
        workers.kill(worker)
        await until(lambda: not any(map(_is_running, children)))
        await run_sql(own_services, CANCEL_FUNCTIONS, client.tenant_id)
        killed.set()
        async with run_worker(own_services.settings, "tools", slots=2):
            result = await execution
    assert received == ["one"]
    assert (result["status"], result["error"]["code"]) == ("failed", "runtime_error")
    assert "not repeated" in result["error"]["message"]


async def _start_endless(client: Client, worker: PreloadedProcess) -> list[psutil.Process]:
    """Returns the processes below the worker once one of them runs a function."""
    config = {"runtime": "python", "code": ENDLESS, "timeout_ms": 30000}
    tool_id = await _create_tool(client, "function", config)
    execution = asyncio.create_task(_execute_tool(client, tool_id))
    parent = psutil.Process(worker.pid)
    await until(lambda: any(child.name() == "python3" for child in _list_children(parent)), 30)
    execution.cancel()
    return _list_children(parent)


def _is_running(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != "zombie")


def _list_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []
