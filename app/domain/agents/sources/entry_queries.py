"""SQL of entries: what sources have, and the changes that wait for a review."""

from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.session import Tx
from db.views import View

from .schemas import SourceChangeView

_DOCUMENT = """
documents d ON d.tenant_id = e.tenant_id AND d.source_id = e.source_id AND d.source_url = e.url
  AND d.deleted_at IS NULL
"""
_CHANGE = View(SourceChangeView, "e", document_id="d.id")
_CHANGES = f"""
source_entries e JOIN document_sources s ON s.id = e.source_id AND s.tenant_id = e.tenant_id
LEFT JOIN {_DOCUMENT}
"""
_IS_WAITING = "e.change IS NOT NULL AND NOT e.is_discarded"
_LIST = f"""
SELECT e.url, e.name, e.seen_no, e.etag, e.last_modified, e.sha256, e.text_sha256, e.change,
       e.is_discarded, e.file_key, e.problem, d.name AS document_name, d.sha256 AS document_sha256
FROM source_entries e LEFT JOIN {_DOCUMENT}
WHERE e.tenant_id = $1 AND e.source_id = $2
"""
_SAVE = """
INSERT INTO source_entries
    (tenant_id, id, source_id, url, name, seen_no, etag, last_modified, sha256, text_sha256, change,
     file_key, found_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text, $12,
        CASE WHEN $11::text IS NOT NULL THEN now() END)
ON CONFLICT (source_id, url) DO UPDATE
SET name = excluded.name, seen_no = excluded.seen_no, etag = excluded.etag,
    last_modified = excluded.last_modified, sha256 = excluded.sha256,
    text_sha256 = excluded.text_sha256, change = excluded.change, is_discarded = false,
    file_key = excluded.file_key, found_at = excluded.found_at, problem = NULL
"""
# A page that was gone, and is there again as it was.
_SEE = """
UPDATE source_entries
SET seen_no = $4, etag = coalesce($5, etag), last_modified = coalesce($6, last_modified),
    problem = NULL, is_discarded = is_discarded AND change <> 'removed',
    change = CASE WHEN change <> 'removed' THEN change END
WHERE tenant_id = $1 AND source_id = $2 AND url = $3
"""
_SET_PROBLEM = """
INSERT INTO source_entries (tenant_id, id, source_id, url, name, seen_no, problem)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (source_id, url) DO UPDATE SET seen_no = excluded.seen_no, problem = excluded.problem
"""
_SET_GONE = """
UPDATE source_entries SET gone_no = $4 WHERE tenant_id = $1 AND source_id = $2 AND url = $3
"""
_IS_GONE = """
e.tenant_id = $1 AND e.source_id = $2
AND (e.gone_no = $3 OR e.seen_no < $3 AND (
    $4 OR e.id IN (
        SELECT o.id FROM source_entries o
        WHERE o.tenant_id = $1 AND o.source_id = $2 AND o.seen_no < $3
        ORDER BY o.seen_no, o.id LIMIT greatest(0, (
            SELECT count(*) FROM source_entries a WHERE a.tenant_id = $1 AND a.source_id = $2
        ) - $5::int)
    )
))
"""
_LIST_GONE = f"""
SELECT e.url, e.file_key, e.change = 'removed' AS is_known, d.id IS NOT NULL AS has_document
FROM source_entries e LEFT JOIN {_DOCUMENT}
WHERE {_IS_GONE} AND NOT (e.is_discarded AND e.change = 'removed' AND d.id IS NOT NULL)
"""
_COUNT_DOCUMENTS = """
SELECT count(*) FROM documents
WHERE tenant_id = $1 AND source_id = $2 AND deleted_at IS NULL
"""
_SET_REMOVED = """
UPDATE source_entries
SET change = 'removed', is_discarded = false, file_key = NULL,
    found_at = CASE WHEN change = 'removed' THEN found_at ELSE now() END
WHERE tenant_id = $1 AND source_id = $2 AND url = ANY($3)
"""
_DELETE = "DELETE FROM source_entries WHERE tenant_id = $1 AND source_id = $2 AND url = ANY($3)"
_LIST_FILE_KEYS = """
SELECT e.file_key FROM source_entries e JOIN document_sources s
  ON s.id = e.source_id AND s.tenant_id = e.tenant_id
WHERE e.tenant_id = $1 AND e.file_key IS NOT NULL
  AND (s.id = $2 OR s.agent_id = ANY($3))
"""
_LIST_WAITING = f"""
SELECT e.url, e.name, e.change, e.file_key, d.name AS document_name
FROM source_entries e LEFT JOIN {_DOCUMENT}
WHERE e.tenant_id = $1 AND e.source_id = $2 AND {_IS_WAITING}
ORDER BY e.id
"""
_SETTLE = """
UPDATE source_entries SET change = NULL, file_key = NULL, found_at = NULL
WHERE tenant_id = $1 AND source_id = $2 AND url = $3 AND file_key = $4
"""
# The next sync reads it again, as if it had never seen it.
_FORGET = """
UPDATE source_entries SET change = NULL, file_key = NULL, found_at = NULL, sha256 = NULL
WHERE tenant_id = $1 AND source_id = $2 AND url = $3
"""
_DISCARD = """
WITH before AS (
    SELECT e.id, e.file_key FROM source_entries e
    WHERE e.tenant_id = $1 AND e.source_id = $2 AND e.change IS NOT NULL AND NOT e.is_discarded
    FOR UPDATE
)
UPDATE source_entries e SET is_discarded = true, file_key = NULL
FROM before WHERE e.tenant_id = $1 AND e.id = before.id
RETURNING before.file_key
"""


