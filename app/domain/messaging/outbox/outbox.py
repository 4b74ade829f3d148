"""Sends deliveries to endpoints: one attempt for each job, and its outcome. Webhooks and channels
are the kinds of endpoints.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar

import msgspec

from app.domain.area import Span, SpanKind
from app.domain.job import Job, LeaseLost
from app.domain.platform.events import api as events
from app.jobs.batches import run_together
from app.kit import clock
from app.kit.texts import as_json
from app.services import Services
from db import fast, ledger
from db.ledger import WorkRow
from db.session import ALL_TENANTS, Tx

from .attempts import Attempt, NextStep, Schedule, next_step
from .queries import OutboxSql

# Outcomes of attempts that end within this time are written together.
_BATCH_SECONDS = 0.003
_STATES = {"delivered": "done", "pending": "pending", "failed": "dead"}

# Sends what failed another way. Returns False when it cannot.
Fallback = Callable[[], Awaitable[bool]]


class OutboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery with all that is needed to send it. `attempts` counts those made so far."""

    delivery_id: str
    tenant_id: str
    endpoint_id: str
    attempts: int
    is_test: bool


R = TypeVar("R", bound=OutboxRequest)


class Outcome(msgspec.Struct, Generic[R], frozen=True):
    """An attempt, what follows it, and the next state of its work."""

    work: WorkRow
    request: R
    attempt: Attempt
    step: NextStep
    state: str


