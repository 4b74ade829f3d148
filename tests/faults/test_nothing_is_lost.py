"""Processes are killed without warning: acknowledged work is done, and done exactly once."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import httpx
import pytest
from litestar import Litestar

from app.areas import AREAS
from app.jobs import work
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.database import fetch_rows
from tests.faults.instance import fetch_value, wait_for_count
from tests.faults.worker import EFFECT
from tests.http_clients import open_client
from tests.lengths import rounds
from tests.processes import Processes
from tests.stores import Stores
from tests.world import World

JOBS = rounds(40, 200)
INVITATIONS = rounds(9, 60)
# Of the web process.
KILLS = rounds(1, 2)
DONE = "SELECT count(*) FROM work WHERE tenant_id = $1 AND state = 'done'"
LEASED = "SELECT count(*) FROM work WHERE tenant_id = $1 AND state = 'leased'"
WORKER = ("-m", "tests.faults.worker")
WEB = ("-m", "app.cli", "serve")

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def _effect_kind() -> Iterator[None]:
    AREAS.work_kinds[EFFECT.name] = EFFECT
    yield
    del AREAS.work_kinds[EFFECT.name]


async def _accept_jobs(services: Services, tenant: str, count: int, accepted: list[str]) -> None:
    """Appends the id of each job to the list once it is committed."""
    for _ in range(count):
        async with services.db.tx(tenant) as tx:
            work_id = await work.accept(tx, EFFECT, tenant_id=tenant)
        accepted.append(work_id)
        await asyncio.sleep(0.02)


async def test_accepted_jobs_run_once_while_workers_and_redis_are_killed(
    own_stores: Stores, own_services: Services, own_world: World, processes: Processes
) -> None:
    tenant = await own_world.tenant()

    async def wait_for_done(share: float) -> None:
        await wait_for_count(own_services, DONE, int(share * JOBS), tenant)

    first = processes.python(*WORKER)
    second = processes.python(*WORKER)
    accepted: list[str] = []
    producer = asyncio.create_task(_accept_jobs(own_services, tenant, JOBS, accepted))
    await wait_for_done(0.1)
    processes.kill(first)
    await own_services.redis.flushall()
    await wait_for_done(0.3)
    own_stores.stop_redis()
    processes.kill(second)
    third = processes.python(*WORKER)
    await wait_for_done(0.5)
    own_stores.start_redis()
    await wait_for_done(0.6)
    processes.kill(third)
    processes.python(*WORKER)
    await producer
    await wait_for_done(1)
    effects = await fetch_rows(
        own_services,
        "SELECT data->>'work' AS work FROM event_log WHERE tenant_id = $1 AND type = 'test.effect'",
        tenant,
    )
    assert Counter(row["work"] for row in effects) == Counter(accepted)
    assert len(accepted) == JOBS


async def test_a_worker_that_is_stopped_finishes_its_running_jobs(
    own_services: Services, own_world: World, processes: Processes
) -> None:
    tenant = await own_world.tenant()
    worker = processes.python(*WORKER)
    async with own_services.db.tx(ALL_TENANTS) as tx:
        # Jobs write their effect there, so that none ends before the worker is told to stop.
        await (await tx.raw()).execute("LOCK TABLE event_log IN SHARE MODE")
        await _accept_jobs(own_services, tenant, 10, [])
        await wait_for_count(own_services, LEASED, 5, tenant)
        worker.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(worker.wait, 40)
    assert code == 0
    assert await fetch_value(own_services, LEASED, tenant) == 0
    assert await fetch_value(own_services, DONE, tenant) >= 5
    failed = "SELECT count(*) FROM work WHERE tenant_id = $1 AND last_error IS NOT NULL"
    assert await fetch_value(own_services, failed, tenant) == 0


class _Inviter:
    """Sends invitations, four at a time, each until it is acknowledged."""

    def __init__(self, url: str, token: str | None) -> None:
        self.acknowledged: dict[str, str] = {}
        self._url = url
        self._headers = {"authorization": f"Bearer {token}"}
        self._slots = asyncio.Semaphore(4)

    def has_sent(self, count: int) -> bool:
        return len(self.acknowledged) >= count

    async def send_all(self, count: int) -> None:
        async with open_client(headers=self._headers, timeout=20) as client:
            await asyncio.gather(*(self._send(client, number) for number in range(count)))

    async def _send(self, client: httpx.AsyncClient, number: int) -> None:
        """Repeats a request without a response under the same Idempotency-Key."""
        body = {"email": f"guest{number}@example.com", "role": "viewer"}
        headers = {"idempotency-key": new_id("key")}
        async with self._slots:
            while True:
                with suppress(httpx.TransportError):
                    answer = await client.post(
                        f"{self._url}/users/invite", json=body, headers=headers
                    )
                    assert answer.status_code == 201, answer.text
                    self.acknowledged[body["email"]] = answer.json()["id"]
                    return
                await asyncio.sleep(0.05)


async def test_invitations_have_one_effect_each_while_the_web_tier_is_killed(
    own_stores: Stores, own_services: Services, own_world: World, processes: Processes
) -> None:
    admin = await own_world.user("tenant_admin")
    processes.python(*WORKER)
    web = processes.python(*WEB)
    inviter = _Inviter(f"http://127.0.0.1:{own_stores.settings.port}", admin.token)
    sender = asyncio.create_task(inviter.send_all(INVITATIONS))
    for kill in range(1, KILLS + 1):
        await until(partial(inviter.has_sent, kill * INVITATIONS // (KILLS + 2)), 60)
        processes.kill(web)
        web = processes.python(*WEB)
    await sender
    invitations = "SELECT id, email FROM invitations WHERE tenant_id = $1"
    rows = await fetch_rows(own_services, invitations, admin.tenant_id)
    assert {row["email"]: row["id"] for row in rows} == inviter.acknowledged
    assert len(rows) == INVITATIONS
    sent = "SELECT count(*) FROM mail_messages WHERE tenant_id = $1 AND sent_at IS NOT NULL"
    await wait_for_count(own_services, sent, INVITATIONS, admin.tenant_id)
    # No other test of this folder sends mails.
    mails = list((own_stores.settings.data_dir / "mail").glob("*.eml"))
    assert len(mails) == INVITATIONS


async def test_requests_succeed_again_after_a_restart_of_postgres(
    own_stores: Stores, own_app: Litestar, own_world: World
) -> None:
    caller = await own_world.user("viewer")
    assert (await caller.get("/auth/me")).status_code == 200
    own_stores.stop_postgres()
    answer = await caller.get("/auth/me")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"
    assert "retry-after" in answer.headers
    assert (await caller.get("/health/ready")).status_code == 503
    assert b"parley_requests_total" in (await own_app.state.reports.metrics.read())[0]
    own_stores.start_postgres()
    async with asyncio.timeout(30):
        while (await caller.get("/auth/me")).status_code != 200:  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.05)
