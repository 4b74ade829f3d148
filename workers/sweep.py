"""Put due or abandoned ledger rows back on the queue, and tidy up.

Each worker process polls by itself, once a second. With Redis away the rows run right here.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from app.domain.chat import conversations
from app.domain.usage import service as usage
from app.kit import logs
from app.kit.work import KINDS
from app.parts import Parts
from db import ledger, retention
from db.session import ALL_TENANTS
from workers.runner import Runner

log = logs.get("sweep")

Chore = Callable[[Parts], Awaitable[object]]

_EVERY_SECONDS = 1.0
_BATCH = 500
_DIRECT_AT_ONCE = 16
_KEEP_WORK_DAYS = 7
_TIDY_LOCK = 7_210_032


class Sweeper:
    def __init__(self, parts: Parts, runner: Runner, queues: list[str]) -> None:
        self._parts = parts
        self._runner = runner
        self._queues = queues
        self._direct: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_DIRECT_AT_ONCE)
        self._redis_away = False
        self._busy: set[int] = set()
        self._done_at = [time.monotonic()] * len(CHORES)

    async def poll_forever(self) -> None:
        while True:
            try:
                await self.poll()
                self._do_chores()
            except Exception as error:  # noqa: BLE001  # a database that is away comes back
                log.warning("poll failed", reason=str(error)[:200])
            await asyncio.sleep(_EVERY_SECONDS)

    async def poll(self) -> None:
        """One round: take what is due and ring for it; run it here where nobody would hear."""
        kinds = [
            kind.name for kind in KINDS.values() if kind.queue in self._queues and not kind.in_bulk
        ]
        stale = _EVERY_SECONDS if self._redis_away else self._parts.settings.lease_seconds
        async with self._parts.db.tx(ALL_TENANTS, read_only=True) as tx:
            due = await ledger.due(await tx.raw(), kinds, stale, _BATCH)
        if not due:
            # Nothing to try it on, so look again with the longer patience next time.
            self._redis_away = self._redis_away and bool(self._direct)
            return
        self._redis_away = False
        for item in due:
            if self._redis_away or not await self._parts.doorbell.ring(
                KINDS[item.kind], item.id, item.dispatch_no
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
        """Beside the polling, which waits for none of them."""
        for index, (every, chore) in enumerate(CHORES):
            if index not in self._busy and time.monotonic() - self._done_at[index] >= every:
                self._busy.add(index)
                task = asyncio.create_task(self._chore(index, chore))
                self._direct.add(task)
                task.add_done_callback(self._direct.discard)

    async def _chore(self, index: int, chore: Chore) -> None:
        try:
            await chore(self._parts)
        except Exception as error:  # noqa: BLE001  # a database that is away comes back
            log.warning("chore failed", reason=str(error)[:200])
        finally:
            self._busy.discard(index)
            self._done_at[index] = time.monotonic()


async def tidy(parts: Parts) -> None:
    """Forget what is past its time; one worker at a time."""
    async with parts.db.tx(ALL_TENANTS, read_only=True) as tx:
        raw = await tx.raw()
        if not await raw.fetchval("SELECT pg_try_advisory_lock($1)", _TIDY_LOCK):
            return
        try:
            await ledger.forget(raw, _KEEP_WORK_DAYS)
            await retention.forget(raw)
        finally:
            await raw.execute("SELECT pg_advisory_unlock($1)", _TIDY_LOCK)


async def tidy_sandbox(parts: Parts) -> None:
    """Where code is run at all."""
    if parts.sandbox.tier != "none":
        await parts.sandbox.tidy()


# What every worker does now and then by itself; doing it twice at once does no harm.
CHORES: Final[tuple[tuple[float, Chore], ...]] = (
    (30.0, usage.roll),
    (30.0, conversations.end_idle),
    (300.0, tidy),
    (300.0, tidy_sandbox),
)
