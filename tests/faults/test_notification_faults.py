"""Workers are killed while they notify: every user has every message once, every mail arrives, and
every stored attempt is correct.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from app.domain.messaging.notifications.providers.resend import Resend
from app.services import Services
from tests.assertions import until
from tests.database import fetch_rows, run_sql
from tests.faults.instance import fetch_value, wait_for_count
from tests.lengths import rounds
from tests.peer import Handler, Peer
from tests.processes import Processes
from tests.world import Client, World

USERS = rounds(25, 1_000)
MESSAGES = rounds(4, 10)
TOTAL = USERS * MESSAGES
# The first request of every so many mails fails.
FAILURES_EVERY = rounds(10, 50)
WORKER = ("-m", "app.cli", "worker", "--queues", "deliveries,default")
NOTIFIED = "SELECT count(*) FROM notifications WHERE tenant_id = $1"
DELIVERED = """
SELECT count(*) FROM notification_deliveries WHERE tenant_id = $1 AND status = 'delivered'
"""

pytestmark = pytest.mark.timeout(120)

_INSERT_USERS = """
WITH added AS (
    INSERT INTO users
        (tenant_id, id, email, email_verified, role, password_hash, first_name, last_name)
    SELECT $1, 'usr_' || n, 'user' || n || '@example.com', true, 'viewer', 'none', 'Test', 'User'
    FROM generate_series(1, $2::int) n RETURNING id
)
INSERT INTO notification_preferences (tenant_id, user_id, preferences)
SELECT $1, id, '{"message": {"email": true}}' FROM added
"""


class MailService(Peer):
    """Accepts mails as Resend does, but fails at some of them once."""

    def __init__(self) -> None:
        super().__init__()
        # Accepted requests by (address, subject), and the mails that it failed at.
        self.received: Counter[tuple[str, str]] = Counter()
        self.failed: set[tuple[str, str]] = set()
        # Requests wait once so many mails are accepted.
        self.hold_at = TOTAL
        self.waiting = 0
        self._continued = asyncio.Event()
        self._count = 0

    def routes(self) -> dict[str, Handler]:
        return {"POST /emails": self._receive}

    async def _receive(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        mail = (body["to"][0], body["subject"])
        while self.received.total() >= self.hold_at:
            self.waiting += 1
            await self._continued.wait()
            self.waiting -= 1
        self._count += 1
        if self._count % FAILURES_EVERY == 0 and self._is_new(mail):
            self.failed.add(mail)
            return web.json_response({"message": "Try again."}, status=503)
        self.received[mail] += 1
        return web.json_response({"id": request.headers["Idempotency-Key"]})

    def hold_next_at(self, count: int) -> None:
        """Lets the waiting requests go on."""
        self.hold_at = count
        self._continued.set()
        self._continued = asyncio.Event()

    def _is_new(self, mail: tuple[str, str]) -> bool:
        return mail not in self.failed and mail not in self.received


@pytest.fixture
async def mail_service() -> AsyncIterator[MailService]:
    service = MailService()
    await service.start()
    yield service
    await service.close()


@pytest.fixture
async def owner(own_world: World, own_services: Services) -> Client:
    owner = await own_world.user("tenant_admin")
    await run_sql(own_services, _INSERT_USERS, owner.tenant_id, USERS)
    return owner


async def _add_channel(owner: Client, service: MailService) -> str:
    body = {
        "name": "Mail",
        "type": "email",
        "provider": "resend",
        "config": {"api_key": "key", "from": "ann@example.com", "api_base": service.url},
        "rate_limit_per_minute": 100_000,
    }
    answer = await owner.post("/api/v1/notification-channels", body)
    assert answer.status_code == 201, answer.text
    channel_id: str = answer.json()["id"]
    return channel_id


async def _send_messages(owner: Client, message_ids: list[str]) -> None:
    """Appends the id of each message to the list once it is acknowledged."""
    for number in range(MESSAGES):
        body = {
            "type": "message",
            "title": f"Message {number}",
            "message": "Hello",
            "role": "viewer",
        }
        answer = await owner.post("/api/v1/notifications", body)
        assert answer.status_code == 202, answer.text
        assert answer.json()["recipients"] == USERS
        message_ids.append(answer.json()["id"])
        await asyncio.sleep(0.2)


async def _kill_workers(
    services: Services, owner: Client, processes: Processes, service: MailService
) -> int:
    """Kills workers while they dispatch and while all of their requests wait; returns how many."""
    worker = processes.python(*WORKER)
    await wait_for_count(services, NOTIFIED, 1, owner.tenant_id)
    processes.kill(worker)
    held_at = [TOTAL // 10, TOTAL // 2, TOTAL * 3 // 4][: rounds(2, 3)]
    for count in held_at:
        service.hold_next_at(count)
        worker = processes.python(*WORKER)
        await until(lambda: service.waiting > 0, 60)
        processes.kill(worker)
        await services.redis.flushall()
    service.hold_next_at(2 * TOTAL)
    processes.python(*WORKER)
    return 1 + len(held_at)


async def _check_log(services: Services, owner: Client, channel_id: str) -> None:
    """Each attempt has one row, in the order of its number, and the figures equal the rows."""
    wrong = """
    SELECT d.id FROM notification_deliveries d LEFT JOIN notification_log l ON l.delivery_id = d.id
    WHERE d.tenant_id = $2 GROUP BY d.id
    HAVING array_agg(l.number ORDER BY l.number) <> ARRAY(SELECT generate_series(1, d.attempt))
        OR array_agg(l.status::text ORDER BY l.number)
           <> array_fill('failed'::text, ARRAY[d.attempt - 1]) || 'delivered'::text
        OR d.status <> 'delivered' OR d.finished_at IS NULL OR d.channel_id <> $1
    """
    assert await fetch_rows(services, wrong, channel_id, owner.tenant_id) == []
    deliveries = "SELECT count(*) FROM notification_deliveries WHERE tenant_id = $1"
    assert await fetch_value(services, deliveries, owner.tenant_id) == TOTAL
    figures = """
    SELECT count(*) AS delivered, round(avg(delivery_time_ms), 1)::float8 AS average
    FROM notification_log WHERE tenant_id = $1 AND status = 'delivered'
    """
    (row,) = await fetch_rows(services, figures, owner.tenant_id)
    stats = (await owner.get(f"/api/v1/notification-channels/{channel_id}/stats")).json()
    assert row["delivered"] == TOTAL
    assert (stats["total_sent"], stats["delivered"], stats["failed"]) == (TOTAL, TOTAL, 0)
    assert stats["avg_delivery_time_ms"] == pytest.approx(row["average"], abs=0.11)


async def test_notifications_survive_killed_workers_and_a_flushed_redis(
    own_services: Services, processes: Processes, owner: Client, mail_service: MailService
) -> None:
    channel_id = await _add_channel(owner, mail_service)
    message_ids: list[str] = []
    sender = asyncio.create_task(_send_messages(owner, message_ids))
    killed = await _kill_workers(own_services, owner, processes, mail_service)
    await sender
    await wait_for_count(own_services, DELIVERED, TOTAL, owner.tenant_id, seconds=60)

    center = """
    SELECT user_id, array_agg(message_id ORDER BY message_id) AS ids FROM notifications
    WHERE tenant_id = $1 GROUP BY user_id
    """
    rows = await fetch_rows(own_services, center, owner.tenant_id)
    assert len(rows) == USERS
    assert all(row["ids"] == sorted(message_ids) for row in rows)

    addresses = [f"user{number}@example.com" for number in range(1, USERS + 1)]
    titles = [f"Message {number}" for number in range(MESSAGES)]
    assert set(mail_service.received) == {(to, title) for to in addresses for title in titles}
    # Only what was being sent when a worker was killed is sent again.
    assert mail_service.received.total() - TOTAL <= killed * Resend.max_concurrent
    assert len(mail_service.failed) > TOTAL // FAILURES_EVERY // 2

    await _check_log(own_services, owner, channel_id)
    unfinished = """
    SELECT count(*) FROM work WHERE tenant_id = $1 AND lane IS NOT NULL AND state <> 'done'
    """
    assert await fetch_value(own_services, unfinished, owner.tenant_id) == 0
