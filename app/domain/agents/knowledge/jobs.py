"""Job functions of knowledge bases: documents, and the tables of their chunks."""

import asyncio
from typing import Literal

import msgspec

from app.domain.agents.llm.errors import TRANSIENT, ModelFailed, ModelNotConfigured
from app.domain.area import Areas, TrainingOutcome
from app.domain.job import Job, LeaseLost, Postpone, Retry
from app.domain.platform.events import api as events
from app.jobs import background
from app.services import Services
from db.fast import Row
from db.ledger import WorkRow
from db.session import Tx

from . import (
    ingestion,
    languages,
    maintenance,
    queries,
    reconciliation,
    refining,
    table_queries,
)
from .chunk_store import ChunkStore
from .chunks import EmbeddedDocument
from .embedding import embed_texts
from .encoders.idle_threads import IdleThreads
from .events import DocumentProcessed
from .files import document_folder
from .ingestion import MAINTAIN_SECONDS
from .lance import TableRef
from .parsing import Unreadable
from .progress import EmbeddingProgress
from .writer_lease import NoKnowledgeBase, TableBusy, TableReplaced, Writer, hold_table

# When a table is rebuilt after chunks were removed, whose text its files still have.
_REBUILD_SECONDS = 5.0
# A document that was read is not read again for a short wait.
_WAIT_SECONDS = 60.0
# As many as a source has, which are removed together.
_MAX_REMOVED = 1000


async def ingest_document(job: Job) -> None:
    async with job.checkpoint() as tx:
        row = await queries.start(tx, job.tenant_id, job.ref_id)
    if row is None:
        # Deleted, or finished already.
        return
    try:
        with job.services.get(IdleThreads).give_way():
            document = await _read_and_embed(job, row)
            await _write(job, row["agent_id"], document)
    except NoKnowledgeBase:
        return
    except Unreadable as error:
        await _fail(job, row, f"The file {error}")
    except ModelNotConfigured as error:
        await _fail(job, row, f"The text cannot be embedded: {error.message}")
    except ModelFailed as error:
        if error.reason in TRANSIENT and job.row.attempt < job.row.max_attempts:
            raise Retry(f"the embedding model did not answer: {error.reason}") from error
        await _fail(job, row, f"The text cannot be embedded: {error.message}")
    except (TableBusy, TableReplaced) as error:
        raise Postpone from error


async def _read_and_embed(job: Job, row: Row) -> EmbeddedDocument:
    services, tenant_id = job.services, job.tenant_id
    chunks = await ingestion.read_document(services, row)
    async with job.read() as tx:
        base = await table_queries.find_base(tx, tenant_id, row["agent_id"])
    if base is None:
        raise NoKnowledgeBase(row["agent_id"])
    model, texts = base["embedding_model"], [chunk.text for chunk in chunks]
    progress = EmbeddingProgress(job, row["version"], len(texts))
    vectors = await embed_texts(services, tenant_id, row["agent_id"], model, texts, progress.store)
    language = await asyncio.to_thread(languages.tell, texts)
    return EmbeddedDocument(
        job.ref_id,
        row["name"],
        row["version"],
        model,
        chunks,
        vectors,
        language,
        row["chosen_language"],
    )


async def _write(job: Job, agent_id: str, document: EmbeddedDocument) -> None:
    """Writes the chunks and the outcome under the lease of the table."""
    async with hold_table(job.services, job.tenant_id, agent_id, _WAIT_SECONDS) as writer:
        await background.run_to_end(_replace_chunks(job, writer, document))


async def _replace_chunks(job: Job, writer: Writer, document: EmbeddedDocument) -> None:
    """A newer version of the document has work of its own: then this does nothing."""
    services, tenant_id, version = job.services, job.tenant_id, document.version
    if writer.embedding_model != document.model:
        raise TableReplaced(writer.table.name)
    async with job.read() as tx:
        if not await queries.is_current(tx, tenant_id, job.ref_id, version):
            return
    removed = await ingestion.replace_chunks(services, writer, document)
    try:
        async with job.finish() as tx:
            await job.hold(tx)
            ids, count = (tenant_id, job.ref_id), len(document.chunks)
            ended = await queries.end(
                tx, *ids, version, "ready", chunk_count=count, language=document.language
            )
            await _report(services, tx, *ids, ended, "ready")
            await table_queries.add_contents(
                tx, tenant_id, writer.table.agent_id, language=document.word_language
            )
            await writer.record_change(tx, removed=removed, maintain_seconds=MAINTAIN_SECONDS)
    except (LeaseLost, TableReplaced):
        # The document was replaced or deleted, or another process took over. Corrected once the
        # lease is free.
        background.spawn(_correct_table(services, tenant_id, writer.table.agent_id))
        raise


async def _correct_table(services: Services, tenant_id: str, agent_id: str) -> None:
    """The next sweep would do it too."""
    try:
        await reconciliation.reconcile(services, tenant_id, agent_id, removed=True)
    except NoKnowledgeBase:
        await maintenance.remove_agent(services, agent_id)
    except (TableBusy, TableReplaced):
        return


