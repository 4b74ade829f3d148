"""The runner claims work, runs the function of its kind and records the outcome.

No transaction is open while a job runs. Results and outcome are written in one transaction, and
only while the job's lease is valid: a worker that lost its lease, or whose job was cancelled,
changes nothing.
"""

import asyncio
import contextvars
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from app.domain.area import Areas
from app.domain.job import (
    NO_COURIERS,
    DeliverySlots,
    GiveUp,
    Job,
    JobFunction,
    LeaseLost,
    OnAnyDead,
    Postpone,
    Retry,
)
from app.jobs.work import WorkKind
from app.kit import logs, trace
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.observe import metrics
from app.services import Services
from db import connection_use, ledger
from db.ledger import WorkRow
from db.session import ALL_TENANTS

log = logs.get("worker")

NO_FUNCTIONS: Final[Mapping[str, JobFunction]] = {}

_MAX_ERROR_CHARS = 500
# Work that is put back becomes due again within this time.
PUT_BACK_SECONDS = 1.5
# How many rows of work one task runs before other work gets its turn.
_MAX_CONSECUTIVE = 16


def describe_work(variables: Mapping[str, Any]) -> dict[str, str | None]:
    """Describes the work of `Runner.attempt` to the watcher of the event loop."""
    row: WorkRow = variables["row"]
    return {"kind": row.kind, "tenant_id": row.tenant_id, "work_id": row.id}