async def list_changes(
    tx: Tx, agent_id: str, source_id: str, page: Page, *, change: str | None
) -> tuple[list[SourceChangeView], Total]:
    where = Where(tenant_of(tx), _IS_WAITING, tenant_column="e.tenant_id")
    where.add("s.agent_id = $n", agent_id)
    where.add("e.source_id = $n", source_id)
    where.equal("e.change", change)
    return await paging.fetch(tx, _CHANGE, _CHANGES, where, "e.id", page, tenant_is_implied=True)


async def list_all(tx: Tx, tenant: str, source_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST, source_id)


async def save(tx: Tx, tenant: str, entry_id: str, source_id: str, *columns: object) -> None:
    """The columns are those of the statement, from url to file_key. The id is that of a new one."""
    await fast.execute(tx, tenant, _SAVE, entry_id, source_id, *columns)


async def see(
    tx: Tx, tenant: str, source_id: str, url: str, sync_no: int, *validators: str | None
) -> None:
    """Records that nothing has changed."""
    await fast.execute(tx, tenant, _SEE, source_id, url, sync_no, *validators)


async def set_problem(tx: Tx, tenant: str, entry_id: str, source_id: str, *columns: object) -> None:
    """The columns are url, name, seen_no and problem."""
    await fast.execute(tx, tenant, _SET_PROBLEM, entry_id, source_id, *columns)


async def set_gone(tx: Tx, tenant: str, source_id: str, url: str, sync_no: int) -> None:
    await fast.execute(tx, tenant, _SET_GONE, source_id, url, sync_no)


async def list_gone(
    tx: Tx, tenant: str, source_id: str, sync_no: int, *, lists_all: bool, max_documents: int
) -> list[Row]:
    """Returns what this sync has found to be gone, except for removals that a review has
    discarded. What it has not seen is gone too where a source `lists_all`; elsewhere the oldest of
    that, beyond the limit.
    """
    args = (source_id, sync_no, lists_all, max_documents)
    return await fast.rows(tx, tenant, _LIST_GONE, *args)


async def count_documents(tx: Tx, tenant: str, source_id: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT_DOCUMENTS, source_id))


async def set_removed(tx: Tx, tenant: str, source_id: str, urls: list[str]) -> None:
    await fast.execute(tx, tenant, _SET_REMOVED, source_id, urls)


async def delete(tx: Tx, tenant: str, source_id: str, urls: list[str]) -> None:
    await fast.execute(tx, tenant, _DELETE, source_id, urls)


async def list_file_keys(
    tx: Tx, tenant: str, *, source_id: str = "", agent_ids: list[str] | None = None
) -> list[str]:
    """Returns the files of changes that wait."""
    rows = await fast.rows(tx, tenant, _LIST_FILE_KEYS, source_id, agent_ids or [])
    return [row["file_key"] for row in rows]


async def list_waiting(tx: Tx, tenant: str, source_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_WAITING, source_id)


async def settle(tx: Tx, tenant: str, source_id: str, url: str, file_key: str) -> None:
    """Ends a change that was applied, unless there is a newer one."""
    await fast.execute(tx, tenant, _SETTLE, source_id, url, file_key)


async def forget(tx: Tx, tenant: str, source_id: str, url: str) -> None:
    await fast.execute(tx, tenant, _FORGET, source_id, url)


async def discard(tx: Tx, tenant: str, source_id: str) -> list[str]:
    """Discards the changes that wait, and returns the keys of their files."""
    rows = await fast.rows(tx, tenant, _DISCARD, source_id)
    return [row["file_key"] for row in rows if row["file_key"] is not None]
