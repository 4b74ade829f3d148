"""SQL of documents and knowledge bases."""

from app.domain.knowledge.schemas import DocumentStatus, DocumentView
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast, ledger
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Document
from db.session import Tx
from db.views import View

_VIEW = View(DocumentView)
_SORT_ORDERS = SortOrders(
    "-created_at",
    Document.id,
    name=Document.name,
    status=Document.status,
    size_bytes=Document.size_bytes,
    chunk_count=Document.chunk_count,
    created_at=Document.created_at,
    processed_at=Document.processed_at,
)
_VISIBLE = "($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND deleted_at IS NULL"
_FIND = f"SELECT {_VIEW.columns} FROM documents WHERE {_VISIBLE} AND id = $3"
_FIND_FILE = f"SELECT name, mime_type, file_key FROM documents WHERE {_VISIBLE} AND id = $3"

# What a reader needs of a document's knowledge base.
_FIND_TABLE = """
SELECT d.chunk_count, k.generation, k.revision
FROM documents d LEFT JOIN knowledge_bases k
  ON k.agent_id = d.agent_id AND k.tenant_id = d.tenant_id
WHERE ($1::text IS NULL OR d.tenant_id = $1) AND d.agent_id = $2 AND d.deleted_at IS NULL
  AND d.id = $3
"""

# Uploads

_COUNT = f"SELECT count(*) FROM documents WHERE {_VISIBLE}"
# Two uploads of one name must agree on its document.
_LOCK_UPLOADS = "SELECT pg_advisory_xact_lock(hashtextextended('documents:' || $1 || $2, 0))"
_ADD_KNOWLEDGE_BASE = """
INSERT INTO knowledge_bases (tenant_id, agent_id, embedding_model) VALUES ($1, $2, $3)
ON CONFLICT (agent_id) DO NOTHING
"""
_LIST_BY_NAME = """
SELECT id, name, file_key, work_id FROM documents
WHERE tenant_id = $1 AND agent_id = $2 AND name = ANY($3) AND deleted_at IS NULL
"""
# A document with this name is replaced. Its chunks stay until the new file was read.
_UPSERT = f"""
INSERT INTO documents AS d
    (tenant_id, id, agent_id, name, status, error, mime_type, size_bytes, sha256, file_key, work_id,
     processed_at)
VALUES ($1, $2, $3, $4, $5::text, $6, $7, $8, $9, $10, $11,
        CASE WHEN $5::text = 'failed' THEN now() END)
ON CONFLICT (agent_id, name) WHERE deleted_at IS NULL DO UPDATE
SET status = $5, error = $6, mime_type = $7, size_bytes = $8, sha256 = $9, file_key = $10,
    work_id = $11, version = d.version + 1, processed_at = excluded.processed_at
RETURNING {_VIEW.columns}
"""
_FIND_WORK = """
SELECT tenant_id, name, status, file_key, work_id FROM documents
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND id = $3 AND deleted_at IS NULL
"""
_RESTART = f"""
UPDATE documents SET status = 'pending', error = NULL, version = version + 1, work_id = $3,
    processed_at = NULL
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL
RETURNING {_VIEW.columns}
"""
_HIDE = """
UPDATE documents SET deleted_at = now(), work_id = $3
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL
"""

# Ingestion

_START = """
UPDATE documents SET status = 'processing'
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL AND status IN ('pending', 'processing')
RETURNING agent_id, name, version, file_key
"""
_END = """
UPDATE documents
SET status = $4, error = $5, chunk_count = coalesce($6, chunk_count), processed_at = now()
WHERE tenant_id = $1 AND id = $2 AND version = $3 AND deleted_at IS NULL
RETURNING agent_id, name, chunk_count
"""
_FAIL = """
UPDATE documents SET status = 'failed', error = $3, processed_at = now()
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL AND status IN ('pending', 'processing')
RETURNING agent_id, name, chunk_count
"""
_IS_CURRENT = """
SELECT EXISTS (SELECT 1 FROM documents
               WHERE tenant_id = $1 AND id = $2 AND version = $3 AND deleted_at IS NULL)
"""
_FIND_HIDDEN = """
SELECT agent_id, file_key FROM documents
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NOT NULL
"""
_DELETE = "DELETE FROM documents WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NOT NULL"

# The table of an agent

