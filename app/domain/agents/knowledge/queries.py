"""SQL of documents."""

from collections.abc import Mapping

import msgspec

from app.domain.agents.definition.api import RetrievalSettings
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast, ledger
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Document
from db.session import Tx
from db.views import View

from .arrow_rows import TABLE_FORMAT
from .progress_queries import PROGRESS
from .schemas import DocumentStatus, DocumentView, ListConditions

_VIEW = View(
    DocumentView,
    language="coalesce(chosen_language, language)",
    fields="coalesce(fields, '{}')",
    progress=PROGRESS,
)
_settings_decoder = msgspec.json.Decoder(RetrievalSettings)
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
_FIND_FILE = f"""
SELECT name, mime_type, size_bytes, file_key FROM documents WHERE {_VISIBLE} AND id = $3
"""

# The times of its own, whatever those of its chunks are.
_IS_VALID = "coalesce(valid_from <= now(), true) AND coalesce(valid_until > now(), true)"

# What a reader needs of a document's knowledge base.
_FIND_TABLE = """
SELECT d.chunk_count, k.generation, k.revision
FROM documents d LEFT JOIN knowledge_bases k
  ON k.agent_id = d.agent_id AND k.tenant_id = d.tenant_id
WHERE ($1::text IS NULL OR d.tenant_id = $1) AND d.agent_id = $2 AND d.deleted_at IS NULL
  AND d.id = $3
"""
_FIND_SETTINGS = """
SELECT coalesce(retrieval, '{}')::text FROM agents
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""

# Uploads

_COUNT = f"SELECT count(*) FROM documents WHERE {_VISIBLE}"
# Two uploads of one name must agree on its document.
_LOCK_UPLOADS = "SELECT pg_advisory_xact_lock(hashtextextended('documents:' || $1 || $2, 0))"
_ADD_KNOWLEDGE_BASE = """
INSERT INTO knowledge_bases (tenant_id, agent_id, embedding_model, format) VALUES ($1, $2, $3, $4)
ON CONFLICT (agent_id) DO NOTHING
"""
_LIST_BY_NAME = """
SELECT id, name, file_key, work_id, source_id, source_url FROM documents
WHERE tenant_id = $1 AND agent_id = $2 AND name = ANY($3) AND deleted_at IS NULL
"""
METADATA = "visibility, tags, groups, chosen_language, valid_from, valid_until, fields"
# A document with this name is replaced. Its chunks stay until the new file was read, and reach
# until then nobody whom they did not reach before.
_UPSERT = f"""
INSERT INTO documents AS d
    (tenant_id, id, agent_id, name, status, error, mime_type, size_bytes, sha256, file_key, work_id,
     {METADATA}, processed_at, source_id, source_url)
SELECT $1, $2, $3, $4, $5::text, $6, $7, $8, $9, $10, $11,
       coalesce(visibility, 'public'), coalesce(tags, '{{}}'), coalesce(groups, '{{}}'),
       chosen_language, valid_from, valid_until, fields,
       CASE WHEN $5::text = 'failed' THEN now() END, $13, $14
FROM jsonb_populate_record(NULL::documents, $12::jsonb)
ON CONFLICT (agent_id, name) WHERE deleted_at IS NULL DO UPDATE
SET status = $5, error = $6, mime_type = $7, size_bytes = $8, sha256 = $9, file_key = $10,
    work_id = $11, version = d.version + 1, processed_at = excluded.processed_at,
    ({METADATA}) = (SELECT {METADATA} FROM jsonb_populate_record(d, $12::jsonb)),
    has_internal_chunks = d.has_internal_chunks OR d.visibility = 'internal',
    chunk_groups = coalesce(d.chunk_groups, d.groups),
    chunk_valid_from = CASE WHEN d.chunk_groups IS NULL THEN d.valid_from
                            ELSE d.chunk_valid_from END,
    chunk_valid_until = CASE WHEN d.chunk_groups IS NULL THEN d.valid_until
                             ELSE d.chunk_valid_until END,
    source_id = $13, source_url = $14
