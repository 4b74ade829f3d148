"""Processes whose database is behind: not ready, and ready after the migration."""

import asyncio

import pytest
from structlog.testing import capture_logs

from app import container
from app.http import health
from app.observe import heartbeat
from app.services import Services
from app.settings import Settings
from db import schema
from db.session import ALL_TENANTS, Database
from tests.assertions import logged_by, refused, until, wait_until
from tests.http.test_requests import LIMIT_HEADERS
from tests.http_clients import open_client
from tests.running_worker import run_worker
from tests.server import Server
from tests.stores import Stores
from tests.world import Client

LOGIN = {"email": "ada@example.com", "password": "Wrong7Password"}


@pytest.fixture
async def behind(stores: Stores) -> Settings:
    """A database with the tables of this release and without its revision."""
    settings = await stores.create_database()
    await _set_revision(settings, None)
    return settings


async def test_a_web_process_refuses_requests_until_the_database_is_migrated(
    behind: Settings,
) -> None:
    needed = f"schema none, this release needs {schema.newest_revision()}"
    server = Server(behind)
    try:
        await asyncio.to_thread(server.wait)
        async with open_client(base_url=server.url, timeout=30) as client:

            async def is_ready() -> bool:
                return (await client.get("/health/ready")).is_success

            async def is_not_ready() -> bool:
                return not await is_ready()

            ready = await client.get("/health/ready")
            assert ready.status_code == 503
            assert needed in ready.json()["parts"]["postgres"]["detail"]
            error = refused(await client.post("/auth/login", json=LOGIN), 503, "unavailable")
            assert needed in error["message"]
            await _set_revision(behind, schema.newest_revision())
            await wait_until(is_ready)
            assert (await client.post("/auth/login", json=LOGIN)).status_code == 401
            await _set_revision(behind, None)
            await wait_until(is_not_ready)
            error = refused(await client.post("/auth/login", json=LOGIN), 503, "unavailable")
            assert needed in error["message"]
            await _set_revision(behind, schema.newest_revision())
            await wait_until(is_ready)
            assert (await client.post("/auth/login", json=LOGIN)).status_code == 401
    finally:
        server.close()


async def _set_revision(settings: Settings, revision: str | None) -> None:
    """Changes the schema's revision, as a migration or the restore of an older backup does."""
    db = Database(settings.sqlalchemy_url, pool_size=1)
    async with db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("DELETE FROM alembic_version")
        if revision is not None:
            await raw.execute("INSERT INTO alembic_version VALUES ($1)", revision)
    await db.close()


async def test_a_refusal_before_the_rate_limit_has_its_headers_and_is_not_logged(
    anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.readiness, "problem", "the database is behind")
    with capture_logs() as lines:
        answer = await anonymous.get("/auth/me")
    refused(answer, 503, "unavailable")
    assert set(answer.headers) >= LIMIT_HEADERS
    assert [line for line in logged_by("http", lines) if line["log_level"] == "warning"] == []


async def test_a_worker_claims_nothing_until_the_database_is_migrated(behind: Settings) -> None:
    async with run_worker(behind, "ingest") as process:

        async def is_ready() -> bool:
            beats = await heartbeat.read(process.services.redis)
            return any(beat.queues == ["ingest"] for beat in beats)

        await until(lambda: process.services.readiness.problem is not None)
        assert not await is_ready()
        await _set_revision(behind, schema.newest_revision())
        await wait_until(is_ready)


async def test_a_worker_stops_while_it_waits_for_the_migration(behind: Settings) -> None:
    async with asyncio.timeout(20), run_worker(behind, "ingest") as process:
        await until(lambda: process.services.readiness.problem is not None)


async def test_readiness_follows_the_schema_of_a_running_process(stores: Stores) -> None:
    settings = await stores.create_database()
    services = container.build(settings)
    before = await health.check_parts(services)
    await _set_revision(settings, None)
    after = await health.check_parts(services)
    await services.close()
    assert (before.parts["postgres"].state, after.status) == ("ok", "unavailable")