_BASE_COLUMNS = "tenant_id, agent_id, generation, revision, embedding_model, has_removed_chunks"
_FIND_BASE = f"""
SELECT {_BASE_COLUMNS} FROM knowledge_bases
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2
"""
_TAKE_WRITER = f"""
UPDATE knowledge_bases SET writer = $3, writer_until = now() + $4 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2 AND (writer_until IS NULL OR writer_until < now())
RETURNING {_BASE_COLUMNS}
"""
_RENEW_WRITER = """
UPDATE knowledge_bases SET writer_until = now() + $4 * interval '1 second'
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3
"""
_RELEASE_WRITER = """
UPDATE knowledge_bases SET writer = NULL, writer_until = NULL
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3
"""
_RECORD_CHANGE = """
UPDATE knowledge_bases
SET revision = revision + 1, has_removed_chunks = has_removed_chunks OR $5,
    maintain_at = least(maintain_at, now() + $6 * interval '1 second')
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3 AND generation = $4
"""
_RECORD_MAINTENANCE = """
UPDATE knowledge_bases SET revision = revision + 1
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3
"""
_SWAP = """
UPDATE knowledge_bases
SET generation = $5, embedding_model = $6, revision = revision + 1, has_removed_chunks = $7,
    maintain_at = CASE WHEN $7 THEN now() ELSE maintain_at END
WHERE tenant_id = $1 AND agent_id = $2 AND writer = $3 AND generation = $4
"""

# Maintenance

# Work for one agent does not run twice at a time.
_IS_UNATTENDED = f"NOT {ledger.unfinished_sql('w.ref_id = k.agent_id AND w.kind = $1')}"
_MARK_OTHER_MODELS = f"""
UPDATE knowledge_bases k SET maintain_at = now()
WHERE (k.embedding_model <> $2 OR k.has_removed_chunks) AND k.maintain_at IS NULL
  AND {_IS_UNATTENDED}
"""
_TAKE_DUE = f"""
UPDATE knowledge_bases SET maintain_at = NULL
WHERE agent_id IN (
    SELECT k.agent_id FROM knowledge_bases k WHERE k.maintain_at <= now() AND {_IS_UNATTENDED}
    ORDER BY k.maintain_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
RETURNING tenant_id, agent_id
"""
_UNFINISHED = """
SELECT work_id FROM documents
WHERE tenant_id = $1 AND agent_id = ANY($2) AND work_id IS NOT NULL
  AND (status IN ('pending', 'processing') OR deleted_at IS NOT NULL)
"""
_WITH_BASE = "SELECT agent_id FROM knowledge_bases WHERE tenant_id = $1 AND agent_id = ANY($2)"
_LIST_BASES = "SELECT tenant_id, agent_id, generation FROM knowledge_bases ORDER BY agent_id"
_LIST_READY = """
SELECT id, version, chunk_count FROM documents
WHERE tenant_id = $1 AND agent_id = $2 AND status = 'ready' AND deleted_at IS NULL
"""
_GENERATIONS = "SELECT agent_id, generation FROM knowledge_bases WHERE agent_id = ANY($1)"
_EXISTING_AGENTS = "SELECT id FROM agents WHERE id = ANY($1)"


# Reading


async def find(tx: Tx, agent_id: str, document_id: str) -> DocumentView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, agent_id, document_id)


async def list_page(
    tx: Tx, agent_id: str, page: Page, *, search: str | None, status: str | None, sort: str | None
) -> tuple[list[DocumentView], Total]:
    where = Where(tenant_of(tx), "deleted_at IS NULL")
    where.add("agent_id = $n", agent_id)
    where.contain(search, "name")
    where.equal("status", status)
    order = _SORT_ORDERS.sql(sort)
    return await paging.fetch(tx, _VIEW, "documents", where, order, page, tenant_is_implied=True)


async def find_file(tx: Tx, agent_id: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_FILE, agent_id, document_id)


async def find_table(tx: Tx, agent_id: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_TABLE, agent_id, document_id)


# Uploads


async def count(tx: Tx, tenant: str, agent_id: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT, agent_id))


async def lock_uploads(tx: Tx, tenant: str, agent_id: str) -> None:
    await fast.execute(tx, tenant, _LOCK_UPLOADS, agent_id)


async def add_knowledge_base(tx: Tx, tenant: str, agent_id: str, embedding_model: str) -> None:
    await fast.execute(tx, tenant, _ADD_KNOWLEDGE_BASE, agent_id, embedding_model)


async def list_by_name(tx: Tx, tenant: str, agent_id: str, names: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_BY_NAME, agent_id, names)


async def upsert(tx: Tx, tenant: str, document_id: str, *columns: object) -> DocumentView:
    """The columns are those of the statement, from agent_id to work_id."""
    view = await _VIEW.find(tx, tenant, _UPSERT, document_id, *columns)
    if view is None:
        raise RuntimeError("an upsert returned no row")
    return view


async def find_work(tx: Tx, agent_id: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_WORK, agent_id, document_id)


async def restart(tx: Tx, tenant: str, document_id: str, work_id: str) -> DocumentView | None:
    return await _VIEW.find(tx, tenant, _RESTART, document_id, work_id)


