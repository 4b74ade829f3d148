"""Workers killed while they deliver: every event arrives at every endpoint, and every record says
so.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app import bootstrap, container
from app.domain.events import service as events
from app.domain.events.events import SystemTest
from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.peer import Handler, Peer
from tests.processes import Processes
from tests.stores import Stores
from tests.world import Client, World

ENDPOINTS = 20
EVENTS = 100
# Enough of them for a worker that is killed with all that it holds, more than once.
DELAYS = (0, *[1] * 9)

pytestmark = pytest.mark.timeout(120)


class Endpoints(Peer):
    """Each path is an endpoint; each takes a little while to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.got: Counter[tuple[str, str]] = Counter()

    def routes(self) -> dict[str, Handler]:
        return {"POST /{name}": self._take}

    async def _take(self, request: web.Request) -> web.Response:
        event_id = request.headers["X-Service-Event-Id"]
        await request.read()
        await asyncio.sleep(0.02)
        self.got[request.match_info["name"], event_id] += 1
        return web.Response()


@pytest.fixture
def lease_seconds() -> float:
    return 2.0


@pytest.fixture
async def own_stores(lease_seconds: float) -> AsyncIterator[Stores]:
    made = Stores()
    made.settings = msgspec.structs.replace(
        made.settings, lease_seconds=lease_seconds, webhook_retry_delays=DELAYS
    )
    try:
        await made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
async def own_parts(own_stores: Stores) -> AsyncIterator[Services]:
    made = container.build(own_stores.settings)
    await bootstrap.prepare(made.db, made.keyring, "enterprise")
    yield made
    await made.close()


@pytest.fixture
def processes(own_stores: Stores) -> Iterator[Processes]:
    made = Processes(own_stores.settings)
    yield made
    made.close()


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    made = Endpoints()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
async def owner(own_stores: Stores, own_parts: Services) -> AsyncIterator[Client]:
    app = create_app(own_stores.settings)
    yield await World(app).user("tenant_admin")
    await app.state.services.close()


async def _add_endpoints(owner: Client, endpoints: Endpoints, count: int) -> list[str]:
    names = [f"endpoint-{number}" for number in range(count)]
    for name in names:
        body = {"url": f"{endpoints.url}/{name}", "events": [SystemTest.type]}
        answer = await owner.post("/api/v1/webhooks", body)
        assert answer.status_code == 201, answer.text
    return names


async def _happen(services: Services, owner: Client, count: int, into: list[str]) -> None:
    """Recorded in the list only once it is committed."""
    for number in range(count):
        async with services.db.tx(owner.tenant_id) as tx:
            told = SystemTest(f"number {number}")
            event_id = await events.emit(tx, told, tenant_id=owner.tenant_id)
        into.append(event_id)
        await asyncio.sleep(0.01)


async def _value(services: Services, sql: str) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql)


async def _until(services: Services, sql: str, wanted: int, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while await _value(services, sql) < wanted:  # noqa: ASYNC110  # other processes write it
            await asyncio.sleep(0.05)


DELIVERED = "SELECT count(*) FROM deliveries WHERE status = 'delivered'"
_WORKER = ("-m", "app.cli", "worker", "--queues", "deliveries,default")


async def test_two_thousand_deliveries_survive_killed_workers_and_a_flushed_redis(
    own_parts: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    names = await _add_endpoints(owner, endpoints, ENDPOINTS)
    happened: list[str] = []
    processes.python(*_WORKER)
    doomed = processes.python(*_WORKER)
    happening = asyncio.create_task(_happen(own_parts, owner, EVENTS, happened))

    await _until(own_parts, DELIVERED, 200)
    processes.kill(doomed)
    await own_parts.redis.flushall()
    doomed = processes.python(*_WORKER)
    await _until(own_parts, DELIVERED, 800)
    processes.kill(doomed)
    processes.python(*_WORKER)
    await happening
    await own_parts.redis.flushall()
    await _until(own_parts, DELIVERED, ENDPOINTS * EVENTS)

    assert len(happened) == EVENTS
    assert set(endpoints.got) == {(name, event) for name in names for event in happened}
    assert await _value(own_parts, "SELECT count(*) FROM deliveries") == ENDPOINTS * EVENTS
    live = "SELECT count(*) FROM work WHERE lane IS NOT NULL AND state <> 'done'"
    assert await _value(own_parts, live) == 0


async def test_a_record_tells_of_each_attempt_once_whatever_was_killed(
    own_parts: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    await _add_endpoints(owner, endpoints, 5)
    worker = processes.python(*_WORKER)
    happened: list[str] = []
    happening = asyncio.create_task(_happen(own_parts, owner, 60, happened))
    for wanted in (50, 150):
        await _until(own_parts, DELIVERED, wanted)
        processes.kill(worker)
        worker = processes.python(*_WORKER)
    await happening
    await _until(own_parts, DELIVERED, 5 * 60)
    counted = """
    SELECT count(*) FROM deliveries d
    WHERE attempt <> (SELECT count(*) FROM delivery_attempts a WHERE a.delivery_id = d.id)
       OR attempt <> 1 OR response_code <> 200 OR finished_at IS NULL OR error IS NOT NULL
    """
    assert await _value(own_parts, counted) == 0
    assert sum(endpoints.got.values()) >= 5 * 60


@pytest.mark.parametrize("lease_seconds", [30.0])
async def test_a_worker_told_to_stop_sends_nothing_twice(
    own_parts: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    await _add_endpoints(owner, endpoints, ENDPOINTS)
    worker = processes.python(*_WORKER)
    happened: list[str] = []
    happening = asyncio.create_task(_happen(own_parts, owner, 40, happened))
    await _until(own_parts, DELIVERED, 100)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 40) == 0
    held = "SELECT count(*) FROM work WHERE state = 'leased'"
    assert await _value(own_parts, held) == 0
    await happening
    processes.python(*_WORKER)
    await _until(own_parts, DELIVERED, ENDPOINTS * 40)
    assert set(endpoints.got.values()) == {1}
    assert len(endpoints.got) == ENDPOINTS * 40
