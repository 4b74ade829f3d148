"""Real processes, killed without warning. What was acknowledged is done, and done once."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from app import bootstrap, container
from app.areas import AREAS
from app.kit import work
from app.kit.ids import new_id
from app.main import create_app
from app.services import Services
from db.session import ALL_TENANTS
from tests.faults.worker import EFFECT
from tests.ports import free_port
from tests.processes import Processes
from tests.stores import Stores
from tests.world import Client, World

JOBS = 200
INVITES = 60
ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def own_stores() -> AsyncIterator[Stores]:
    made = Stores()
    made.settings = msgspec.structs.replace(made.settings, lease_seconds=2.0, port=free_port())
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


@pytest.fixture(autouse=True)
def _kind() -> Iterator[None]:
    AREAS.work_kinds[EFFECT.name] = EFFECT
    yield
    del AREAS.work_kinds[EFFECT.name]


async def _value(services: Services, sql: str) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql)


async def _until(services: Services, sql: str, wanted: int, seconds: float = 90) -> None:
    async with asyncio.timeout(seconds):
        while await _value(services, sql) < wanted:  # noqa: ASYNC110  # other processes write it
            await asyncio.sleep(0.05)


async def test_two_hundred_accepted_jobs_survive_everything(
    own_stores: Stores, own_parts: Services, processes: Processes
) -> None:
    tenant = await World(create_app(own_stores.settings)).tenant()
    first = processes.python("-m", "tests.faults.worker")
    second = processes.python("-m", "tests.faults.worker")
    accepted: list[str] = []

    async def accept_all() -> None:
        for _ in range(JOBS):
            async with own_parts.db.tx(tenant) as tx:
                accepted.append(await work.accept(tx, own_parts.doorbell, EFFECT, tenant_id=tenant))
            await asyncio.sleep(0.02)

    done = "SELECT count(*) FROM work WHERE state = 'done'"
    accepting = asyncio.create_task(accept_all())
    await _until(own_parts, done, 20)
    processes.kill(first)
    await own_parts.redis.flushall()
    await _until(own_parts, done, 60)
    own_stores.stop_redis()
    processes.kill(second)
    third = processes.python("-m", "tests.faults.worker")
    await _until(own_parts, done, 100)
    own_stores.start_redis()
    await _until(own_parts, done, 120)
    processes.kill(third)
    processes.python("-m", "tests.faults.worker")
    await accepting
    await _until(own_parts, done, JOBS)

    async with own_parts.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch(
            "SELECT data->>'work' AS work FROM event_log WHERE type = 'test.effect'"
        )
    effects = Counter(row["work"] for row in rows)
    assert effects == Counter(accepted)
    assert len(accepted) == JOBS


async def test_a_worker_told_to_stop_finishes_what_it_runs(
    own_stores: Stores, own_parts: Services, processes: Processes
) -> None:
    tenant = await World(create_app(own_stores.settings)).tenant()
    worker = processes.python("-m", "tests.faults.worker")
    for _ in range(10):
        async with own_parts.db.tx(tenant) as tx:
            await work.accept(tx, own_parts.doorbell, EFFECT, tenant_id=tenant)
    await _until(own_parts, "SELECT count(*) FROM work WHERE state = 'leased'", 5)
    worker.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(worker.wait, 40)
    assert code == 0
    assert await _value(own_parts, "SELECT count(*) FROM work WHERE state = 'leased'") == 0
    assert await _value(own_parts, "SELECT count(*) FROM work WHERE state = 'done'") >= 5
    assert await _value(own_parts, "SELECT count(*) FROM work WHERE last_error IS NOT NULL") == 0


async def test_the_web_tier_killed_under_load_loses_no_answer_that_it_gave(
    own_stores: Stores, own_parts: Services, processes: Processes
) -> None:
    """Clients repeat what got no answer under the same Idempotency-Key: one effect each."""
    app = create_app(own_stores.settings)
    admin = await World(app).user("tenant_admin")
    url = f"http://127.0.0.1:{own_stores.settings.port}"
    processes.python("-m", "tests.faults.worker")
    web = processes.python("-m", "app.cli", "serve")
    acknowledged: dict[str, str] = {}

    async def invite(client: httpx.AsyncClient, number: int) -> None:
        email, key = f"guest{number}@example.com", new_id("key")
        while email not in acknowledged:
            with suppress(httpx.TransportError):
                answer = await client.post(
                    f"{url}/users/invite",
                    json={"email": email, "role": "viewer"},
                    headers={"idempotency-key": key},
                )
                assert answer.status_code == 201, answer.text
                acknowledged[email] = answer.json()["id"]
                return
            await asyncio.sleep(0.05)

    headers = {"authorization": f"Bearer {admin.token}"}
    async with httpx.AsyncClient(headers=headers, timeout=20) as client:
        gate = asyncio.Semaphore(4)

        async def one(number: int) -> None:
            async with gate:
                await invite(client, number)

        load = asyncio.gather(*(one(number) for number in range(INVITES)))
        for wanted in (15, 35):
            async with asyncio.timeout(60):
                while len(acknowledged) < wanted:  # noqa: ASYNC110  # filled by the clients
                    await asyncio.sleep(0.01)
            processes.kill(web)
            web = processes.python("-m", "app.cli", "serve")
        await load

    async with own_parts.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch("SELECT id, email FROM invitations")
    assert {row["email"]: row["id"] for row in rows} == acknowledged
    assert len(rows) == INVITES
    await _until(own_parts, "SELECT count(*) FROM mail_messages WHERE sent_at IS NOT NULL", INVITES)
    mails = list((own_stores.settings.data_dir / "mail").glob("*.eml"))
    assert len(mails) == INVITES
    await app.state.services.close()


async def test_a_restarted_postgres_is_found_again(own_stores: Stores, own_parts: Services) -> None:
    app = create_app(own_stores.settings)
    user = await World(app).user("viewer")
    caller = Client(app, user.token)
    assert (await caller.get("/auth/me")).status_code == 200
    own_stores.stop_postgres()
    away = await caller.get("/auth/me")
    assert away.status_code == 503
    assert away.json()["error"]["code"] == "unavailable"
    assert "retry-after" in away.headers
    assert (await caller.get("/health/ready")).status_code == 503
    assert (await caller.get("/metrics")).status_code == 200
    own_stores.start_postgres()
    async with asyncio.timeout(30):
        while (await caller.get("/auth/me")).status_code != 200:  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.05)
    await app.state.services.close()