RETURNING {_VIEW.columns}
"""
_FIND_WORK = """
SELECT tenant_id, name, status, file_key, work_id FROM documents
WHERE ($1::text IS NULL OR tenant_id = $1) AND agent_id = $2 AND id = $3 AND deleted_at IS NULL
"""
_RESTART = f"""
UPDATE documents SET status = 'pending', error = NULL, version = version + 1, work_id = $3,
    processed_at = NULL, stage = NULL, stage_at = NULL
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL
RETURNING {_VIEW.columns}
"""
_WAIT_AGAIN = """
UPDATE documents
SET status = 'pending', error = NULL, processed_at = NULL, stage = NULL, stage_at = NULL
WHERE tenant_id = $1 AND id = $2 AND work_id = $3 AND status = 'failed' AND deleted_at IS NULL
"""
_HIDE = """
UPDATE documents SET deleted_at = now(), work_id = $3
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL
RETURNING file_key
"""

_CHANGE = f"""
UPDATE documents d
SET ({METADATA}) = (SELECT {METADATA} FROM jsonb_populate_record(d, $4::jsonb))
WHERE {_VISIBLE} AND id = $3
RETURNING {_VIEW.columns}
"""

# Ingestion

_START = """
UPDATE documents SET status = 'processing', stage = 'reading', stage_at = now()
WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL AND status IN ('pending', 'processing')
RETURNING agent_id, name, version, file_key, chosen_language
"""
_END = """
UPDATE documents
SET status = $4::text, error = $5, chunk_count = coalesce($6, chunk_count), processed_at = now(),
    refined_count = CASE WHEN $4::text = 'ready' THEN 0 ELSE refined_count END,
    language = CASE WHEN $4::text = 'ready' THEN $7 ELSE language END,
    has_internal_chunks = has_internal_chunks AND $4::text <> 'ready',
    chunk_groups = CASE WHEN $4::text = 'ready' THEN NULL ELSE chunk_groups END,
    chunk_valid_from = CASE WHEN $4::text = 'ready' THEN NULL ELSE chunk_valid_from END,
    chunk_valid_until = CASE WHEN $4::text = 'ready' THEN NULL ELSE chunk_valid_until END
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
SELECT agent_id FROM documents WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NOT NULL
"""
_LIST_HIDDEN = """
SELECT id, file_key FROM documents
WHERE tenant_id = $1 AND agent_id = $2 AND deleted_at IS NOT NULL
ORDER BY id <> $3, deleted_at LIMIT $4
"""
_DELETE = "DELETE FROM documents WHERE tenant_id = $1 AND id = ANY($2) AND deleted_at IS NOT NULL"

# Upkeep

_LIST_DOCUMENTS = """
SELECT id, version, status, chunk_count, refined_count, deleted_at IS NOT NULL AS is_hidden
FROM documents
WHERE tenant_id = $1 AND agent_id = $2
"""
_SET_CHUNK_COUNT = "UPDATE documents SET chunk_count = $3 WHERE tenant_id = $1 AND id = $2"
_SET_LANGUAGES = """
UPDATE documents d SET language = n.language
FROM unnest($3::text[], $4::text[]) AS n (id, language)
WHERE d.tenant_id = $1 AND d.agent_id = $2 AND d.id = n.id AND d.language IS NULL
"""
_LOCK_READY = """
SELECT true FROM documents
WHERE tenant_id = $1 AND id = $2 AND version = $3 AND status = 'ready' AND deleted_at IS NULL
FOR UPDATE
"""
# Documents whose work was given up, or is lost.
_LIST_STALLED = f"""
SELECT d.id, d.deleted_at IS NOT NULL AS is_hidden FROM documents d
WHERE d.tenant_id = $1 AND d.agent_id = $2
  AND (d.deleted_at IS NOT NULL OR d.status IN ('pending', 'processing'))
  AND NOT {ledger.unfinished_sql("w.id = d.work_id")}
ORDER BY d.id
"""
_SET_REMOVAL = """
UPDATE documents SET work_id = $3 WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NOT NULL
"""
_UNFINISHED = """
SELECT work_id FROM documents
WHERE tenant_id = $1 AND agent_id = ANY($2) AND work_id IS NOT NULL
  AND (status IN ('pending', 'processing') OR deleted_at IS NOT NULL)
