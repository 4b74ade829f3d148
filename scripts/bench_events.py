"""Measures deliveries against bare posts, and lists of a million rows against a thousand."""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from app import settings as configuration
from app.domain.agents.definition.events import AgentDeleted
from app.domain.platform.events import service as events
from tests.world import Client, World
from workers.main import main as worker_main

_ENDPOINTS = 100
_ROUNDS = 15
_SINGLES = 100
_MANY = 1_000_000
_FEW = 1_000
_REQUESTS = 40
_BODY = b'{"id":"evt_01k9x3m7e8c0v2q4r6t8w0y2a4","type":"agent.deleted","data":{"name":"x"}}'

Row = Callable[..., None]


def worker() -> None:
    worker_main(configuration.load(), ["deliveries"])


async def bench(world: World, ports: dict[str, int], row: Row) -> None:
    receiver = f"http://127.0.0.1:{ports['receiver']}"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await _fan_out(world, http, receiver, row)
        await _first_attempt(world, http, receiver, row)


async def _fan_out(world: World, http: aiohttp.ClientSession, receiver: str, row: Row) -> None:
    user = await world.user("tenant_admin")
    await _create_webhooks(user, receiver, _ENDPOINTS)
    ours, bare = [], []
    for number in range(_ROUNDS + 2):
        deliveries = await _delivery_rate(world, user, http, receiver)
        posts = await _post_rate(http, receiver)
        if number > 1:
            ours.append(deliveries)
            bare.append(posts)
    rate, bare_rate = statistics.median(ours), statistics.median(bare)
    share = rate / bare_rate
    row(f"one event to {_ENDPOINTS} endpoints", f"{rate:.0f}/s", f"{bare_rate:.0f}/s",
        f"{share:.0%}", "≥ 45 %", holds=share >= 0.45)  # fmt: skip


async def _create_webhooks(user: Client, receiver: str, count: int) -> None:
    for number in range(count):
        body = {"url": f"{receiver}/{number}", "events": ["agent.deleted"]}
        answer = await user.post("/api/v1/webhooks", body)
        answer.raise_for_status()


async def _emit(world: World, tenant_id: str) -> str:
    async with world.services.db.tx(tenant_id) as tx:
        event = AgentDeleted("agt_01k9x3m7e8c0v2q4r6t8w0y2a4", "Bench")
        return await events.emit(tx, event, tenant_id=tenant_id)


async def _delivery_rate(
    world: World, user: Client, http: aiohttp.ClientSession, receiver: str
) -> float:
    """Returns deliveries per second, from the commit to the last arrival."""
    event_id = await _emit(world, user.tenant_id)
    committed = time.time()
    times = await _wait_for_arrivals(http, receiver, event_id, _ENDPOINTS)
    return _ENDPOINTS / (max(times) - committed)


async def _wait_for_arrivals(
    http: aiohttp.ClientSession, receiver: str, event_id: str, count: int
) -> list[float]:
    times: list[float] = []
    while len(times) < count:
        # Polling uses the receiver's time as well.
        await asyncio.sleep(0.05)
        async with http.get(f"{receiver}/times") as response:
            arrivals: dict[str, list[float]] = await response.json(content_type=None)
        times += arrivals.get(event_id, [])
    return times


async def _post_rate(http: aiohttp.ClientSession, receiver: str) -> float:
    async def post(number: int) -> None:
        headers = {"Content-Type": "application/json", "webhook-id": "bare"}
        async with http.post(f"{receiver}/{number}", data=_BODY, headers=headers) as response:
            await response.read()

    started = time.perf_counter()
    await asyncio.gather(*(post(number) for number in range(_ENDPOINTS)))
    return _ENDPOINTS / (time.perf_counter() - started)


async def _first_attempt(
    world: World, http: aiohttp.ClientSession, receiver: str, row: Row
) -> None:
    user = await world.user("tenant_admin")
    await _create_webhooks(user, receiver, 1)
    waits = []
    for _ in range(_SINGLES):
        event_id = await _emit(world, user.tenant_id)
        committed = time.time()
        (arrived,) = await _wait_for_arrivals(http, receiver, event_id, 1)
        waits.append((arrived - committed) * 1000)
    p50 = statistics.median(waits)
    row("first attempt after the commit", f"{p50:.1f} ms", "", "p50", "≤ 50 ms", holds=p50 <= 50)