async def _fail(job: Job, row: Row, error: str) -> None:
    async with job.finish() as tx:
        await job.hold(tx)
        ids = (job.tenant_id, job.ref_id)
        ended = await queries.end(tx, *ids, row["version"], "failed", error=error)
        await _report(job.services, tx, *ids, ended, "failed", error)


async def _report(
    services: Services,
    tx: Tx,
    tenant_id: str,
    document_id: str,
    row: Row | None,
    status: Literal["ready", "failed"],
    error: str | None = None,
) -> None:
    """Emits the event, and adds to the agent's log. `row` is None for a version that was replaced
    or deleted meanwhile.
    """
    if row is None:
        return
    event = DocumentProcessed(
        row["agent_id"], document_id, row["name"], status, row["chunk_count"], error
    )
    await events.emit(tx, event, tenant_id=tenant_id)
    outcome = f"{row['chunk_count']} chunks" if error is None else error
    data = msgspec.to_builtins(event)
    training = TrainingOutcome(tenant_id, row["agent_id"], f"{row['name']}: {outcome}", data)
    await services.get(Areas).on_training(tx, training)


async def on_dead_document(services: Services, tx: Tx, work: WorkRow, error: str) -> None:
    tenant_id, document_id = work.tenant_id or "", work.ref_id or ""
    reason = explain(error)
    row = await queries.fail(tx, tenant_id, document_id, reason)
    await _report(services, tx, tenant_id, document_id, row, "failed", reason)


def explain(error: str) -> str:
    """Says what helps. `error` is that of the last attempt, as the ledger has it."""
    if error.startswith("unexpected "):
        name = error.removeprefix("unexpected ")
        return (
            f"The file could not be read because of an internal error ({name}). Retry it; if it "
            "fails again, ask those who run this instance to look into the log"
        )
    if error.startswith("took more than"):
        return f"The file could not be read: it {error}. Split it into smaller files"
    if "embedding model" in error:
        return f"The text cannot be embedded: {error}. Retry it when the model answers again"
    return f"The file could not be read: {error}. Retry it"


async def on_retry_document(_services: Services, tx: Tx, work: WorkRow) -> bool:
    return await queries.wait_again(tx, work.tenant_id or "", work.ref_id or "", work.id)


async def remove_document(job: Job) -> None:
    """Removes all hidden documents of the agent at once, because each commit takes a while."""
    async with job.read() as tx:
        row = await queries.find_hidden(tx, job.tenant_id, job.ref_id)
    if row is None:
        # Other work has removed it.
        return
    try:
        async with hold_table(job.services, job.tenant_id, row["agent_id"]) as writer:
            await background.run_to_end(_remove_hidden(job, writer))
    except NoKnowledgeBase:
        return
    except (TableBusy, TableReplaced) as error:
        raise Postpone from error


async def _remove_hidden(job: Job, writer: Writer) -> None:
    services, tenant_id, agent_id = job.services, job.tenant_id, writer.table.agent_id
    async with job.read() as tx:
        rows = await queries.list_hidden(tx, tenant_id, agent_id, job.ref_id, _MAX_REMOVED)
    if not rows:
        # Other work has removed them while this one waited.
        return
    ids = [row["id"] for row in rows]
    await services.get(ChunkStore).delete_documents(writer.table, ids)
    for row in rows:
        await services.files.delete_folder(document_folder(agent_id, row["id"]))
        if row["file_key"] is not None:
            await services.files.delete(row["file_key"])
    async with job.finish() as tx:
        await job.hold(tx)
        await queries.delete(tx, tenant_id, ids)
        # An earlier attempt may have removed the chunks, whose text is still in the files.
        await writer.record_change(tx, removed=True, maintain_seconds=_REBUILD_SECONDS)


async def maintain_table(job: Job) -> None:
    try:
        await maintenance.maintain(job.services, job.tenant_id, job.ref_id)
    except NoKnowledgeBase:
        # The agent was deleted while a new table was filled.
        await maintenance.remove_agent(job.services, job.ref_id)
    except (TableBusy, TableReplaced) as error:
        raise Postpone from error


async def refine_documents(job: Job) -> None:
    try:
        await refining.refine(job.services, job.tenant_id, job.ref_id)
    except NoKnowledgeBase:
        return
    except (TableBusy, TableReplaced) as error:
        raise Postpone from error


async def on_dead_refining(_services: Services, tx: Tx, work: WorkRow, _error: str) -> None:
    await refining.delay(tx, work.tenant_id or "", work.ref_id or "")


async def on_retry_refining(_services: Services, _tx: Tx, _work: WorkRow) -> bool:
    """What is still to be refined is found when it runs."""
    return True


async def drop_table(job: Job) -> None:
    ref = TableRef.parse(job.ref_id)
    if ref is not None:
        await job.services.get(ChunkStore).drop(ref)


async def remove_agent(job: Job) -> None:
    await maintenance.remove_agent(job.services, job.ref_id)


async def sweep_tables(job: Job) -> None:
    await maintenance.sweep(job.services)
    await reconciliation.reconcile_all(job.services)
