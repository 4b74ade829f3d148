"""A Postgres server of a tenant: on TCP, with users who need a password."""

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from app.local.postgres import Postgres
from tests.ports import free_port

USER, PASSWORD, DATABASE = "shop", "Correct7Horse-shop", "shop"
_TABLES = """
CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL, about jsonb);
INSERT INTO people SELECT n, 'person ' || n FROM generate_series(1, 250) AS n;
CREATE TABLE notes (id serial PRIMARY KEY, text text);
CREATE FUNCTION written() RETURNS int LANGUAGE sql VOLATILE AS
    $$ INSERT INTO notes (text) VALUES ('by a function') RETURNING id $$;
CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no such order'; END $$;
CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(60); RETURN 1; END $$;
"""
_HBA = """
local all all trust
host all all 127.0.0.1/32 scram-sha-256
"""


class TenantPostgres:
    """`connect` connects as the superuser, without a tool."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._log = folder / "postgres.log"
        self._postgres = Postgres(folder / "postgres", folder / "run", durable=False)

    async def run(self) -> AsyncIterator[None]:
        self._postgres.init()
        settings = self._postgres.folder / "parley.conf"
        settings.write_text(
            settings.read_text(encoding="utf-8")
            + f"listen_addresses = '127.0.0.1'\nport = {self.port}\n",
            encoding="utf-8",
        )
        (self._postgres.folder / "pg_hba.conf").write_text(_HBA, encoding="ascii")
        process = self._postgres.start(self._log)
        try:
            await self._prepare()
            yield
        finally:
            process.send_signal(signal.SIGINT)
            await asyncio.to_thread(process.wait, 30)

    async def _prepare(self) -> None:
        for _ in range(600):
            try:
                owner = await self.connect("postgres")
                break
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0.05)
        else:
            raise AssertionError(self._log.read_text(encoding="utf-8"))
        await owner.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        await owner.execute(f"CREATE DATABASE {DATABASE} OWNER {USER}")
        await owner.close()

    async def connect(self, database: str = DATABASE) -> asyncpg.Connection:
        return await asyncpg.connect(f"{self._postgres.url(database)}&port={self.port}")


@asynccontextmanager
async def start_postgres() -> AsyncIterator[TenantPostgres]:
    folder = Path(tempfile.mkdtemp(prefix="parley-outside-"))
    postgres = TenantPostgres(folder)
    try:
        async with asynccontextmanager(postgres.run)():
            yield postgres
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def create_tables(connection: asyncpg.Connection) -> None:
    """Creates tables and functions as the tenant's user, and stays that user."""
    await connection.execute(f"SET ROLE {USER}")
    await connection.execute(_TABLES)
