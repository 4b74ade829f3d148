"""Deliveries beside bare posts, and lists of a million rows beside lists of a thousand."""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from app import settings as configuration
from app.domain.agents.events import AgentDeleted
from app.domain.events import service as events
from tests.world import Client, World
from workers.main import main as worker_main

_ENDPOINTS = 100
_ROUNDS = 15
_SINGLES = 100
_MANY = 1_000_000
_FEW = 1_000
_ASKED = 40
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
    await _webhooks(user, receiver, _ENDPOINTS)
    ours, bare = [], []
    for number in range(_ROUNDS + 2):
        one, other = await _one_event(world, user, http, receiver), await _posts(http, receiver)
        if number > 1:
            ours.append(one)
            bare.append(other)
    rate, top = statistics.median(ours), statistics.median(bare)
    share = rate / top
    row(f"one event to {_ENDPOINTS} endpoints", f"{rate:.0f}/s", f"{top:.0f}/s", f"{share:.0%}",
        "≥ 40 %", holds=share >= 0.4)  # fmt: skip


async def _webhooks(user: Client, receiver: str, count: int) -> None:
    for number in range(count):
        body = {"url": f"{receiver}/{number}", "events": ["agent.deleted"]}
        answer = await user.post("/api/v1/webhooks", body)
        answer.raise_for_status()


async def _emit(world: World, tenant_id: str) -> str:
    async with world.services.db.tx(tenant_id) as tx:
        gone = AgentDeleted("agt_01k9x3m7e8c0v2q4r6t8w0y2a4", "Bench")
        return await events.emit(tx, gone, tenant_id=tenant_id)


async def _one_event(
    world: World, user: Client, http: aiohttp.ClientSession, receiver: str
) -> float:
    """Deliveries a second, from the commit to the last one's arrival."""
    event_id = await _emit(world, user.tenant_id)
    committed = time.time()
    found = await _arrivals(http, receiver, event_id, _ENDPOINTS)
    return _ENDPOINTS / (max(found) - committed)


async def _arrivals(
    http: aiohttp.ClientSession, receiver: str, event_id: str, count: int
) -> list[float]:
    found: list[float] = []
    while len(found) < count:
        # Asking takes the receiver's time, too.
        await asyncio.sleep(0.05)
        async with http.get(f"{receiver}/times") as answer:
            told: dict[str, list[float]] = await answer.json(content_type=None)
        found += told.get(event_id, [])
    return found


async def _posts(http: aiohttp.ClientSession, receiver: str) -> float:
    async def post(number: int) -> None:
        headers = {"Content-Type": "application/json", "webhook-id": "bare"}
        async with http.post(f"{receiver}/{number}", data=_BODY, headers=headers) as answer:
            await answer.read()

    started = time.perf_counter()
    await asyncio.gather(*(post(number) for number in range(_ENDPOINTS)))
    return _ENDPOINTS / (time.perf_counter() - started)


async def _first_attempt(
    world: World, http: aiohttp.ClientSession, receiver: str, row: Row
) -> None:
    user = await world.user("tenant_admin")
    await _webhooks(user, receiver, 1)
    waits = []
    for _ in range(_SINGLES):
        event_id = await _emit(world, user.tenant_id)
        committed = time.time()
        (arrived,) = await _arrivals(http, receiver, event_id, 1)
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
    boss = await world.user("super_admin")
    few = await _filled(world, _FEW)
    of_few = {**await _costs(*few), **await _costs_of_all(boss)}
    many = await _filled(world, _MANY)
    of_many = {**await _costs(*many), **await _costs_of_all(boss)}
    for name, before in of_few.items():
        after = of_many[name]
        row(name, f"{after:.2f} ms", f"{before:.2f} ms", f"{after / before:.1f} times", "≤ 3 times",
            holds=after <= 3 * before)  # fmt: skip


async def _filled(world: World, count: int) -> tuple[Client, str]:
    user = await world.user("tenant_admin")
    body = {"url": "http://127.0.0.1:9/", "events": ["agent.deleted"], "active": False}
    webhook_id: str = (await user.post("/api/v1/webhooks", body)).json()["id"]
    async with world.services.db.tx(user.tenant_id, autocommit=True) as tx:
        raw = await tx.raw()
        await raw.execute(_EVENTS, user.tenant_id, count, timeout=600)
        await raw.execute(_DELIVERIES, user.tenant_id, count, webhook_id, timeout=600)
        await raw.execute("VACUUM ANALYZE event_log, deliveries", timeout=600)
    return user, webhook_id


async def _costs(user: Client, webhook_id: str) -> dict[str, float]:
    log, sent = "/api/v1/event-log", f"/api/v1/webhooks/{webhook_id}/executions"
    asked: dict[str, tuple[str, dict[str, Any]]] = {
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
    return {name: await _cost(user, path, query) for name, (path, query) in asked.items()}


async def _costs_of_all(boss: Client) -> dict[str, float]:
    """Whoever sees all tenants."""
    log = "/api/v1/event-log"
    return {
        "log of all tenants": await _cost(boss, log, {}),
        "log of all, rare type": await _cost(boss, log, {"event_type": "agent.deleted"}),
    }


async def _cost(user: Client, path: str, query: dict[str, Any]) -> float:
    took = []
    for _ in range(_ASKED):
        started = time.perf_counter()
        answer = await user.get(path, params=query)
        took.append((time.perf_counter() - started) * 1000)
        answer.raise_for_status()
    return statistics.median(took)


def _minutes_ago(minutes: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60 * minutes))
