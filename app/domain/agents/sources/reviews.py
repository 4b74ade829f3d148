"""Applies the changes of a review. Each is settled once it is taken in, so that another worker goes
on with the rest.
"""

import asyncio
from collections import Counter
from typing import Final

from app.domain.agents.knowledge.api import source_documents
from app.domain.job import Job
from app.domain.platform.events import api as events
from app.domain.platform.files import api as files
from app.kit.files import FileNotStored
from db.fast import Row

from . import applying, entry_queries, queries
from .events import SourceSynced
from .failures import DocumentSkipped, OutOfTime
from .settings import Source

_TURN_SECONDS: Final = 240.0


async def apply_waiting(job: Job, source: Source) -> None:
    """Raises SyncFailed when the documents cannot be stored, and OutOfTime."""
    deadline = asyncio.get_running_loop().time() + _TURN_SECONDS
    ids = (source.tenant_id, source.id)
    async with job.read() as tx:
        rows = await entry_queries.list_waiting(tx, *ids)
    counts: Counter[str] = Counter()
    for row in rows:
        if asyncio.get_running_loop().time() > deadline:
            raise OutOfTime
        if row["change"] != "removed":
            counts[row["change"]] += await _take_in(job, source, row)
    gone = [row["url"] for row in rows if row["change"] == "removed"]
    async with job.finish() as tx:
        await job.hold(tx)
        removed = await source_documents.delete(
            tx, job.services, source.tenant_id, source.agent_id, source.id, gone
        )
        await entry_queries.delete(tx, *ids, gone)
        await queries.set_status(tx, *ids)
        changes = (counts["added"], counts["changed"], removed)
        if any(changes):
            synced = SourceSynced(source.agent_id, source.id, source.name, *changes)
            await events.emit(tx, synced, tenant_id=source.tenant_id)


async def _take_in(job: Job, source: Source, row: Row) -> bool:
    """False when the content is lost, or cannot be a document; then it waits, or is read again."""
    services, ids = job.services, (source.tenant_id, source.id)
    try:
        body = await services.files.read(row["file_key"])
        await applying.take_in(
            services,
            source,
            row["url"],
            applying.vary_name(row["name"], row["url"]),
            body,
            row["document_name"],
        )
    except FileNotStored:
        async with job.checkpoint() as tx:
            await entry_queries.forget(tx, *ids, row["url"])
        return False
    except DocumentSkipped:
        return False
    async with job.checkpoint() as tx:
        await entry_queries.settle(tx, *ids, row["url"], row["file_key"])
        await files.release(tx, services, source.tenant_id, [row["file_key"]])
    return True
