"""Measures a function tool through the API against its executor within this process."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from app import settings as configuration
from app.domain.agents.tools import execute, queries
from app.domain.agents.tools.executors.protocol import Auth
from app.domain.agents.tools.run_plan import build_plan
from tests.world import Client, World
from workers.main import main as worker_main

_RUNS = 80
_WARM_UP_RUNS = 5
_BAR_MS = 15
_INPUT = {"numbers": [1, 2, 3]}
_TOOL = {
    "name": "Add numbers",
    "category": "automation",
    "tool_type": "function",
    "auth_type": "none",
    "config": {"runtime": "python", "code": "def main(input):\n    return sum(input['numbers'])\n"},
}

Row = Callable[..., None]


def worker() -> None:
    worker_main(configuration.load(), ["tools"])


async def bench(world: World, port: int, row: Row) -> None:
    user = await world.user("tenant_admin")
    answer = await user.post("/v1/tools", _TOOL)
    tool_id = answer.json()["data"]["id"]
    await world.services.sandbox.start()
    api_times: list[float] = []
    direct_times: list[float] = []
    async with aiohttp.ClientSession() as http:
        for number in range(_RUNS + _WARM_UP_RUNS):
            api = await _time_api(http, port, user, tool_id)
            direct = await _time_executor(world, user, tool_id)
            if number >= _WARM_UP_RUNS:
                api_times.append(api)
                direct_times.append(direct)
    ours, bare = statistics.median(api_times), statistics.median(direct_times)
    cost = ours - bare
    row("function tool through the API, p50", f"{ours:.1f} ms", f"{bare:.1f} ms", f"{cost:.1f} ms",
        f"≤ {_BAR_MS} ms", holds=cost <= _BAR_MS)  # fmt: skip


async def _time_api(http: aiohttp.ClientSession, port: int, user: Client, tool_id: str) -> float:
    started = time.perf_counter()
    url = f"http://127.0.0.1:{port}/v1/tools/{tool_id}/execute"
    headers = {"Authorization": f"Bearer {user.token}"}
    async with http.post(url, json={"input": _INPUT}, headers=headers) as response:
        body: dict[str, Any] = await response.json()
    milliseconds = (time.perf_counter() - started) * 1000
    if body["data"].get("output") != sum(_INPUT["numbers"]):
        raise RuntimeError(f"the tool did not work: {body}")
    return milliseconds


async def _time_executor(world: World, user: Client, tool_id: str) -> float:
    services = world.services
    async with services.db.tx(user.tenant_id, autocommit=True) as tx:
        tool = await queries.load_tool(tx, user.tenant_id, tool_id, None)
    if tool is None:
        raise RuntimeError("the tool does not exist")
    plan = build_plan(tool, None, services.egress.guard)
    started = time.perf_counter()
    await execute.run_executor(services, user.tenant_id, plan, dict(_INPUT), Auth())
    return (time.perf_counter() - started) * 1000
