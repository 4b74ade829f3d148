"""`parley up`: runs all parts on one machine as child processes.

It starts the parts that no setting replaces by an external one, in order, reports its progress,
restarts parts that end, and stops all parts in reverse order.
"""

import asyncio
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO

import aiohttp
import asyncpg
import msgspec

from app import bootstrap, migration
from app import settings as configuration
from app.bootstrap import AdminAccount
from app.crypto import key_file
from app.kit import optional
from app.kit.redis import connect
from app.local import child, postgres, redis
from app.local.errors import CannotStart
from app.observe import heartbeat
from app.settings import Settings
from db.session import Database

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_RESTART_DELAYS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
_STABLE_SECONDS = 60.0
_WATCH_SECONDS = 0.05

Report = Callable[[str], None]


def plan_restart(exits: int, seconds: float) -> tuple[int, float]:
    """Returns the number of exits in a row and the delay before the next start, for a part that
    has ended after `seconds`, with `exits` before. A part that ran for a minute starts anew.
    """
    exits = 1 if seconds >= _STABLE_SECONDS else exits + 1
    return exits, _RESTART_DELAYS[min(exits, len(_RESTART_DELAYS)) - 1]


class Part:
    """One child process with its start function, readiness check and stop signal."""

    def __init__(
        self,
        name: str,
        start: Callable[[], subprocess.Popen[bytes]],
        is_ready: Callable[[], Awaitable[bool]] | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        log: Path | None = None,
    ) -> None:
        self.name = name
        self._log = log
        self._start = start
        self._is_ready = is_ready
        self._stop_signal = stop_signal
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    def start(self) -> None:
        # Before the start, so that one that fails counts as one that ended at once.
        self.started_at = time.monotonic()
        try:
            self.process = self._start()
        except OSError as error:
            raise CannotStart(f"{self.name}: cannot be started ({error})") from None

    @property
    def in_background(self) -> bool:
        """True when start-up does not wait for this part."""
        return self._is_ready is None

    @property
    def exit_code(self) -> int | None:
        return self.process.poll() if self.process else None

    @property
    def exit_message(self) -> str:
        """The exit code and the path of the log."""
        text = f"{self.name}: ended with code {self.exit_code}"
        return f"{text}, see {self._log}" if self._log else text

    async def wait_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self._is_ready is not None and not await self._is_ready():
            if self.exit_code is not None:
                raise CannotStart(f"{self.exit_message}; it was not ready yet")
            if time.monotonic() > deadline:
                raise CannotStart(f"{self.name} was not ready within {_START_SECONDS:.0f} s")
            await asyncio.sleep(0.03)

    async def stop(self) -> None:
        if self.process is None or self.exit_code is not None:
            return
        self.process.send_signal(self._stop_signal)
        deadline = time.monotonic() + _STOP_SECONDS
        while self.exit_code is None:
            if time.monotonic() > deadline:
                self.process.kill()
            await asyncio.sleep(0.03)