async def hide(tx: Tx, tenant: str, document_id: str, work_id: str) -> bool:
    return bool(await fast.execute(tx, tenant, _HIDE, document_id, work_id))


# Ingestion


async def start(tx: Tx, tenant: str, document_id: str) -> Row | None:
    """Returns None when there is nothing to do: it is finished, or deleted."""
    return await fast.row(tx, tenant, _START, document_id)


async def is_current(tx: Tx, tenant: str, document_id: str, version: int) -> bool:
    return bool(await fast.value(tx, tenant, _IS_CURRENT, document_id, version))


async def end(
    tx: Tx,
    tenant: str,
    document_id: str,
    version: int,
    status: DocumentStatus,
    *,
    error: str | None = None,
    chunk_count: int | None = None,
) -> Row | None:
    """Ends this version, unless there is a newer one. Without `chunk_count` it stays."""
    return await fast.row(tx, tenant, _END, document_id, version, status, error, chunk_count)


async def fail(tx: Tx, tenant: str, document_id: str, error: str) -> Row | None:
    return await fast.row(tx, tenant, _FAIL, document_id, error)


async def find_hidden(tx: Tx, tenant: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_HIDDEN, document_id)


async def delete(tx: Tx, tenant: str, document_id: str) -> None:
    await fast.execute(tx, tenant, _DELETE, document_id)


# The table of an agent


async def find_base(tx: Tx, tenant: str | None, agent_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_BASE, agent_id)


async def take_writer(
    tx: Tx, tenant: str, agent_id: str, writer: str, seconds: float
) -> Row | None:
    """Returns None while another writer has the table."""
    return await fast.row(tx, tenant, _TAKE_WRITER, agent_id, writer, seconds)


async def renew_writer(tx: Tx, tenant: str, agent_id: str, writer: str, seconds: float) -> None:
    await fast.execute(tx, tenant, _RENEW_WRITER, agent_id, writer, seconds)


async def release_writer(tx: Tx, tenant: str, agent_id: str, writer: str) -> None:
    await fast.execute(tx, tenant, _RELEASE_WRITER, agent_id, writer)


async def record_change(
    tx: Tx,
    tenant: str,
    agent_id: str,
    writer: str,
    generation: int,
    *,
    removed: bool,
    maintain_seconds: float,
) -> bool:
    """False when the lease was lost, or the table has been replaced."""
    args = (agent_id, writer, generation, removed, maintain_seconds)
    return bool(await fast.execute(tx, tenant, _RECORD_CHANGE, *args))


async def record_maintenance(tx: Tx, tenant: str, agent_id: str, writer: str) -> None:
    await fast.execute(tx, tenant, _RECORD_MAINTENANCE, agent_id, writer)


async def swap(
    tx: Tx,
    tenant: str,
    agent_id: str,
    writer: str,
    generations: tuple[int, int],
    embedding_model: str,
    *,
    removed: bool,
) -> bool:
    """Replaces the first generation by the second; False when the lease was lost."""
    args = (agent_id, writer, *generations, embedding_model, removed)
    return bool(await fast.execute(tx, tenant, _SWAP, *args))


# Maintenance


async def mark_other_models(tx: Tx, kind: str, embedding_model: str) -> None:
    """Marks the tables whose vectors are of another model as due."""
    await (await tx.raw()).execute(_MARK_OTHER_MODELS, kind, embedding_model)


async def take_due(tx: Tx, kind: str, limit: int) -> list[Row]:
    """Returns tables that are due, and marks them as not due."""
    return list(await (await tx.raw()).fetch(_TAKE_DUE, kind, limit))


async def list_unfinished_work(tx: Tx, tenant: str, agent_ids: list[str]) -> list[str]:
    return [row["work_id"] for row in await fast.rows(tx, tenant, _UNFINISHED, agent_ids)]


async def list_with_base(tx: Tx, tenant: str, agent_ids: list[str]) -> list[str]:
    return [row["agent_id"] for row in await fast.rows(tx, tenant, _WITH_BASE, agent_ids)]


async def list_existing_agents(tx: Tx, agent_ids: list[str]) -> set[str]:
    rows = await (await tx.raw()).fetch(_EXISTING_AGENTS, agent_ids)
    return {row["id"] for row in rows}


async def list_generations(tx: Tx, agent_ids: list[str]) -> dict[str, int]:
    rows = await (await tx.raw()).fetch(_GENERATIONS, agent_ids)
    return {row["agent_id"]: row["generation"] for row in rows}


async def list_bases(tx: Tx) -> list[Row]:
    """Returns the tables of all tenants."""
    return list(await (await tx.raw()).fetch(_LIST_BASES))


async def list_ready(tx: Tx, tenant: str, agent_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_READY, agent_id)
