from typing import Final

from app.domain.agents.llm.api import Models
from app.domain.area import AgentDeletion, Area, AreaJob, PeriodicTask
from app.jobs import work
from app.services import Services
from db.storage_quota import CountedTable, UncountedTable

from . import jobs, maintenance, queries, refining, table_queries
from .chunk_store import ChunkStore
from .embedders import Embedder
from .encoders.idle_threads import IdleThreads
from .encoders.registry import SentenceEncoders
from .evaluations import EvaluationLimit
from .events import DocumentDeleted, DocumentProcessed
from .file_reader import FileReader
from .work_kinds import DROP_TABLE, INGEST, MAINTAIN, REFINE, REMOVE_AGENT, REMOVE_DOCUMENT, SWEEP


def _create_shared(
    services: Services,
) -> tuple[ChunkStore, Embedder, FileReader, SentenceEncoders, IdleThreads, EvaluationLimit]:
    settings = services.settings
    return (
        ChunkStore(settings.lancedb_uri, settings.data_dir),
        Embedder(services.get(Models)),
        FileReader(),
        SentenceEncoders(settings.data_dir / "encoders", enabled=settings.sentence_encoders),
        IdleThreads(),
        EvaluationLimit(),
    )


async def _remove_documents(deletion: AgentDeletion) -> None:
    """Stops the reading of documents, and accepts the removal of tables and files."""
    tx, tenant_id = deletion.tx, deletion.tenant_id
    work_ids = await queries.list_unfinished_work(tx, tenant_id, deletion.agent_ids)
    await work.cancel_many(tx, deletion.services.doorbell, tenant_id, work_ids)
    for agent_id in await table_queries.list_with_base(tx, tenant_id, deletion.agent_ids):
        await work.accept(
            tx, REMOVE_AGENT, tenant_id=tenant_id, ref_id=agent_id, dedupe_key=agent_id
        )


# The text and the vector of a chunk.
_CHUNK_BYTES = 2560

AREA: Final = Area(
    name="knowledge",
    events=(DocumentProcessed, DocumentDeleted),
    jobs=(
        AreaJob(
            INGEST,
            jobs.ingest_document,
            "Read a document",
            on_dead=jobs.on_dead_document,
            on_retry=jobs.on_retry_document,
        ),
        AreaJob(REMOVE_DOCUMENT, jobs.remove_document, "Remove a deleted document"),
        AreaJob(MAINTAIN, jobs.maintain_table, "Maintain the search index of an agent"),
        AreaJob(
            REFINE,
            jobs.refine_documents,
            "Refine the search in documents",
            on_dead=jobs.on_dead_refining,
            on_retry=jobs.on_retry_refining,
        ),
        AreaJob(DROP_TABLE, jobs.drop_table, "Delete a replaced search index"),
        AreaJob(REMOVE_AGENT, jobs.remove_agent, "Remove the documents of a deleted agent"),
        AreaJob(SWEEP, jobs.sweep_tables, "Delete search indexes that nobody needs"),
    ),
    periodic_tasks=(
        PeriodicTask(5.0, maintenance.accept_due),
        PeriodicTask(5.0, refining.accept_due),
        PeriodicTask(60.0, maintenance.mark_due),
        PeriodicTask(300.0, maintenance.accept_sweep),
    ),
    shared=_create_shared,
    before_agents_deleted=_remove_documents,
    tables=(
        CountedTable(
            "documents",
            "knowledge",
            f"{_CHUNK_BYTES} * t.chunk_count::bigint + coalesce(octet_length(t.fields::text), 0)"
            " + octet_length(array_to_string(t.tags || t.groups, ''))",
            changes="OLD.chunk_count <> NEW.chunk_count OR OLD.tags <> NEW.tags"
            " OR OLD.groups <> NEW.groups OR OLD.fields IS DISTINCT FROM NEW.fields",
        ),
        UncountedTable("knowledge_bases", "one for each agent"),
    ),
)
