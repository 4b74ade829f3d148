"""A Postgres that a tenant might have: on TCP, with users who need a password."""

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
_HBA = """
local all all trust
host all all 127.0.0.1/32 scram-sha-256
"""


class OutsidePostgres:
    """`connect` is the owner's own way in, beside the tools."""

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
async def running() -> AsyncIterator[OutsidePostgres]:
    folder = Path(tempfile.mkdtemp(prefix="parley-outside-"))
    made = OutsidePostgres(folder)
    try:
        async with asynccontextmanager(made.run)():
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)
