"""Workers are killed while they deliver: every event arrives at every endpoint, and every stored
delivery is correct.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing

import msgspec
import pytest
from aiohttp import web

from app.domain.platform.events import service as events
from app.domain.platform.events.events import SystemTest
from app.services import Services
from tests.assertions import until
from tests.faults.instance import fetch_value, wait_for_count
from tests.lengths import rounds
from tests.peer import Handler, Peer
from tests.processes import Processes
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import Client, World

ENDPOINTS = rounds(4, 20)
EVENTS = rounds(12, 100)
DELIVERED = "SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND status = 'delivered'"
WORKER = ("-m", "app.cli", "worker", "--queues", "deliveries,default")

pytestmark = pytest.mark.timeout(120)


class Endpoints(Peer):
    """Each path is an endpoint that responds after a short delay."""

    def __init__(self) -> None:
        super().__init__()
        # Requests by (endpoint, event id).
        self.received: Counter[tuple[str, str]] = Counter()
        # Requests that wait for `hold`.
        self.waiting = 0
        self.hold = asyncio.Event()
        self.hold.set()

    def routes(self) -> dict[str, Handler]:
        return {"POST /{name}": self._receive}

    async def _receive(self, request: web.Request) -> web.Response:
        event_id = request.headers["X-Service-Event-Id"]
        await request.read()
        await asyncio.sleep(0.02)
        self.waiting += 1
        await self.hold.wait()
        self.waiting -= 1
        self.received[request.match_info["name"], event_id] += 1
        return web.Response()


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    endpoints = Endpoints()
    await endpoints.start()
    yield endpoints
    await endpoints.close()


@pytest.fixture
async def owner(own_world: World) -> Client:
    return await own_world.user("tenant_admin")


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


async def _wait_for_deliveries(services: Services, owner: Client, count: int) -> None:
    await wait_for_count(services, DELIVERED, count, owner.tenant_id, seconds=60)


async def _check_deliveries(services: Services, owner: Client) -> None:
    """Each delivery was stored as sent, with one attempt."""
    wrong = """
    SELECT count(*) FROM deliveries d
    WHERE tenant_id = $1
      AND (attempt <> (SELECT count(*) FROM delivery_attempts a WHERE a.delivery_id = d.id)
        OR attempt <> 1 OR response_code <> 200 OR finished_at IS NULL OR error IS NOT NULL)
    """
    assert await fetch_value(services, wrong, owner.tenant_id) == 0
    total = "SELECT count(*) FROM deliveries WHERE tenant_id = $1"
    assert await fetch_value(services, total, owner.tenant_id) == ENDPOINTS * EVENTS
    unfinished = """
    SELECT count(*) FROM work WHERE tenant_id = $1 AND lane IS NOT NULL AND state <> 'done'
    """
    assert await fetch_value(services, unfinished, owner.tenant_id) == 0


async def test_deliveries_survive_killed_workers_and_a_flushed_redis_and_are_stored_once(
    own_services: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    names = await _add_endpoints(owner, endpoints, ENDPOINTS)
    event_ids: list[str] = []
    total = ENDPOINTS * EVENTS
    processes.python(*WORKER)
    second = processes.python(*WORKER)
    emitter = asyncio.create_task(_emit_events(own_services, owner, EVENTS, event_ids))

    await _wait_for_deliveries(own_services, owner, total // 10)
    processes.kill(second)
    await own_services.redis.flushall()
    third = processes.python(*WORKER)
    await _wait_for_deliveries(own_services, owner, total * 4 // 10)
    processes.kill(third)
    await emitter
    await own_services.redis.flushall()
    await _wait_for_deliveries(own_services, owner, total)

    assert len(event_ids) == EVENTS
    assert set(endpoints.received) == {(name, event) for name in names for event in event_ids}
    await _check_deliveries(own_services, owner)


async def test_what_a_killed_worker_was_sending_is_sent_and_stored_once_by_another(
    own_services: Services, processes: Processes, owner: Client, endpoints: Endpoints
) -> None:
    """It is the only worker, and each of its requests waits for a response when it is killed."""
    names = await _add_endpoints(owner, endpoints, ENDPOINTS)
    event_ids: list[str] = []
    endpoints.hold.clear()
    worker = processes.python(*WORKER)
    await _emit_events(own_services, owner, EVENTS, event_ids)
    await until(lambda: endpoints.waiting >= ENDPOINTS, 60)
    processes.kill(worker)
    endpoints.hold.set()
    async with run_worker(own_services.settings, "deliveries", "default", slots=4):
        await _wait_for_deliveries(own_services, owner, ENDPOINTS * EVENTS)
    assert set(endpoints.received) == {(name, event) for name in names for event in event_ids}
    assert endpoints.received.total() > ENDPOINTS * EVENTS
    await _check_deliveries(own_services, owner)


async def test_a_worker_that_is_stopped_sends_nothing_twice(
    own_stores: Stores, own_services: Services, owner: Client, endpoints: Endpoints
) -> None:
    settings = msgspec.structs.replace(own_stores.settings, lease_seconds=30.0)
    events_count = rounds(10, 40)
    await _add_endpoints(owner, endpoints, ENDPOINTS)
    with closing(Processes(settings)) as processes:
        worker = processes.python(*WORKER)
        event_ids: list[str] = []
        emitter = asyncio.create_task(_emit_events(own_services, owner, events_count, event_ids))
        await _wait_for_deliveries(own_services, owner, ENDPOINTS * events_count // 8)
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait, 40) == 0
        leased = "SELECT count(*) FROM work WHERE tenant_id = $1 AND state = 'leased'"
        assert await fetch_value(own_services, leased, owner.tenant_id) == 0
        await emitter
    async with run_worker(settings, "deliveries", "default", slots=4):
        await _wait_for_deliveries(own_services, owner, ENDPOINTS * events_count)
    assert set(endpoints.received.values()) == {1}
    assert len(endpoints.received) == ENDPOINTS * events_count