class Runner:
    def __init__(
        self,
        services: Services,
        functions: Mapping[str, JobFunction] = NO_FUNCTIONS,
        *,
        on_any_dead: OnAnyDead | None = None,
        max_consecutive: int = _MAX_CONSECUTIVE,
    ) -> None:
        self._services = services
        self._max_consecutive = max_consecutive
        self._kinds = services.doorbell.kinds
        self._jobs = services.get(Areas).jobs
        # Functions that replace those of the areas.
        self._functions = functions
        self._on_any_dead = on_any_dead
        self._lease_seconds = services.settings.lease_seconds
        self._running: dict[asyncio.Task[None], WorkRow] = {}
        self._claiming = 0
        self.accepting = True
        # Run deliveries, by their kind.
        self.couriers: Mapping[str, DeliverySlots] = NO_COURIERS

    @property
    def running_count(self) -> int:
        return len(self._running)

    async def run(self, work_id: str) -> None:
        """Runs this work unless another worker does. Errors of the job are recorded, not raised."""
        if not self.accepting:
            await self._undispatch(work_id)
            return
        self._claiming += 1
        try:
            row = await self._claim(work_id)
        finally:
            self._claiming -= 1
        if row is None:
            return
        courier = self.couriers.get(row.kind)
        if courier is not None:
            await courier.run_claimed(row)
            return
        await self.run_claimed(row)

    async def run_claimed(self, row: WorkRow) -> None:
        task = self.start(row)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=5)
        except Exception:  # noqa: BLE001, S110  # logged where the task ends
            pass

    def start(self, row: WorkRow, payload: object = None) -> asyncio.Task[None]:
        """Starts a task for claimed work; `payload` is data that was loaded with the claim."""
        task = asyncio.create_task(
            self._run_consecutively(row, payload), context=contextvars.copy_context()
        )
        self._running[task] = row
        task.add_done_callback(self._on_task_done)
        return task

    async def _run_consecutively(self, row: WorkRow, payload: object) -> None:
        """Runs work and then the work that it leased to itself, without the queue or a claim. The
        number is limited, so that other work of this worker is not delayed.
        """
        connection_use.begin()
        task = asyncio.current_task()
        for left in reversed(range(self._max_consecutive)):
            trace.begin(
                Trace(
                    row.correlation_id, cause_event_id=row.cause_event_id, tenant_id=row.tenant_id
                )
            )
            next_row = await self.attempt(row, payload, may_continue=left > 0)
            if next_row is None or task is None:
                return
            row, payload = next_row, None
            self._running[task] = row

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        row = self._running.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The work runs again when its lease expires.
            log.error("outcome not recorded", work_id=row.id, kind=row.kind, exc_info=error)

    async def put_back(self, row: WorkRow) -> None:
        """Makes claimed work due again after a random delay, which spreads many rows out."""
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            wait = PUT_BACK_SECONDS * random.uniform(0.3, 1)  # noqa: S311  # no secret
            await ledger.retry(
                await tx.raw(), row, after_seconds=wait, error="waits its turn", uncounted=True
            )

    async def _claim(self, work_id: str) -> WorkRow | None:
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return await ledger.claim(
                await tx.raw(),
                work_id,
                new_id("lea"),
                self._lease_seconds,
                *(courier.capacity() for courier in self.couriers.values()),
            )

    async def _undispatch(self, work_id: str) -> None:
        """Lets another worker's poller find work that this stopping worker took off the queue."""
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            await ledger.undispatch(await tx.raw(), work_id)

    async def attempt(self, row: WorkRow, payload: object, *, may_continue: bool) -> WorkRow | None:
        """Returns the work that runs next in the place of this one."""
        started = time.perf_counter()
        kind = self._kinds.get(row.kind) or WorkKind(row.kind)
        job = Job(self._services, row, payload, self.couriers)
        job.may_continue = may_continue and self.accepting
        try:
            outcome = await self._run_function(kind, job)
            if outcome == "done":
                job.start_follow_up()
        finally:
            job.release_slots()
        metrics.WORK.labels(kind.name, outcome).inc()
        metrics.WORK_SECONDS.labels(kind.name).observe(time.perf_counter() - started)
        level = log.info if outcome in {"done", "cancelled"} else log.warning
        if outcome == "postponed" or (kind.in_bulk and outcome == "done"):
            # There are many of these, and each has a row of its own.
            level = log.debug
        level(
            "work " + outcome,
            work_id=row.id,
            kind=kind.name,
            attempt=row.attempt,
            ms=round((time.perf_counter() - started) * 1000, 1),
        )
        if kind.awaited and outcome in {"done", "dead", "cancelled"}:
            await self._services.doorbell.announce_done(row.id)
        return job.next_row if outcome == "done" else None

    async def _run_function(self, kind: WorkKind, job: Job) -> str:
        """Returns the outcome: done, retried, postponed, released, dead, cancelled or lost."""
        row = job.row
        try:
            function = self._find_function(row)
            async with asyncio.timeout(kind.timeout_seconds):
                await function(job)
            if job.outcome is None:
                async with job.finish():
                    pass
        except asyncio.CancelledError:
            return await self._release_or_cancel(row)
        except LeaseLost:
            return "lost"
        except GiveUp as error:
            return await self._give_up(row, str(error))
        except Postpone:
            await self.put_back(row)
            return "postponed"
        except Retry as error:
            return await self._retry(kind, row, str(error), error.after_seconds)
        except TimeoutError:
            return await self._retry(kind, row, f"took more than {kind.timeout_seconds:g} s", None)
        except Exception as error:
            log.exception("work raised", work_id=row.id, kind=row.kind)
            # The message may contain a secret; ledger and events get the class name only.
            return await self._retry(kind, row, f"unexpected {type(error).__name__}", None)
        return job.outcome or "done"

    def _find_function(self, row: WorkRow) -> JobFunction:
        if row.attempt > row.max_attempts:
            raise GiveUp("every attempt ended without an outcome")
        if row.kind in self._functions:
            return self._functions[row.kind]
        if row.kind not in self._jobs:
            raise GiveUp(f"no worker knows the kind {row.kind}")
        return self._jobs[row.kind].run

    async def _release_or_cancel(self, row: WorkRow) -> str:
        """Releases work of a stopping worker. Cancelled work has lost its lease and stays."""
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            released = await ledger.retry(
                await tx.raw(), row, after_seconds=0, error="interrupted", uncounted=True
            )
        return "released" if released else "cancelled"

    async def _retry(self, kind: WorkKind, row: WorkRow, error: str, after: float | None) -> str:
        if row.attempt >= row.max_attempts:
            return await self._give_up(row, error)
        delays = kind.retry_delays or (1.0,)
        delay = after if after is not None else delays[min(row.attempt, len(delays)) - 1]
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            was_leased = await ledger.retry(
                await tx.raw(), row, after_seconds=delay, error=error[:_MAX_ERROR_CHARS]
            )
        return "retried" if was_leased else "lost"

    async def _give_up(self, row: WorkRow, error: str) -> str:
        error = error[:_MAX_ERROR_CHARS]
        async with self._services.db.tx(row.tenant_id or ALL_TENANTS) as tx:
            if not await ledger.finish(await tx.raw(), row, "dead", error):
                return "lost"
            if self._on_any_dead is not None:
                await self._on_any_dead(tx, row, error)
            job = self._jobs.get(row.kind)
            if job is not None and job.on_dead is not None:
                await job.on_dead(self._services, tx, row, error)
        return "dead"

    # Leases and cancellation of all running jobs

    async def renew_forever(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            try:
                await self._renew()
            except Exception as error:  # noqa: BLE001  # the database may be unavailable for a while
                log.warning("leases not renewed", reason=str(error)[:200])

    async def _renew(self) -> None:
        tokens = {row.lease_token for row in self._running.values()}
        if not tokens:
            return
        async with self._services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            renewed = await ledger.renew(await tx.raw(), list(tokens), self._lease_seconds)
        missing = tokens - renewed
        if not missing:
            return
        # Most of these have just finished; those that still run a second later lost their lease.
        await asyncio.sleep(1)
        for task, row in list(self._running.items()):
            if row.lease_token not in missing:
                continue
            log.warning("lease lost", work_id=row.id, kind=row.kind)
            task.cancel()

    def cancel(self, work_id: str) -> None:
        for task, row in self._running.items():
            if row.id == work_id:
                task.cancel()

    async def drain(self, seconds: float) -> None:
        """Claims nothing new, lets running jobs finish, and releases the rest for other workers."""
        self.accepting = False
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._claiming or self._running:  # noqa: ASYNC110  # both change often
                    await asyncio.sleep(0.02)
        late = list(self._running)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)
