"""Lists work that is not done, and retries or dismisses work that has failed for good."""

from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from msgspec import UNSET

from app.domain.area import AreaJob, Areas
from app.domain.platform.events import api as events
from app.kit import paging
from app.kit.errors import Invalid
from app.kit.paging import Page, Paged
from app.services import Services
from db import dead_work
from db.fast import Row, tenant_of
from db.ledger import WorkRow
from db.session import Tx

from . import queries
from .errors import WorkNotDead, WorkNotFound, WorkNotRetryable
from .events import WorkDismissed, WorkRetried
from .queries import Filter
from .schemas import (
    MAX_RETRIED,
    KindLoad,
    QueueLoad,
    QueueLoads,
    RetriedWork,
    RetryWork,
    WorkStatus,
    WorkView,
)

_STATUSES: Final[dict[str, WorkStatus]] = {
    "dead": "dead",
    "pending": "waiting",
    "leased": "running",
}
_UNKNOWN: Final = "Nothing in this version runs it"


async def list_page(
    tx: Tx,
    services: Services,
    page: Page,
    filters: Filter,
) -> Paged[WorkView]:
    rows, total = await queries.list_page(tx, filters, page)
    return paging.paged([_build_view(services, row) for row in rows], total, page)


def check_kind(services: Services, kind: str | None) -> None:
    jobs = services.get(Areas).jobs
    if kind is not None and kind not in jobs:
        raise Invalid.field("kind", f"must be one of {', '.join(sorted(jobs))}")


async def get(tx: Tx, services: Services, work_id: str) -> WorkView:
    row = await queries.find(tx, work_id)
    if row is None:
        raise _not_found(work_id)
    return _build_view(services, row)


async def list_queues(tx: Tx, services: Services) -> QueueLoads:
    jobs = services.get(Areas).jobs
    loads = []
    for row in await queries.count_by_kind(tx):
        job = jobs.get(row["kind"])
        load = KindLoad(title=_title_of(job, row["kind"]), **dict(row))  # type: ignore[call-overload]
        loads.append((job.kind.queue if job is not None else "", load))
    loads.sort(key=lambda item: (item[0], item[1].kind))
    return QueueLoads(
        [
            _build_queue(queue, [load for _, load in items])
            for queue, items in groupby(loads, key=lambda item: item[0])
        ]
    )


# Changing


async def retry(tx: Tx, services: Services, work_id: str) -> WorkView:
    work = await _lock_dead(tx, work_id)
    job = services.get(Areas).jobs.get(work.kind)
    if job is None or not job.can_retry:
        raise WorkNotRetryable(_instead_of(job) or _UNKNOWN)
    if not await _restore(tx, services, job, work):
        raise WorkNotRetryable(
            "What this work is for is gone, or was processed since; dismiss the work instead"
        )
    await _restart(tx, [work])
    return await get(tx, services, work_id)


async def retry_many(tx: Tx, services: Services, data: RetryWork) -> RetriedWork:
    jobs = services.get(Areas).jobs
    kind = None if data.kind is UNSET else data.kind
    check_kind(services, kind)
    kinds = [name for name, job in jobs.items() if job.can_retry and kind in {None, name}]
    record_id = None if data.record_id is UNSET else data.record_id
    ids = None if data.ids is UNSET else data.ids
    rows = await queries.lock_many(tx, Filter("dead", kinds, record_id), ids, MAX_RETRIED + 1)
    restarted, dismissed = list[WorkRow](), list[WorkRow]()
    for work in rows[:MAX_RETRIED]:
        is_restored = await _restore(tx, services, jobs[work.kind], work)
        (restarted if is_restored else dismissed).append(work)
    if restarted:
        await _restart(tx, restarted)
    if dismissed:
        await _dismiss(tx, dismissed)
    return RetriedWork(len(restarted), len(dismissed), len(rows) > MAX_RETRIED)


async def dismiss(tx: Tx, work_id: str) -> None:
    work = await _lock_dead(tx, work_id)
    await _dismiss(tx, [work])


async def _restart(tx: Tx, rows: list[WorkRow]) -> None:
    await dead_work.restart(tx, tenant_of(tx), [work.id for work in rows])
    await _emit(tx, WorkRetried, rows)


async def _dismiss(tx: Tx, rows: list[WorkRow]) -> None:
    await dead_work.dismiss(tx, tenant_of(tx), [work.id for work in rows])
    await _emit(tx, WorkDismissed, rows)


async def _emit(
    tx: Tx, event: type[WorkRetried] | type[WorkDismissed], rows: list[WorkRow]
) -> None:
    """Emits one event per tenant. Work of the instance has no event log."""
    of_tenants: dict[str, list[WorkRow]] = {}
    for work in rows:
        if work.tenant_id is not None:
            of_tenants.setdefault(work.tenant_id, []).append(work)
    for tenant_id, own in of_tenants.items():
        kinds = sorted({work.kind for work in own})
        await events.emit(tx, event([work.id for work in own], kinds), tenant_id=tenant_id)


async def _restore(tx: Tx, services: Services, job: AreaJob, work: WorkRow) -> bool:
    return job.on_retry is None or await job.on_retry(services, tx, work)


async def _lock_dead(tx: Tx, work_id: str) -> WorkRow:
    locked = await queries.lock(tx, work_id)
    if locked is None or locked[1] not in _STATUSES:
        raise _not_found(work_id)
    if locked[1] != "dead":
        raise WorkNotDead(f"This work has not failed for good; it is {_STATUSES[locked[1]]}")
    return locked[0]


# Answers


def _build_view(services: Services, row: Row) -> WorkView:
    job = services.get(Areas).jobs.get(row["kind"])
    lease_until: datetime | None = row["lease_until"]
    last_seen_at = None
    if lease_until is not None:
        last_seen_at = lease_until - timedelta(seconds=services.settings.lease_seconds)
    names = ("id", "tenant_id", "kind", "is_stuck", "record_id", "error", "attempt")
    more = ("max_attempts", "correlation_id", "created_at", "run_at", "started_at", "finished_at")
    return WorkView(
        **{name: row[name] for name in (*names, *more)},
        title=_title_of(job, row["kind"]),
        queue=job.kind.queue if job is not None else "",
        status=_STATUSES[row["state"]],
        can_retry=row["state"] == "dead" and job is not None and job.can_retry,
        instead=_instead_of(job),
        last_seen_at=last_seen_at,
    )


def _build_queue(name: str, kinds: list[KindLoad]) -> QueueLoad:
    oldest = [kind.oldest_waiting_at for kind in kinds if kind.oldest_waiting_at is not None]
    return QueueLoad(
        queue=name,
        waiting=sum(kind.waiting for kind in kinds),
        scheduled=sum(kind.scheduled for kind in kinds),
        running=sum(kind.running for kind in kinds),
        dead=sum(kind.dead for kind in kinds),
        oldest_waiting_at=min(oldest, default=None),
        oldest_waiting_seconds=max(kind.oldest_waiting_seconds for kind in kinds),
        kinds=kinds,
    )


def _title_of(job: AreaJob | None, kind: str) -> str:
    return job.title if job is not None else kind


def _instead_of(job: AreaJob | None) -> str | None:
    return job.instead if job is not None else _UNKNOWN


def _not_found(work_id: str) -> WorkNotFound:
    return WorkNotFound(f"There is no unfinished work {work_id[:64]}")