"""
_LIST_FILE_KEYS = "SELECT file_key FROM documents WHERE agent_id = $1 AND file_key IS NOT NULL"


# Reading


async def find(tx: Tx, agent_id: str, document_id: str) -> DocumentView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, agent_id, document_id)


async def list_page(
    tx: Tx,
    agent_id: str,
    page: Page,
    *,
    search: str | None,
    sort: str | None,
    conditions: ListConditions,
) -> tuple[list[DocumentView], Total]:
    where = Where(tenant_of(tx), "deleted_at IS NULL")
    where.add("agent_id = $n", agent_id)
    where.contain(search, "name")
    where.equal("status", conditions.status)
    where.equal("visibility", conditions.visibility)
    where.equal("source_id", conditions.source_id)
    where.equal("coalesce(chosen_language, language)", conditions.language)
    if conditions.tag is not None:
        where.add("$n = ANY(tags)", conditions.tag)
    if conditions.group is not None:
        where.add("$n = ANY(groups)", conditions.group)
    if conditions.valid is not None:
        where.add(f"({_IS_VALID}) = $n", conditions.valid)
    order = _SORT_ORDERS.sql(sort)
    return await paging.fetch(tx, _VIEW, "documents", where, order, page, tenant_is_implied=True)


async def find_file(tx: Tx, agent_id: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_FILE, agent_id, document_id)


async def find_table(tx: Tx, agent_id: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_TABLE, agent_id, document_id)


async def find_settings(tx: Tx, agent_id: str) -> RetrievalSettings | None:
    """Returns None when there is no such agent."""
    stored = await fast.value(tx, tenant_of(tx), _FIND_SETTINGS, agent_id)
    return None if stored is None else _settings_decoder.decode(stored)


# Uploads


async def count(tx: Tx, tenant: str, agent_id: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT, agent_id))


async def lock_uploads(tx: Tx, tenant: str, agent_id: str) -> None:
    await fast.execute(tx, tenant, _LOCK_UPLOADS, agent_id)


async def add_knowledge_base(tx: Tx, tenant: str, agent_id: str, embedding_model: str) -> None:
    await fast.execute(tx, tenant, _ADD_KNOWLEDGE_BASE, agent_id, embedding_model, TABLE_FORMAT)


async def list_by_name(tx: Tx, tenant: str, agent_id: str, names: list[str]) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_BY_NAME, agent_id, names)


async def upsert(tx: Tx, tenant: str, document_id: str, *columns: object) -> DocumentView:
    """The columns are those of the statement, from agent_id to source_url, with the JSON of the
    metadata; what is not in that, a document that is replaced keeps.
    """
    view = await _VIEW.find(tx, tenant, _UPSERT, document_id, *columns)
    if view is None:
        raise RuntimeError("an upsert returned no row")
    return view


async def find_work(tx: Tx, agent_id: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_WORK, agent_id, document_id)


async def restart(tx: Tx, tenant: str, document_id: str, work_id: str) -> DocumentView | None:
    return await _VIEW.find(tx, tenant, _RESTART, document_id, work_id)


async def wait_again(tx: Tx, tenant: str, document_id: str, work_id: str) -> bool:
    """False for a document that was uploaded or indexed again since, or deleted."""
    return await fast.execute(tx, tenant, _WAIT_AGAIN, document_id, work_id) == 1


async def hide(tx: Tx, tenant: str, document_id: str, work_id: str) -> Row | None:
    """Returns the key of its file; None when there is no such document."""
    return await fast.row(tx, tenant, _HIDE, document_id, work_id)


async def change(tx: Tx, agent_id: str, document_id: str, metadata: str) -> DocumentView | None:
    """Sets the columns that are in the JSON of the metadata."""
    return await _VIEW.find(tx, tenant_of(tx), _CHANGE, agent_id, document_id, metadata)


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
    language: str | None = None,
) -> Row | None:
    """Ends this version, unless there is a newer one. Without `chunk_count` it stays."""
    args = (document_id, version, status, error, chunk_count, language)
    return await fast.row(tx, tenant, _END, *args)


async def fail(tx: Tx, tenant: str, document_id: str, error: str) -> Row | None:
    return await fast.row(tx, tenant, _FAIL, document_id, error)


async def find_hidden(tx: Tx, tenant: str, document_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_HIDDEN, document_id)


async def list_hidden(
    tx: Tx, tenant: str, agent_id: str, document_id: str, limit: int
) -> list[Row]:
    """Returns this document first."""
    return await fast.rows(tx, tenant, _LIST_HIDDEN, agent_id, document_id, limit)


async def delete(tx: Tx, tenant: str, document_ids: list[str]) -> None:
    await fast.execute(tx, tenant, _DELETE, document_ids)


# Upkeep


async def list_documents(tx: Tx, tenant: str, agent_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_DOCUMENTS, agent_id)


async def set_chunk_count(tx: Tx, tenant: str, document_id: str, chunk_count: int) -> None:
    await fast.execute(tx, tenant, _SET_CHUNK_COUNT, document_id, chunk_count)


async def set_languages(
    tx: Tx, tenant: str, agent_id: str, languages: Mapping[str, str | None]
) -> None:
    """Of documents without one."""
    await fast.execute(
        tx, tenant, _SET_LANGUAGES, agent_id, list(languages), list(languages.values())
    )


async def lock_ready(tx: Tx, tenant: str, document_id: str, version: int) -> bool:
    """Locks this version of the document; False when it is no longer ready."""
    return await fast.value(tx, tenant, _LOCK_READY, document_id, version) is not None


async def list_stalled(tx: Tx, tenant: str, agent_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_STALLED, agent_id)


async def set_removal(tx: Tx, tenant: str, document_id: str, work_id: str) -> None:
    await fast.execute(tx, tenant, _SET_REMOVAL, document_id, work_id)


async def list_unfinished_work(tx: Tx, tenant: str, agent_ids: list[str]) -> list[str]:
    return [row["work_id"] for row in await fast.rows(tx, tenant, _UNFINISHED, agent_ids)]


async def list_file_keys(tx: Tx, agent_id: str) -> set[str]:
    rows = await (await tx.raw()).fetch(_LIST_FILE_KEYS, agent_id)
    return {row["file_key"] for row in rows}
