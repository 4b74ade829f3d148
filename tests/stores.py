"""Postgres and Redis servers for tests, from the wheels, in a temporary folder."""

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import msgspec
import redis as redis_client

from app.crypto.keyring import Keyring
from app.kit.ids import new_id
from app.local.postgres import Postgres
from app.local.redis import Redis
from app.settings import Settings
from db import migrate


def wait_for(condition: Callable[[], object], seconds: float = 30, what: str = "condition") -> None:
    """Polls a condition that another process brings about."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not hold within {seconds} s")
        time.sleep(0.02)


def _sandbox_dir() -> Path | None:
    """Returns a folder that all test processes share, so that interpreters are copied once."""
    if os.geteuid() == 0:
        return None
    return Path(tempfile.gettempdir()) / f"parley-sandbox-{os.geteuid()}"


def _memory_disk() -> str | None:
    """Returns the folder of files that are kept in memory, where the machine has room in one."""
    folder = "/dev/shm"
    is_large = Path(folder).is_dir() and shutil.disk_usage(folder).free > 8 << 30
    return folder if is_large else None


# A migrated database without rows, which new ones are copied from.
_TEMPLATE = "migrated"


class Stores:
    """`start()` creates a migrated database and an empty Redis; both can be stopped and started."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="parley-test-"))
        self.folder.chmod(0o700)
        self._database_folder = Path(tempfile.mkdtemp(prefix="parley-test-", dir=_memory_disk()))
        self.postgres = Postgres(
            self._database_folder / "postgres", self.folder / "run", durable=False
        )
        self.redis = Redis(self.folder / "redis", self.folder / "run", durable=False)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.settings = Settings(
            data_dir=self.folder / "data",
            database_url=self.postgres.url(),
            redis_url=self.redis.url,
            master_keys=Keyring.generate("test"),
            anonymous_per_minute=1_000_000,
            egress_allow=("127.0.0.1", "localhost"),
            local_model=False,
            # They take memory and time; tests of encoders turn them on.
            sentence_encoders=False,
            sandbox_dir=_sandbox_dir(),
            log_level="warning",
            pool_size=20,
            metrics_address="off",
        )

    async def start(self) -> None:
        self.postgres.init()
        self.redis.init()
        self.start_postgres()
        self.start_redis()
        await self._run_sql(f"CREATE DATABASE {_TEMPLATE}")
        await migrate.upgrade(self._with_database(_TEMPLATE).sqlalchemy_url)
        await self._run_sql(f"CREATE DATABASE parley TEMPLATE {_TEMPLATE}")

    async def create_database(self, revision: str = "head") -> Settings:
        """Creates another migrated database; returns settings that differ in its URL."""
        name = new_id("test")
        settings = self._with_database(name)
        if revision == "head":
            await self._run_sql(f'CREATE DATABASE "{name}" TEMPLATE {_TEMPLATE}')
        else:
            await self._run_sql(f'CREATE DATABASE "{name}"')
            await migrate.upgrade(settings.sqlalchemy_url, revision)
        return settings

    async def copy_database(self, source: Settings) -> Settings:
        """Creates a database with the rows of another one, which nobody may be connected to."""
        name, template = new_id("test"), urlsplit(source.database_url).path.lstrip("/")
        await self._run_sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self._with_database(name)

    def _with_database(self, name: str) -> Settings:
        return msgspec.structs.replace(self.settings, database_url=self.postgres.url(name))

    async def _run_sql(self, statement: str) -> None:
        connection = await self._connect()
        await connection.execute(statement)
        await connection.close()

    async def _connect(self) -> asyncpg.Connection:
        for _ in range(600):
            try:
                return await asyncpg.connect(self.postgres.url("postgres"))
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0.05)
        raise AssertionError((self.folder / "postgres.log").read_text())

    def start_postgres(self) -> None:
        self._processes["postgres"] = self.postgres.start(self.folder / "postgres.log")

    def start_redis(self) -> None:
        self._processes["redis"] = self.redis.start(self.folder / "redis.log")
        client = redis_client.Redis.from_url(self.redis.url)

        def is_live() -> bool:
            try:
                return bool(client.ping())
            except redis_client.RedisError:
                return False

        wait_for(is_live, what="redis")
        client.close()

    def stop_redis(self) -> None:
        self._stop("redis", signal.SIGTERM)

    def stop_postgres(self) -> None:
        self._stop("postgres", signal.SIGINT)

    def _stop(self, name: str, number: signal.Signals) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            process.send_signal(number)
            process.wait(30)

    def close(self) -> None:
        self.stop_redis()
        self.stop_postgres()
        for folder in (self.folder, self._database_folder):
            shutil.rmtree(folder, ignore_errors=True)
