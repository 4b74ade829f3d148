"""The end of a sync: removals, status, the next time and events."""

from app.domain.agents.knowledge.api import source_documents
from app.domain.job import Job
from app.domain.platform.events import api as events
from app.domain.platform.files import api as files
from app.kit import clock
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import entry_queries, queries, schedules
from .events import SourceChangesFound, SourceFailed, SourceSynced
from .failures import SyncFailed, make_printable
from .settings import Source

# So many documents, of which more than half vanish, are a fault of the site more often than not.
_MIN_MASS = 10
_MAX_ERROR_CHARS = 500


async def complete(job: Job, source: Source, left_out: int) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        removed, is_held = await _remove(tx, job.services, source)
        next_sync_at = schedules.find_next(source.schedule, clock.now())
        ids = (source.tenant_id, source.id)
        row = await queries.complete(tx, *ids, source.schedule, next_sync_at, left_out, removed)
        if row is not None:
            await _emit(tx, source, row, is_held=is_held)


async def _remove(tx: Tx, services: Services, source: Source) -> tuple[int, bool]:
    """Returns how many documents are gone since the sync before, and whether a review is needed."""
    ids = (source.tenant_id, source.id)
    gone = await entry_queries.list_gone(
        tx,
        *ids,
        source.sync_no,
        lists_all=source.kind.lists_all,
        max_documents=source.max_documents,
    )
    urls = [row["url"] for row in gone if row["has_document"]]
    total = await entry_queries.count_documents(tx, *ids)
    is_mass = total >= _MIN_MASS and len(urls) * 2 > total
    is_held = bool(urls) and (source.is_reviewed or is_mass)
    keys = [row["file_key"] for row in gone if row["file_key"] is not None]
    await files.release(tx, services, source.tenant_id, keys)
    if is_held:
        await entry_queries.set_removed(tx, *ids, urls)
    else:
        agent_ids = (source.tenant_id, source.agent_id, source.id)
        await source_documents.delete(tx, services, *agent_ids, urls)
    kept = set(urls) if is_held else set()
    await entry_queries.delete(tx, *ids, [row["url"] for row in gone if row["url"] not in kept])
    new = sum(row["has_document"] and not (is_held and row["is_known"]) for row in gone)
    return new, is_held and not source.is_reviewed


async def _emit(tx: Tx, source: Source, row: Row, *, is_held: bool) -> None:
    counts = (row["added_count"], row["changed_count"], row["removed_count"])
    names = (source.agent_id, source.id, source.name)
    if source.is_reviewed:
        if any(counts):
            found = SourceChangesFound(*names, *counts, "review", source.created_by)
            await events.emit(tx, found, tenant_id=source.tenant_id)
        return
    added, changed, removed = counts
    applied = (added, changed, 0 if is_held else removed)
    if is_held and removed:
        found = SourceChangesFound(*names, 0, 0, removed, "mass_removal", source.created_by)
        await events.emit(tx, found, tenant_id=source.tenant_id)
    if any(applied):
        await events.emit(tx, SourceSynced(*names, *applied), tenant_id=source.tenant_id)


async def fail(tx: Tx, row: Row, failure: SyncFailed) -> None:
    """`row` has the settings. Several failures in a row are reported, once."""
    now, failed_count, schedule = clock.now(), row["failed_count"] + 1, row["schedule"]
    is_failed = schedules.is_failed(schedule, failed_count)
    was_failed = failed_count > 1 and schedules.is_failed(schedule, failed_count - 1)
    error = make_printable(str(failure)[:_MAX_ERROR_CHARS])
    await queries.fail(
        tx,
        row["tenant_id"],
        row["id"],
        "failed" if is_failed else "retrying",
        error,
        schedules.find_wait(now, failure.wait_seconds),
        schedule,
        schedules.find_retry(schedule, now, failed_count, failure.wait_seconds),
    )
    if is_failed and not was_failed:
        names = (row["agent_id"], row["id"], row["name"])
        event = SourceFailed(*names, error, failed_count, row["created_by"])
        await events.emit(tx, event, tenant_id=row["tenant_id"])
