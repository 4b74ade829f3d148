"""The job function of imports into data tables."""

import asyncio
from functools import partial

from app.domain.job import Job
from app.domain.platform.events import api as events
from app.kit.files import FileNotStored
from app.services import Services
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

from . import import_queries, imports, rows
from .csv_reader import CsvFile, decode
from .errors import DataTableNotFound, RowQuotaExceeded, TableFull, UnreadableFile
from .events import DataTableImported


async def import_rows(job: Job) -> None:
    """Stores the rows of a file in batches. Each batch is committed with its progress, so that an
    import that is interrupted continues with the next row.
    """
    async with job.checkpoint() as tx:
        row = await import_queries.start(tx, job.tenant_id, job.ref_id)
    if row is None:
        return
    try:
        await _import(job, row)
    except UnreadableFile as error:
        await _end(job, row, "failed", f"The file {error}")
    except (TableFull, RowQuotaExceeded) as error:
        await _end(job, row, "failed", error.message)
    except DataTableNotFound:
        await _end(job, row, "cancelled", None)


async def _import(job: Job, row: Row) -> None:
    try:
        content = await job.services.files.read(row["file_key"])
    except FileNotStored:
        raise UnreadableFile("is no longer stored; upload it again") from None
    text = await asyncio.to_thread(decode, content)
    # Up to 25 MB, which the import would hold as long as it runs.
    del content
    if row["rows_total"] is None:
        # Also finds out whether all of the file can be read, before the first row is stored.
        total = await asyncio.to_thread(lambda: CsvFile(text, row["delimiter"]).count())
        async with job.checkpoint() as tx:
            await import_queries.set_total(tx, job.tenant_id, job.ref_id, total)
    file = await asyncio.to_thread(CsvFile, text, row["delimiter"])
    done = row["rows_done"]
    await asyncio.to_thread(file.skip, done)
    while records := await asyncio.to_thread(file.read, imports.BATCH, imports.BATCH_CHARS):
        await _store_batch(job, row, file, records, done)
        done += len(records)
    await _end(job, row, "completed", None)


async def _store_batch(
    job: Job, row: Row, file: CsvFile, records: list[list[str]], done: int
) -> None:
    """Checks the records without a transaction, and again if the columns were changed meanwhile."""
    tenant_id, table_id = job.tenant_id, row["table_id"]
    async with job.read() as tx:
        table = await rows.load(tx, tenant_id, table_id)
    while True:
        batch = await asyncio.to_thread(imports.parse, table, file, records, done + 1)
        async with job.checkpoint() as tx:
            current = await rows.load(tx, tenant_id, table_id, for_rows=True)
            if current.revision == table.revision:
                problems = await imports.store(tx, current, batch, row["match_key"])
                await import_queries.add_progress(
                    tx, tenant_id, job.ref_id, len(records), len(problems), list(problems)
                )
                return
        table = current


async def _end(job: Job, row: Row, status: str, error: str | None) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        ended = await import_queries.end(tx, job.tenant_id, job.ref_id, status, error)
        if ended is not None and status == "completed":
            counts = (ended["rows_done"], ended["rows_failed"])
            event = DataTableImported(ended["table_id"], job.ref_id, *counts)
            await events.emit(tx, event, tenant_id=job.tenant_id)
    await job.services.files.delete(row["file_key"])


async def on_dead_import(services: Services, tx: Tx, work: WorkRow, error: str) -> None:
    reason = f"The import was interrupted: {error}"
    row = await import_queries.end(tx, work.tenant_id or "", work.ref_id or "", "failed", reason)
    if row is not None:
        tx.after_commit.append(partial(services.files.delete, row["file_key"]))