# A million rows

_EVENTS = """
INSERT INTO event_log (tenant_id, id, type, correlation_id, data, created_at)
SELECT $1::text, 'evt_' || $1::text || lpad(n::text, 8, '0'),
       CASE WHEN n % 1000 = 0 THEN 'agent.deleted' ELSE 'agent.chat.message' END,
       'cor_' || $1::text || (n / 10),
       '{"agent_id": "agt_1", "content": "What is the weather like?"}',
       now() - (n || ' seconds')::interval
FROM generate_series(0, $2::int - 1) n
"""
_DELIVERIES = """
INSERT INTO deliveries (tenant_id, id, webhook_id, event_id, event_type, status, attempt, work_id,
                        correlation_id, created_at)
SELECT $1::text, 'dlv_' || $1::text || lpad(n::text, 8, '0'), $3,
       'evt_' || $1::text || lpad(n::text, 8, '0'),
       'agent.chat.message', CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'delivered' END, 1, 'wrk',
       'cor_' || $1::text || (n / 10), now() - (n || ' seconds')::interval
FROM generate_series(0, $2::int - 1) n
"""


async def growth(world: World, row: Row) -> None:
    super_admin = await world.user("super_admin")
    few = await _insert_rows(world, _FEW)
    times_of_few = {**await _time_lists(*few), **await _time_lists_of_all(super_admin)}
    many = await _insert_rows(world, _MANY)
    times_of_many = {**await _time_lists(*many), **await _time_lists_of_all(super_admin)}
    for name, before in times_of_few.items():
        after = times_of_many[name]
        row(name, f"{after:.2f} ms", f"{before:.2f} ms", f"{after / before:.1f} times", "≤ 3 times",
            holds=after <= 3 * before)  # fmt: skip


async def _insert_rows(world: World, count: int) -> tuple[Client, str]:
    user = await world.user("tenant_admin")
    body = {"url": "http://127.0.0.1:9/", "events": ["agent.deleted"], "active": False}
    webhook_id: str = (await user.post("/api/v1/webhooks", body)).json()["id"]
    async with world.services.db.tx(user.tenant_id, autocommit=True) as tx:
        raw = await tx.raw()
        await raw.execute(_EVENTS, user.tenant_id, count, timeout=600)
        await raw.execute(_DELIVERIES, user.tenant_id, count, webhook_id, timeout=600)
        await raw.execute("VACUUM ANALYZE event_log, deliveries", timeout=600)
    return user, webhook_id


async def _time_lists(user: Client, webhook_id: str) -> dict[str, float]:
    log, sent = "/api/v1/event-log", f"/api/v1/webhooks/{webhook_id}/executions"
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "log, first page": (log, {}),
        "log, 40th page": (log, {"page": 40}),
        "log, frequent type": (log, {"event_type": "agent.chat.message"}),
        "log, rare type": (log, {"event_type": "agent.deleted"}),
        "log, since ten minutes": (log, {"from": _minutes_ago(10)}),
        "log, until ten minutes ago": (log, {"to": _minutes_ago(10)}),
        "log, one correlation id": (log, {"correlation_id": f"cor_{user.tenant_id}5"}),
        "deliveries, first page": (sent, {}),
        "deliveries, 40th page": (sent, {"page": 40}),
        "deliveries, delivered": (sent, {"status": "delivered"}),
        "deliveries, failed": (sent, {"status": "failed"}),
    }
    return {name: await time_list(user, path, query) for name, (path, query) in requests.items()}


async def _time_lists_of_all(super_admin: Client) -> dict[str, float]:
    log, rare = "/api/v1/event-log", {"event_type": "agent.deleted"}
    return {
        "log of all tenants": await time_list(super_admin, log, {}),
        "log of all, rare type": await time_list(super_admin, log, rare),
    }


async def time_list(
    user: Client, path: str, query: dict[str, Any], requests: int = _REQUESTS
) -> float:
    """Returns the median of the response times in milliseconds."""
    durations = []
    for _ in range(requests):
        started = time.perf_counter()
        response = await user.get(path, params=query)
        durations.append((time.perf_counter() - started) * 1000)
        response.raise_for_status()
    return statistics.median(durations)


def _minutes_ago(minutes: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60 * minutes))
