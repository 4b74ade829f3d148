"""Puts due or abandoned ledger rows back on the queue, and runs the areas' chores.

Each worker process polls once a second. Without Redis it runs the rows itself.
"""

import asyncio
import time

from app.domain.area import Areas, Chore
from app.kit import logs
from app.services import Services
from db import ledger, retention
from db.session import ALL_TENANTS
from workers.runner import Runner

log = logs.get("sweep")

_POLL_SECONDS = 1.0
_BATCH = 500
_MAX_DIRECT = 16
_KEEP_WORK_DAYS = 7
_CLEAN_UP_LOCK = 7_210_032


class Sweeper:
    def __init__(self, services: Services, runner: Runner, queues: list[str]) -> None:
        self._services = services
        self._runner = runner
        self._queues = queues
        self._direct: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_DIRECT)
        self._redis_away = False
        self._kinds = services.doorbell.kinds
        self._chores = (*services.get(Areas).chores, *CHORES)
        self._busy: set[int] = set()
        self._done_at = [time.monotonic()] * len(self._chores)

    async def poll_forever(self) -> None:
        while True:
            try:
                await self.poll()
                self._do_chores()
            except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
                log.warning("poll failed", reason=str(error)[:200])
            await asyncio.sleep(_POLL_SECONDS)

    async def poll(self) -> None:
        """One round: rings for what is due, or runs it here where Redis is unavailable."""
        kinds = [
            kind.name
            for kind in self._kinds.values()
            if kind.queue in self._queues and not kind.in_bulk
        ]
        stale = _POLL_SECONDS if self._redis_away else self._services.settings.lease_seconds
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            due = await ledger.due(await tx.raw(), kinds, stale, _BATCH)
        if not due:
            # Nothing to ring for, so nothing is known of Redis; wait longer again next time.
            self._redis_away = self._redis_away and bool(self._direct)
            return
        self._redis_away = False
        for item in due:
            if self._redis_away or not await self._services.doorbell.ring(
                self._kinds[item.kind], item.id, item.dispatch_no
            ):
                self._redis_away = True
                self._run_here(item.id)
        log.info("work found by polling", rows=len(due), redis_away=self._redis_away)

    def _run_here(self, work_id: str) -> None:
        async def run() -> None:
            async with self._slots:
                await self._runner.run(work_id)

        task = asyncio.create_task(run())
        self._direct.add(task)
        task.add_done_callback(self._direct.discard)

    def _do_chores(self) -> None:
        """In tasks of their own: the polling waits for none of them."""
        for index, chore in enumerate(self._chores):
            if index not in self._busy and (
                time.monotonic() - self._done_at[index] >= chore.every_seconds
            ):
                self._busy.add(index)
                task = asyncio.create_task(self._run_chore(index, chore))
                self._direct.add(task)
                task.add_done_callback(self._direct.discard)

    async def _run_chore(self, index: int, chore: Chore) -> None:
        try:
            await chore.run(self._services)
        except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
            log.warning("chore failed", reason=str(error)[:200])
        finally:
            self._busy.discard(index)
            self._done_at[index] = time.monotonic()


async def clean_up(services: Services) -> None:
    """Deletes what is past its time; one worker at a time."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        if not await raw.fetchval("SELECT pg_try_advisory_lock($1)", _CLEAN_UP_LOCK):
            return
        try:
            await ledger.delete_finished(raw, _KEEP_WORK_DAYS)
            await retention.delete_expired(raw, services.get(Areas).retention)
        finally:
            await raw.execute("SELECT pg_advisory_unlock($1)", _CLEAN_UP_LOCK)


async def clean_up_sandbox(services: Services) -> None:
    if services.sandbox.tier != "none":
        await services.sandbox.tidy()


# Besides the chores of the areas.
CHORES = (Chore(300.0, clean_up), Chore(300.0, clean_up_sandbox))