class Up:
    def __init__(self, settings: Settings, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._parts: list[Part] = []
        self._stopping = asyncio.Event()
        self._logs = settings.data_dir / "logs"
        self._watchers: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        self._check_settings()
        lock = self._lock_data_dir()
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        try:
            self._check_port()
            admin = await self._start_all()
            if not self._stopping.is_set():
                self._show_welcome(admin, time.monotonic() - started)
                await self._stopping.wait()
        finally:
            await self._stop_all()
            lock.close()

    def _check_settings(self) -> None:
        """Raises KeyProblem or WeakPassword, before anything is started or written."""
        if self._settings.master_keys:
            key_file.load(self._settings)
        bootstrap.check_admin_password(self._settings.admin_password)

    def _lock_data_dir(self) -> IO[str]:
        """Allows one `up` per data directory. The kernel releases the lock with the process."""
        for folder in (self._settings.data_dir, self._logs, self._settings.run_dir):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_run_dir()
        lock = (self._settings.data_dir / "up.lock").open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise CannotStart(
                f"Parley is already running on {self._settings.data_dir}; nothing was done"
            ) from None
        return lock

    def _check_run_dir(self) -> None:
        """In the temporary directory, another user may have created the folder."""
        run_dir = self._settings.run_dir
        if run_dir.is_relative_to(self._settings.data_dir):
            return
        stats = run_dir.lstat()
        is_own = stat.S_ISDIR(stats.st_mode) and stats.st_uid in postgres.possible_owners()
        if not is_own or stats.st_mode & 0o077:
            raise CannotStart(f"{run_dir} must be a folder of yours alone (mode 700); remove it")

    def _check_port(self) -> None:
        host, port = self._settings.host, self._settings.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                raise CannotStart(
                    f"port {port} on {host} cannot be used ({error.strerror}); "
                    f"set PARLEY_PORT to another one"
                ) from None

    # Starting

    async def _start_all(self) -> AdminAccount | None:
        settings = self._settings
        await self._start_stores()
        self._report("database schema …")
        admin = await self._bootstrap()
        worker = Part(
            "worker", lambda: self._spawn("worker"), lambda: self._is_worker_ready(worker)
        )
        await asyncio.gather(
            self._add(Part("web", lambda: self._spawn("serve"), self._is_web_ready)),
            self._add(worker),
        )
        if settings.local_model:
            log = self._logs / "model.log"
            await self._add(Part("model", lambda: self._spawn("model", log=log), log=log))
        for feature in optional.FEATURES:
            if not optional.is_installed(feature):
                self._report(f"{feature.name}: off, {optional.read_missing_reason(feature)}")
        return admin

    async def _start_stores(self) -> None:
        settings = self._settings
        starts = []
        if settings.embedded_postgres:
            server = postgres.Postgres(settings.data_dir / "postgres", settings.run_dir)
            key_file.ensure(settings, data_exists=server.exists)
            if not server.exists:
                self._report("postgres: creating a new cluster …")
            await asyncio.to_thread(server.init)
            log = self._logs / "postgres.log"
            part = Part(
                "postgres", lambda: server.start(log), self._is_postgres_ready, postgres.STOP, log
            )
            starts.append(self._add(part))
        else:
            key_file.load(settings)
        if settings.embedded_redis:
            store = redis.Redis(settings.data_dir / "redis", settings.run_dir)
            store.init()
            redis_log = self._logs / "redis.log"
            part = Part(
                "redis", lambda: store.start(redis_log), self._is_redis_ready, redis.STOP, redis_log
            )
            starts.append(self._add(part))
        await asyncio.gather(*starts)

    async def _add(self, part: Part) -> None:
        self._parts.append(part)
        part.start()
        if part.in_background:
            self._report(f"{part.name}: loading in the background")
        else:
            await part.wait_ready()
            self._report(f"{part.name}: ready after {time.monotonic() - part.started_at:.1f} s")
        self._watchers.append(asyncio.create_task(self._watch(part)))

    def _spawn(self, *command: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        out = log.open("ab") if log else None
        try:
            return subprocess.Popen(
                child.command(signal.SIGTERM, "tie", sys.executable, "-m", "app.cli", *command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **configuration.as_env(self._settings)},
            )
        finally:
            if out is not None:
                out.close()

    async def _is_postgres_ready(self) -> bool:
        folder = str(self._settings.run_dir)
        sql = "SELECT 1 FROM pg_database WHERE datname = 'parley'"
        try:
            connection = await asyncpg.connect(host=folder, user="parley", database="postgres")
            try:
                if not await connection.fetchval(sql):
                    await connection.execute("CREATE DATABASE parley")
            finally:
                await connection.close()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True

    async def _is_redis_ready(self) -> bool:
        client = connect(self._settings.redis_address)
        try:
            return bool(await client.ping())
        except Exception:  # noqa: BLE001  # not started yet, or loading
            return False
        finally:
            await client.aclose()

    async def _is_web_ready(self) -> bool:
        url = f"{_local_url(self._settings)}/health/live"
        try:
            async with aiohttp.ClientSession() as client, client.get(url) as response:
                return response.status == 200  # noqa: PLR2004
        except (OSError, aiohttp.ClientError):
            return False

    async def _is_worker_ready(self, worker: Part) -> bool:
        client = connect(self._settings.redis_address)
        try:
            names = [beat.name for beat in await heartbeat.read(client) if beat.part == "worker"]
        finally:
            await client.aclose()
        return worker.process is not None and heartbeat.name_of(worker.process.pid) in names

    async def _bootstrap(self) -> AdminAccount | None:
        settings = self._settings
        keyring = key_file.load(settings)
        db = Database(settings.sqlalchemy_url, pool_size=2)
        try:
            newer = await migration.upgrade_schema(settings.sqlalchemy_url, db, keyring)
            if newer is not None:
                # The release that migrated the database has also prepared it.
                self._report(f"warning: {newer}")
                return None
            await bootstrap.prepare(db, keyring, settings.default_plan)
            return await bootstrap.ensure_admin(
                db, settings.admin_email, settings.admin_password, settings.default_plan
            )
        finally:
            await db.close()

    # Running

    async def _watch(self, part: Part) -> None:
        """Restarts a part when it ends."""
        exits = 0
        while not self._stopping.is_set():
            await asyncio.sleep(_WATCH_SECONDS)
            if part.exit_code is None:
                continue
            exits, delay = plan_restart(exits, time.monotonic() - part.started_at)
            when = f"in {delay:g} s" if delay else "now"
            self._report(f"{part.exit_message}; restarting {when}")
            await asyncio.sleep(delay)
            if self._stopping.is_set():
                return
            try:
                part.start()
                await part.wait_ready()
            except CannotStart as error:
                self._report(str(error))
            except Exception as error:  # noqa: BLE001  # no error may end the watch
                self._report(f"{part.name}: cannot be restarted ({type(error).__name__})")
            else:
                self._report(f"{part.name}: restarted")

    def _show_welcome(self, admin: AdminAccount | None, seconds: float) -> None:
        settings = self._settings
        url = settings.public_url
        email = admin.email if admin else settings.admin_email
        login_hint = "the password you were shown at the first start"
        if admin and not settings.admin_password:
            login_hint = f"{admin.password}   (shown this once)"
        elif settings.admin_password:
            login_hint = "the one in PARLEY_ADMIN_PASSWORD"
        demo = f"\n    demo       {url}/demo" if settings.demo else ""
        example_password = admin.password if admin and not settings.admin_password else "…"
        body = msgspec.json.encode({"email": email, "password": example_password}).decode()
        self._report(
            f"""
  Parley is ready after {seconds:.1f} s

    console    {url}/console
    docs       {url}/docs{demo}
    e-mail     {email}
    password   {login_hint}
    data       {settings.data_dir}

    try it     curl -s {url}/auth/login -H 'content-type: application/json' \\
                 -d '{body}'

  Stop with Ctrl-C.
"""
        )

    # Stopping

    async def _stop_all(self) -> None:
        self._stopping.set()
        for watcher in self._watchers:
            watcher.cancel()
        for part in reversed(self._parts):
            if part.exit_code is None:
                self._report(f"{part.name}: stopping")
            await part.stop()
        self._report("everything is stopped")


def _local_url(settings: Settings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://{host}:{settings.port}"


def terminal_report(started: float) -> Report:
    """Returns a function that prints progress with the seconds since the start."""

    def report(line: str) -> None:
        stamp = f"[{time.monotonic() - started:5.1f} s] " if not line.startswith("\n") else ""
        print(f"{stamp}{line}", flush=True)  # noqa: T201

    return report
