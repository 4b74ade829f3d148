"""Workers are killed while they deliver: every event arrives at every endpoint, and every stored
delivery is correct.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from app.domain.events import service as events
from app.domain.events.events import SystemTest
from app.main import create_app
from app.services import Services
from tests.faults.instance import fetch_value, start_stores, wait_for_count
from tests.peer import Handler, Peer
from tests.processes import Processes
from tests.stores import Stores
from tests.world import Client, World

ENDPOINTS = 20
EVENTS = 100
# Enough retries for deliveries whose worker is killed more than once.
RETRY_DELAYS = (0, *[1] * 9)
DELIVERED = "SELECT count(*) FROM deliveries WHERE status = 'delivered'"
WORKER = ("-m", "app.cli", "worker", "--queues", "deliveries,default")

pytestmark = pytest.mark.timeout(120)


class Endpoints(Peer):
    """Each path is an endpoint that responds after a short delay."""

    def __init__(self) -> None:
        super().__init__()
        # Requests by (endpoint, event id).
        self.received: Counter[tuple[str, str]] = Counter()

    def routes(self) -> dict[str, Handler]:
        return {"POST /{name}": self._receive}

    async def _receive(self, request: web.Request) -> web.Response:
        event_id = request.headers["X-Service-Event-Id"]
        await request.read()
        await asyncio.sleep(0.02)
        self.received[request.match_info["name"], event_id] += 1
        return web.Response()


@pytest.fixture
def lease_seconds() -> float:
    return 2.0


@pytest.fixture
async def own_stores(lease_seconds: float) -> AsyncIterator[Stores]:
    settings = {"lease_seconds": lease_seconds, "webhook_retry_delays": RETRY_DELAYS}
    async with start_stores(**settings) as stores:
        yield stores


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    endpoints = Endpoints()
    await endpoints.start()
    yield endpoints
    await endpoints.close()


@pytest.fixture
async def owner(own_stores: Stores, own_services: Services) -> AsyncIterator[Client]:
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


async def _emit_events(services: Services, owner: Client, count: int, event_ids: list[str]) -> None:
    """Appends the id of each event to the list once it is committed."""
    for number in range(count):
        async with services.db.tx(owner.tenant_id) as tx:
            event = SystemTest(f"number {number}")
            event_id = await events.emit(tx, event, tenant_id=owner.tenant_id)
        event_ids.append(event_id)
        await asyncio.sleep(0.01)


async def _wait_for_deliveries(services: Services, count: int) -> None:
    await wait_for_count(services, DELIVERED, count, 60)


async def test_two_thousand_deliveries_survive_killed_workers_and_a_flushed_redis(
    own_services: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    names = await _add_endpoints(owner, endpoints, ENDPOINTS)
    event_ids: list[str] = []
    processes.python(*WORKER)
    second = processes.python(*WORKER)
    emitter = asyncio.create_task(_emit_events(own_services, owner, EVENTS, event_ids))

    await _wait_for_deliveries(own_services, 200)
    processes.kill(second)
    await own_services.redis.flushall()
    third = processes.python(*WORKER)
    await _wait_for_deliveries(own_services, 800)
    processes.kill(third)
    processes.python(*WORKER)
    await emitter
    await own_services.redis.flushall()
    await _wait_for_deliveries(own_services, ENDPOINTS * EVENTS)

    assert len(event_ids) == EVENTS
    assert set(endpoints.received) == {(name, event) for name in names for event in event_ids}
    assert await fetch_value(own_services, "SELECT count(*) FROM deliveries") == ENDPOINTS * EVENTS
    unfinished = "SELECT count(*) FROM work WHERE lane IS NOT NULL AND state <> 'done'"
    assert await fetch_value(own_services, unfinished) == 0


async def test_each_attempt_is_stored_once_even_when_workers_are_killed(
    own_services: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    await _add_endpoints(owner, endpoints, 5)
    worker = processes.python(*WORKER)
    event_ids: list[str] = []
    emitter = asyncio.create_task(_emit_events(own_services, owner, 60, event_ids))
    for count in (50, 150):
        await _wait_for_deliveries(own_services, count)
        processes.kill(worker)
        worker = processes.python(*WORKER)
    await emitter
    await _wait_for_deliveries(own_services, 5 * 60)
    wrong = """
    SELECT count(*) FROM deliveries d
    WHERE attempt <> (SELECT count(*) FROM delivery_attempts a WHERE a.delivery_id = d.id)
       OR attempt <> 1 OR response_code <> 200 OR finished_at IS NULL OR error IS NOT NULL
    """
    assert await fetch_value(own_services, wrong) == 0
    assert sum(endpoints.received.values()) >= 5 * 60


@pytest.mark.parametrize("lease_seconds", [30.0])
async def test_a_worker_that_is_stopped_sends_nothing_twice(
    own_services: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    await _add_endpoints(owner, endpoints, ENDPOINTS)
    worker = processes.python(*WORKER)
    event_ids: list[str] = []
    emitter = asyncio.create_task(_emit_events(own_services, owner, 40, event_ids))
    await _wait_for_deliveries(own_services, 100)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 40) == 0
    leased = "SELECT count(*) FROM work WHERE state = 'leased'"
    assert await fetch_value(own_services, leased) == 0
    await emitter
    processes.python(*WORKER)
    await _wait_for_deliveries(own_services, ENDPOINTS * 40)
    assert set(endpoints.received.values()) == {1}
    assert len(endpoints.received) == ENDPOINTS * 40
