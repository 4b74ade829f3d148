"""Runs of tools with real workers that are killed in the middle, and Redis flushed under them."""

import asyncio
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import psutil
import pytest
from aiohttp import web
from litestar import Litestar

from app import bootstrap
from app.main import create_app
from app.services import Services
from tests.asking import until
from tests.peer import answering
from tests.processes import Processes
from tests.stores import Stores
from tests.world import Client, World

WORKER = """
import os
from app import settings
from workers import main
main.main(settings.load(os.environ), ["tools"])
"""
RUNS = 40
SLOW = "import time\ndef main(given):\n    time.sleep(0.15)\n    return given['number'] * 2\n"
ENDLESS = "import time\ndef main(given):\n    time.sleep(60)\n"

pytestmark = pytest.mark.timeout(120)


class Workers(Processes):
    def start(self) -> subprocess.Popen[bytes]:
        return self.python("-c", WORKER)


@pytest.fixture(scope="module")
async def own_stores() -> AsyncIterator[Stores]:
    made = Stores()
    made.settings = msgspec.structs.replace(made.settings, lease_seconds=1.0)
    try:
        await made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
async def own_app(own_stores: Stores) -> AsyncIterator[Litestar]:
    made = create_app(own_stores.settings)
    services: Services = made.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    yield made
    await services.close()


@pytest.fixture
def workers(own_stores: Stores) -> Iterator[Workers]:
    made = Workers(own_stores.settings)
    yield made
    made.close()


@pytest.fixture
async def client(own_app: Litestar) -> Client:
    return await World(own_app).user("tenant_admin")


async def _tool(client: Client, tool_type: str, config: dict[str, Any]) -> str:
    body = {
        "name": "Tool",
        "category": "custom",
        "tool_type": tool_type,
        "auth_type": "none",
        "config": config,
    }
    answer = await client.post("/v1/tools", body)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["data"]["id"]
    return found


async def _run(client: Client, tool_id: str, **given: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/tools/{tool_id}/execute", {"input": given}, timeout=90)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


async def test_functions_end_with_their_result_whoever_is_killed(
    own_stores: Stores, own_app: Litestar, workers: Workers, client: Client
) -> None:
    """Nothing leaves a function's sandbox but its answer, so it runs again until there is one."""
    tool_id = await _tool(client, "function", {"runtime": "python", "code": SLOW})
    running = [workers.start(), workers.start()]
    asked = [asyncio.create_task(_run(client, tool_id, number=number)) for number in range(RUNS)]
    services: Services = own_app.state.services
    for _ in range(4):
        await asyncio.sleep(0.5)
        workers.kill(running.pop(0))
        await services.redis.flushall()
        running.append(workers.start())
    results = [await task for task in asked]
    assert [one["output"] for one in results] == [number * 2 for number in range(RUNS)]
    listed = await client.get(f"/v1/tools/{tool_id}/executions", params={"per_page": 100})
    ids = Counter(one["id"] for one in listed.json()["data"])
    assert ids == Counter(one["execution_id"] for one in results)


async def test_a_webhook_is_never_sent_twice_because_a_worker_died(
    workers: Workers, client: Client
) -> None:
    seen: list[str] = []
    died = asyncio.Event()

    async def slowly(request: web.Request) -> web.Response:
        seen.append((await request.json())["number"])
        await died.wait()
        return web.json_response({})

    async with answering(slowly) as url:
        tool_id = await _tool(client, "webhook", {"url": url, "timeout_ms": 20000})
        first = workers.start()
        asked = asyncio.create_task(_run(client, tool_id, number="one"))
        await until(lambda: seen, 30)
        workers.kill(first)
        died.set()
        workers.start()
        result = await asked
    assert seen == ["one"]
    assert (result["status"], result["error"]["code"]) == ("failed", "runtime_error")
    assert "not repeated" in result["error"]["message"]


async def test_what_a_killed_worker_ran_in_its_sandbox_ends_with_it(
    workers: Workers, client: Client
) -> None:
    config = {"runtime": "python", "code": ENDLESS, "timeout_ms": 30000}
    tool_id = await _tool(client, "function", config)
    worker = workers.start()
    asked = asyncio.create_task(_run(client, tool_id))
    inside = psutil.Process(worker.pid)
    await until(lambda: any(one.name() == "python3" for one in _below(inside)), 30)
    caged = _below(inside)
    workers.kill(worker)
    await until(lambda: not any(one.is_running() and one.status() != "zombie" for one in caged))
    asked.cancel()


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []
