"""Documents of an agent: listing, changing, indexing again, deleting."""

from collections.abc import AsyncIterator

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.platform.events import api as events
from app.domain.platform.files import api as files
from app.jobs import work
from app.kit import paging, trace
from app.kit.errors import Conflict
from app.kit.files import FileNotStored
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json
from app.services import Services
from db import dead_work
from db.fast import Row, tenant_of
from db.lists import Total
from db.session import Scope, Tx

from . import progress_queries, queries
from .chunk_store import ChunkStore
from .errors import DocumentNotFound
from .events import DocumentDeleted
from .lance import TableMissing, TableRef
from .metadata import list_columns
from .schemas import ChunkView, DocumentChange, DocumentView, ListConditions, RetriedDocuments
from .work_kinds import INGEST, REMOVE_DOCUMENT

# Reading


async def list_page(
    tx: Tx,
    agent_id: str,
    page: Page,
    *,
    search: str | None,
    sort: str | None,
    conditions: ListConditions,
) -> Paged[DocumentView]:
    views, total = await queries.list_page(
        tx, agent_id, page, search=search, sort=sort, conditions=conditions
    )
    if not views:
        await agents.require(tx, agent_id)
    return paging.paged(views, total, page)


async def get(tx: Tx, agent_id: str, document_id: str) -> DocumentView:
    view = await queries.find(tx, agent_id, document_id)
    if view is None:
        raise _not_found(document_id)
    return view


async def list_chunks(
    services: Services, scope: Scope, agent_id: str, document_id: str, page: Page
) -> Paged[ChunkView]:
    async with services.db.tx(scope, autocommit=True) as tx:
        row = await queries.find_table(tx, agent_id, document_id)
    if row is None:
        raise _not_found(document_id)
    total = Total(row["chunk_count"])
    if row["generation"] is None or page.offset >= total.count:
        return paging.paged([], total, page)
    table = TableRef(agent_id, row["generation"])
    try:
        chunks = await services.get(ChunkStore).list_chunks(
            table, row["revision"], document_id, page.offset, page.per_page
        )
    except TableMissing:
        chunks = []
    views = [
        ChunkView(chunk.position, chunk.text, chunk.page, chunk.row, chunk.heading)
        for chunk in chunks
    ]
    return paging.paged(views, total, page)


class OriginalFile(msgspec.Struct, frozen=True):
    name: str
    mime_type: str
    size_bytes: int
    parts: AsyncIterator[bytes]


async def open_content(
    services: Services, scope: Scope, agent_id: str, document_id: str
) -> OriginalFile:
    """Returns the file as it was uploaded last."""
    async with services.db.tx(scope, autocommit=True) as tx:
        row = await queries.find_file(tx, agent_id, document_id)
    if row is None:
        raise _not_found(document_id)
    missing = DocumentNotFound("The file of this document is not stored; upload it again")
    if row["file_key"] is None:
        raise missing
    try:
        parts = await services.files.open(row["file_key"])
    except FileNotStored:
        raise missing from None
    return OriginalFile(row["name"], row["mime_type"], row["size_bytes"], parts)


# Changing


async def change(tx: Tx, agent_id: str, document_id: str, data: DocumentChange) -> DocumentView:
    metadata = as_json(list_columns(data))
    view = await queries.change(tx, agent_id, document_id, metadata)
    if view is None:
        raise _not_found(document_id)
    return view


async def reindex(tx: Tx, services: Services, agent_id: str, document_id: str) -> DocumentView:
    """Reads the stored file again. The chunks of the last reading stay until then."""
    row = await _find_work(tx, agent_id, document_id)
    if row["file_key"] is None:
        raise Conflict("The file of this document was refused and not stored; upload it again")
    tenant_id = row["tenant_id"]
    if row["work_id"] is not None:
        await work.cancel(tx, services.doorbell, tenant_id, row["work_id"])
        await dead_work.dismiss(tx, tenant_id, [row["work_id"]])
    work_id = await work.accept(tx, INGEST, tenant_id=tenant_id, ref_id=document_id)
    view = await queries.restart(tx, tenant_id, document_id, work_id)
    if view is None:
        raise _not_found(document_id)
    return view


async def retry_failed(tx: Tx, agent_id: str) -> RetriedDocuments:
    """Reads the stored files of all failed documents again."""
    rows = await progress_queries.lock_failed(tx, tenant_of(tx), agent_id)
    if not rows:
        await agents.require(tx, agent_id)
        return RetriedDocuments(0, 0)
    tenant_id, stored = rows[0]["tenant_id"], [row for row in rows if row["is_stored"]]
    ids, work_ids = [row["id"] for row in stored], [new_id("wrk") for _ in stored]
    old = [row["work_id"] for row in stored if row["work_id"] is not None]
    # Work is locked before its document everywhere else, but dead work is not run.
    await dead_work.dismiss(tx, tenant_id, old)
    correlation_id = trace.current().correlation_id
    await progress_queries.restart_many(tx, tenant_id, ids, work_ids, correlation_id)
    return RetriedDocuments(len(stored), len(rows) - len(stored))


async def delete(tx: Tx, services: Services, agent_id: str, document_id: str) -> None:
    """Hides the document at once; a worker removes its chunks."""
    row = await _find_work(tx, agent_id, document_id)
    tenant_id = row["tenant_id"]
    # An upload of the same name must find the document as it is, or not at all.
    await queries.lock_uploads(tx, tenant_id, agent_id)
    if row["work_id"] is not None:
        await work.cancel(tx, services.doorbell, tenant_id, row["work_id"])
    work_id = await work.accept(tx, REMOVE_DOCUMENT, tenant_id=tenant_id, ref_id=document_id)
    hidden = await queries.hide(tx, tenant_id, document_id, work_id)
    if hidden is None:
        raise _not_found(document_id)
    if hidden["file_key"] is not None:
        await files.release(tx, services, tenant_id, [hidden["file_key"]])
    deleted = DocumentDeleted(agent_id, document_id, row["name"])
    await events.emit(tx, deleted, tenant_id=tenant_id)


async def _find_work(tx: Tx, agent_id: str, document_id: str) -> Row:
    row = await queries.find_work(tx, agent_id, document_id)
    if row is None:
        raise _not_found(document_id)
    return row


def _not_found(document_id: str) -> DocumentNotFound:
    return DocumentNotFound(f"This agent has no document {document_id[:64]}")
