"""Connections to a Postgres with TLS, as a URL with libpq's parameters asks for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec
import pytest

from app.services import Services
from db import migrate
from db.session import ALL_TENANTS, Database, DatabaseUnavailable
from tests.agents.vault.servers import serve_tls
from tests.assertions import wait_until
from tests.certificates import create_server_context, write_certificate
from tests.database import fetch_rows
from tests.http_clients import open_client
from tests.ports import free_port
from tests.processes import Processes, run_parley
from tests.running_worker import run_worker
from tests.server import Server
from tests.stores import Stores


@asynccontextmanager
async def _serve_with_tls(stores: Stores, pem: Path) -> AsyncIterator[str]:
    """Yields a URL without parameters for the database of the tests, which has no TLS itself."""
    path = stores.postgres.run_dir / ".s.PGSQL.5432"
    async with serve_tls(path, create_server_context(pem)) as port:
        yield f"postgresql://parley@localhost:{port}/parley"


async def _fetch_application_name(url: str) -> str:
    db = Database(url, pool_size=1)
    try:
        async with db.tx(ALL_TENANTS, autocommit=True) as tx:
            return str(await (await tx.raw()).fetchval("SHOW application_name"))
    finally:
        await db.close()


_CASES: list[tuple[str, str, bool]] = [
    ("localhost", "sslmode=require", True),
    ("localhost", "sslmode=verify-full&sslrootcert={own}", True),
    ("localhost", "sslmode=verify-full&sslrootcert={other}", False),
    ("localhost", "sslmode=verify-ca&sslrootcert={other}", False),
    ("localhost", "sslmode=require&sslrootcert={other}", False),
    ("localhost", "sslrootcert=system", False),
    ("localhost", "sslmode=require&sslrootcert={own}&channel_binding=require", True),
    ("localhost", "sslmode=require&channel_binding=require", False),
    ("db.example.com", "sslrootcert={own}&channel_binding=require", False),
    ("db.example.com", "sslmode=require", True),
    ("db.example.com", "sslmode=verify-ca&sslrootcert={own}", True),
    ("db.example.com", "sslmode=verify-full&sslrootcert={own}", False),
]


async def test_a_certificate_is_verified_as_the_mode_says(
    services: Services, stores: Stores, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for name, parameters, is_accepted in _CASES:
        with subtests.test(name=name, parameters=parameters):
            own, other = (
                write_certificate(tmp_path, name),
                write_certificate(tmp_path, "other.test"),
            )
            query = parameters.format(own=own, other=other)
            async with _serve_with_tls(stores, own) as base:
                url = f"{base}?{query}&application_name=parley%20web&connect_timeout=10"
                if is_accepted:
                    assert await _fetch_application_name(url) == "parley web"
                else:
                    with pytest.raises(DatabaseUnavailable, match="certificate verify failed"):
                        await _fetch_application_name(url)


async def test_the_authorities_of_the_system_are_trusted(
    services: Services, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    async with _serve_with_tls(stores, own) as base:
        url = f"{base}?sslmode=verify-full&sslrootcert=system&application_name=a"
        assert await _fetch_application_name(url) == "a"


async def test_the_next_host_is_tried(services: Services, stores: Stores, tmp_path: Path) -> None:
    own = write_certificate(tmp_path, "localhost")
    async with _serve_with_tls(stores, own) as base:
        hosts = base.replace("@", f"@localhost:{free_port()},")
        url = f"{hosts}?sslmode=require&target_session_attrs=read-write&application_name=a"
        assert await _fetch_application_name(url) == "a"


async def test_every_command_connects_with_tls(
    services: Services, stores: Stores, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = write_certificate(tmp_path, "localhost")
    async with _serve_with_tls(stores, own) as base:
        url = f"{base}?sslmode=verify-full&sslrootcert={own}&channel_binding=prefer"
        settings = msgspec.structs.replace(stores.settings, database_url=url)
        await migrate.upgrade(settings.sqlalchemy_url)
        doctor = await asyncio.to_thread(run_parley, settings, "doctor")
        with closing(Processes(settings)) as processes:
            alembic = processes.python("-m", "alembic", "current")
            code = await asyncio.to_thread(alembic.wait, 60)
    assert "ok   postgres" in doctor.stdout
    output = capfd.readouterr()
    assert (code, "(head)" in output.out) == (0, True), output.err


async def test_web_processes_and_workers_connect_with_tls(
    services: Services, stores: Stores, tmp_path: Path
) -> None:
    own = write_certificate(tmp_path, "localhost")
    async with _serve_with_tls(stores, own) as base:
        url = f"{base}?sslmode=verify-full&sslrootcert={own}&application_name=with_tls"
        settings = msgspec.structs.replace(stores.settings, database_url=url)
        async with run_worker(settings, "default"):
            await wait_until(lambda: fetch_rows(services, _CONNECTED, "with_tls"))
        server = Server(settings)
        try:
            await asyncio.to_thread(server.wait)
            async with open_client(base_url=server.url) as client:
                parts = (await client.get("/health/ready")).json()["parts"]
        finally:
            await asyncio.to_thread(server.close)
    assert parts["postgres"]["state"] == "ok"


_CONNECTED = "SELECT 1 FROM pg_stat_activity WHERE application_name = $1"


def test_an_unknown_parameter_stops_the_start_with_one_line(stores: Stores) -> None:
    url = f"{stores.settings.database_url}&sslmod=require"
    result = run_parley(msgspec.structs.replace(stores.settings, database_url=url), "tenants")
    assert result.returncode == 1
    assert result.stderr == "parley: PARLEY_DATABASE_URL: has the unknown parameter sslmod\n"