class Outbox(ABC, Generic[R]):
    """One kind of endpoint: how it sends, and what follows from outcomes."""

    span_kind: ClassVar[SpanKind]
    sql: ClassVar[OutboxSql]
    request_type: type[R]

    @abstractmethod
    async def load(self, tx: Tx, delivery_ids: list[str]) -> Mapping[str, R]:
        """Returns requests by delivery id, without deliveries that are finished or deleted."""

    @abstractmethod
    def schedule(self, services: Services, work: WorkRow, request: R) -> Schedule: ...

    @abstractmethod
    async def attempt(self, services: Services, request: R, *, is_awaited: bool) -> Attempt:
        """Sends it once. Errors are part of the result. A request of the API waits for the outcome
        of an awaited one.
        """

    @abstractmethod
    def columns(self, request: R, attempt: Attempt) -> dict[str, object]:
        """Returns the columns of an outcome besides the common ones."""

    async def count_send(self, services: Services, request: R) -> float | None:
        """Counts a send. Returns the seconds to wait when it exceeds the endpoint's rate limit."""
        del services, request
        return None

    async def on_postponed(self, tx: Tx, request: R, *, by_receiver: bool) -> None:
        """Records that the rate limit of the endpoint, or of its receiver, is used up."""
        del tx, request, by_receiver

    async def find_fallbacks(
        self, services: Services, tx: Tx, outcomes: Sequence[Outcome[R]]
    ) -> Mapping[str, Fallback]:
        """Returns other ways for deliveries that failed, by delivery id."""
        del services, tx, outcomes
        return {}

    async def on_recorded(self, services: Services, tx: Tx, outcomes: Sequence[Outcome[R]]) -> None:
        """Called in the transaction that records the outcomes."""
        del services, tx, outcomes

    async def run(self, job: Job) -> None:
        """Makes one attempt. Its outcome is written in one statement with others of the moment."""
        services, request = job.services, job.payload
        if not isinstance(request, self.request_type):
            async with job.read() as tx:
                request = (await self.load(tx, [job.ref_id])).get(job.ref_id)
        if request is None:
            # Deleted with its endpoint or its content, or sent already.
            return
        wait = await self.count_send(services, request)
        if wait is not None:
            await self._postpone(job, request, wait, by_receiver=False)
            return
        schedule = self.schedule(services, job.row, request)
        is_awaited = request.is_test and schedule.max_attempts == 1
        attempt = await self.attempt(services, request, is_awaited=is_awaited)
        step = next_step(attempt, schedule)
        if step.status == "postponed":
            await self._postpone(job, request, step.after_seconds or 0.0, by_receiver=True)
            return
        state = "cancelled" if attempt.is_cancelled else _STATES[step.status]
        # A failed test emits no event: the caller of the API reads the outcome.
        outcome = Outcome(job.row, request, attempt, step, "done" if is_awaited else state)
        job.outcome = await self._write(services, outcome)
        if is_awaited:
            await services.doorbell.announce_done(job.row.id)

    async def _postpone(self, job: Job, request: R, seconds: float, *, by_receiver: bool) -> None:
        """Waits for a rate limit; this attempt does not count."""
        job.pause_lane(seconds)
        async with job.checkpoint() as tx:
            await self.on_postponed(tx, request, by_receiver=by_receiver)
            await ledger.retry(
                await tx.raw(), job.row, after_seconds=seconds, error="rate_limited", uncounted=True
            )
        job.outcome = "postponed"

    async def _write(self, services: Services, outcome: Outcome[R]) -> str:
        """Returns the outcome of the job."""
        await asyncio.sleep(_BATCH_SECONDS)
        group, record = f"outcomes of {self.span_kind}", partial(self.record, services)
        state = await services.batches.join(group, outcome, record)
        if state is None:
            # Another transaction has locked its row, or the lease is lost.
            (state,) = await self._record(services, [outcome], skip_locked=False)
        if state is None:
            raise LeaseLost(outcome.work.id)
        return "retried" if state == "pending" else state

    async def record(
        self, services: Services, outcomes: list[Outcome[R]]
    ) -> list[str | Exception | None]:
        """Returns the state of the work after each outcome, None where its lease is lost or its row
        locked, or the error that prevented its recording; the others are recorded.
        """
        return await run_together(outcomes, partial(self._record, services))

    async def _record(
        self, services: Services, outcomes: list[Outcome[R]], *, skip_locked: bool = True
    ) -> list[str | None]:
        """Records outcomes of any tenants in one transaction."""
        async with services.db.tx(ALL_TENANTS) as tx:
            dead = [outcome for outcome in outcomes if outcome.state == "dead"]
            fallbacks = await self.find_fallbacks(services, tx, dead) if dead else {}
            rows = [
                self._build_row(outcome, has_fallback=outcome.request.delivery_id in fallbacks)
                for outcome in outcomes
            ]
            sql = self.sql.record_many if skip_locked else self.sql.record_one
            written = {row["id"] for row in await (await tx.raw()).fetch(sql, as_json(rows))}
            recorded = [outcome for outcome in outcomes if outcome.work.id in written]
            for outcome in recorded:
                if outcome.state == "dead":
                    with events.chain_of(outcome.work):
                        fallback = fallbacks.get(outcome.request.delivery_id)
                        if fallback is None or not await fallback():
                            await events.emit_dead(tx, outcome.work, outcome.attempt.error or "")
            await self.on_recorded(services, tx, recorded)
        return [str(row["state"]) if row["work_id"] in written else None for row in rows]

    def _build_row(self, outcome: Outcome[R], *, has_fallback: bool) -> dict[str, object]:
        request, attempt = outcome.request, outcome.attempt
        return {
            "work_id": outcome.work.id,
            "lease_token": outcome.work.lease_token,
            "state": "done" if has_fallback else outcome.state,
            "after": outcome.step.after_seconds,
            "error": attempt.error,
            "tenant_id": request.tenant_id,
            "delivery_id": request.delivery_id,
            "endpoint_id": request.endpoint_id,
            "number": request.attempts + 1,
            "status": outcome.step.status,
            "ms": attempt.milliseconds,
            **self.columns(request, attempt),
        }

    async def on_dead(self, _services: Services, tx: Tx, work: WorkRow, error: str) -> None:
        """Marks a delivery as failed whose work is dead without an outcome."""
        await fast.execute(tx, work.tenant_id or "", self.sql.fail, work.ref_id or "", error)

    async def read_spans(
        self, tx: Tx, tenant: str | None, correlation_id: str, _outer: Sequence[Span]
    ) -> list[Span]:
        """Returns a span for each delivery, from its creation to its end, with all attempts."""
        rows = await fast.rows(tx, tenant, self.sql.spans, correlation_id, events.MAX_SPANS)
        return [
            Span(
                self.span_kind,
                row["id"],
                row["cause_id"],
                row["name"],
                row["status"],
                row["created_at"],
                clock.milliseconds(row["created_at"], row["finished_at"] or clock.now()),
                is_waiting=row["status"] == "pending",
                error=row["error"],
            )
            for row in rows
        ]
