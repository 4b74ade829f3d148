"""The sweeper puts due work and work with expired leases on the queue, and runs the periodic
tasks.

Each worker process polls once a second. While Redis is unavailable, it runs the work itself.
"""

import asyncio
import math
import time

from app.domain.area import Areas, PeriodicTask
from app.jobs import background
from app.kit import logs
from app.services import Services
from db import ledger, retention, statistics
from db.locks import AdvisoryLock
from db.session import ALL_TENANTS
from workers.runner import Runner

log = logs.get("sweep")

_POLL_SECONDS = 1.0
_BATCH = 500
# How much work one process runs at a time while Redis is unavailable.
_MAX_DIRECT_RUNS = 16
# How long each rule of the clean-up may take; what is left is deleted at the next poll.
_RULE_SECONDS = 10.0
_CLEAN_UP_PERIOD = 300.0
# Shorter than the period, so that a worker that runs alone is never too early.
_CLEAN_UP_PAUSE = 240.0


class Sweeper:
    def __init__(self, services: Services, runner: Runner, queues: list[str]) -> None:
        self._services = services
        self._runner = runner
        self._queues = queues
        self._tasks: set[asyncio.Task[None]] = set()
        # Work that this process runs, or is about to run, because Redis is unavailable.
        self._direct_runs: set[str] = set()
        self._slots = asyncio.Semaphore(_MAX_DIRECT_RUNS)
        self._is_redis_unavailable = False
        self._kinds = services.doorbell.kinds
        self._periodic_tasks = (*services.get(Areas).periodic_tasks, *PERIODIC_TASKS)
        self._running_tasks: set[int] = set()
        self._task_ended_at = [time.monotonic()] * len(self._periodic_tasks)

    async def poll_forever(self) -> None:
        while True:
            try:
                await self.poll()
                self._start_periodic_tasks()
            except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
                log.warning("poll failed", reason=str(error)[:200])
            if background.is_cancelled():
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self, seconds: float) -> None:
        """Cancels the tasks that polling started. To be called when polling has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def poll(self) -> None:
        """Puts due work on the queue, or runs it here while Redis is unavailable."""
        kinds = [
            kind.name
            for kind in self._kinds.values()
            if kind.queue in self._queues and not kind.has_lanes
        ]
        stale = (
            _POLL_SECONDS if self._is_redis_unavailable else self._services.settings.lease_seconds
        )
        # At least one row, which shows whether Redis is available again.
        limit = max(1, _BATCH - len(self._direct_runs))
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            due = await ledger.dispatch_due(await tx.raw(), kinds, stale, limit)
        if not due:
            # Without due work the state of Redis is unknown; assume that it is available again.
            self._is_redis_unavailable = self._is_redis_unavailable and bool(self._direct_runs)
            return
        self._is_redis_unavailable = False
        for item in due:
            if self._is_redis_unavailable or not await self._services.doorbell.ring(
                self._kinds[item.kind], item.id, item.dispatch_no
            ):
                self._is_redis_unavailable = True
                self._run_here(item.id)
        log.info(
            "work found by polling", rows=len(due), redis_unavailable=self._is_redis_unavailable
        )

    def _run_here(self, work_id: str) -> None:
        """Work beyond the limit is due again at the next poll, here or in another worker."""
        if work_id in self._direct_runs or len(self._direct_runs) >= _BATCH:
            return
        self._direct_runs.add(work_id)

        async def run() -> None:
            async with self._slots:
                await self._runner.run(work_id)

        task = background.start(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._direct_runs.discard(work_id))

    def _start_periodic_tasks(self) -> None:
        """Starts the periodic tasks that are due, so that polling does not wait for them."""
        for index, periodic in enumerate(self._periodic_tasks):
            if index not in self._running_tasks and (
                time.monotonic() - self._task_ended_at[index] >= periodic.every_seconds
            ):
                self._running_tasks.add(index)
                task = background.start(self._run_periodic_task(index, periodic))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _run_periodic_task(self, index: int, periodic: PeriodicTask) -> None:
        has_more = False
        try:
            has_more = await periodic.run(self._services) is True
        except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
            log.warning("periodic task failed", reason=str(error)[:200])
        finally:
            self._running_tasks.discard(index)
            self._task_ended_at[index] = -math.inf if has_more else time.monotonic()


async def clean_up(services: Services, *, pause_seconds: float = 0.0) -> bool:
    """Deletes expired rows; an advisory lock lets one worker do it at a time. Returns True when
    rows are left. Does nothing when a worker has completed a round in the last `pause_seconds`.
    """
    rules = (ledger.RETENTION, *services.get(Areas).retention)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        if not await raw.fetchval("SELECT pg_try_advisory_lock($1)", AdvisoryLock.CLEAN_UP):
            return False
        try:
            if await retention.has_recent_round(raw, pause_seconds):
                return False
            has_more, failures = await retention.delete_expired(
                raw, rules, rule_seconds=_RULE_SECONDS
            )
            if not has_more:
                await retention.record_round(raw)
        finally:
            await raw.execute("SELECT pg_advisory_unlock($1)", AdvisoryLock.CLEAN_UP)
    for table, error in failures:
        log.warning("expired rows were not deleted", table=table, reason=repr(error)[:200])
    return has_more


async def clean_up_when_due(services: Services) -> bool:
    """The workers together complete one round per period."""
    return await clean_up(services, pause_seconds=_CLEAN_UP_PAUSE)


async def update_statistics(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        names = await statistics.analyze_grown_tables(await tx.raw())
    if names:
        log.info("statistics updated", tables=names)


async def clean_up_sandbox(services: Services) -> None:
    if services.sandbox.tier != "none":
        await services.sandbox.clean_up()


# The periodic tasks that belong to no area.
PERIODIC_TASKS = (
    PeriodicTask(_CLEAN_UP_PERIOD, clean_up_when_due),
    PeriodicTask(300.0, clean_up_sandbox),
    PeriodicTask(2.0, update_statistics),
)
