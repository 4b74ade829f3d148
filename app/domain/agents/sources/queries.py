"""SQL of sources."""

from datetime import datetime
from typing import Any

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast, ledger
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import DocumentSource
from db.session import Tx
from db.views import View

from .schemas import DocumentSourceView

MAX_SOURCES = 50
_SHOWN_PROBLEMS = 10
_ENTRIES = "source_entries e WHERE e.tenant_id = s.tenant_id AND e.source_id = s.id"
_VIEW = View(
    DocumentSourceView,
    "s",
    has_secrets="s.secrets IS NOT NULL",
    last_sync=f"""json_build_object(
        'added', s.added_count, 'changed', s.changed_count, 'removed', s.removed_count,
        'left_out', s.left_out_count,
        'skipped', (SELECT count(*) FROM {_ENTRIES} AND e.problem IS NOT NULL))""",
    document_count="""(
        SELECT count(*) FROM documents d
        WHERE d.tenant_id = s.tenant_id AND d.source_id = s.id AND d.deleted_at IS NULL)""",
    change_count=f"""(
        SELECT count(*) FROM {_ENTRIES} AND e.change IS NOT NULL AND NOT e.is_discarded)""",
    problems=f"""(
        SELECT coalesce(json_agg(p), '[]') FROM (
            SELECT e.url, e.problem FROM {_ENTRIES} AND e.problem IS NOT NULL
            ORDER BY e.url LIMIT {_SHOWN_PROBLEMS}
        ) p)""",
)
_ORDERS = SortOrders(
    "-created_at",
    DocumentSource.id,
    name=DocumentSource.name,
    status=DocumentSource.status,
    created_at=DocumentSource.created_at,
    last_synced_at=DocumentSource.last_synced_at,
)
_OF_AGENT = "($1::text IS NULL OR s.tenant_id = $1) AND s.agent_id = $2 AND s.id = $3"
_FIND = f"SELECT {_VIEW.columns} FROM document_sources s WHERE {_OF_AGENT}"
_FIND_WORK = f"""
SELECT s.tenant_id, s.name, s.schedule, s.work_id, s.wait_until > now() AS must_wait, s.wait_until,
       {ledger.unfinished_sql("w.id = s.work_id")} AS is_busy
FROM document_sources s WHERE {_OF_AGENT}
"""
_EXISTS = f"SELECT true FROM document_sources s WHERE {_OF_AGENT}"
_DELETE = "DELETE FROM document_sources WHERE tenant_id = $1 AND id = $2"
_LOCK = "SELECT true FROM document_sources WHERE tenant_id = $1 AND id = $2 FOR UPDATE"
_SET_WORK = """
UPDATE document_sources
SET work_id = $3, status = 'syncing', next_sync_at = coalesce($4, next_sync_at)
WHERE tenant_id = $1 AND id = $2
"""
_LIST_WORK = """
SELECT work_id FROM document_sources
WHERE tenant_id = $1 AND agent_id = ANY($2) AND work_id IS NOT NULL
"""
_TAKE_DUE = f"""
SELECT s.tenant_id, s.id, s.schedule FROM document_sources s
WHERE s.next_sync_at <= now() AND NOT {ledger.unfinished_sql("w.id = s.work_id")}
ORDER BY s.next_sync_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
"""

# Syncs. One that was interrupted, or failed on its way, goes on where it was.

_SETTINGS = """
tenant_id, id, agent_id, name, type, config, secrets, schedule, apply, max_documents, include,
exclude, document, created_by, sync_no, started_at, failed_count, work_id
"""
_GOES_ON = "sync_no > completed_no AND started_at > now() - interval '1 day'"
_START = f"""
UPDATE document_sources
SET status = 'syncing',
    sync_no = CASE WHEN {_GOES_ON} THEN sync_no ELSE sync_no + 1 END,
    started_at = CASE WHEN {_GOES_ON} THEN started_at ELSE now() END,
    added_count = CASE WHEN {_GOES_ON} THEN added_count ELSE 0 END,
    changed_count = CASE WHEN {_GOES_ON} THEN changed_count ELSE 0 END,
    removed_count = CASE WHEN {_GOES_ON} THEN removed_count ELSE 0 END
WHERE tenant_id = $1 AND id = $2 AND work_id = $3
RETURNING {_SETTINGS}
"""
_FIND_SETTINGS = f"SELECT {_SETTINGS} FROM document_sources WHERE tenant_id = $1 AND id = $2"
_ADD_COUNTS = """
UPDATE document_sources
SET added_count = added_count + $3, changed_count = changed_count + $4
WHERE tenant_id = $1 AND id = $2
"""
_STATUS = """
CASE WHEN EXISTS (
    SELECT 1 FROM source_entries e
    WHERE e.tenant_id = $1 AND e.source_id = $2 AND e.change IS NOT NULL AND NOT e.is_discarded
) THEN 'review' ELSE 'ready' END
"""
_COMPLETE = f"""
UPDATE document_sources
SET status = {_STATUS}, completed_no = sync_no, last_synced_at = now(), error = NULL,
    failed_count = 0, wait_until = NULL, left_out_count = $5, removed_count = $6,
    next_sync_at = CASE WHEN schedule = $3 THEN $4 ELSE next_sync_at END
WHERE tenant_id = $1 AND id = $2
RETURNING added_count, changed_count, removed_count
"""
_FAIL = """
UPDATE document_sources
SET status = $3, error = $4, failed_count = failed_count + 1, wait_until = $5,
    next_sync_at = CASE WHEN schedule = $6 THEN $7 ELSE next_sync_at END
WHERE tenant_id = $1 AND id = $2
"""
_SET_STATUS = f"""
UPDATE document_sources SET status = {_STATUS}, error = $3 WHERE tenant_id = $1 AND id = $2
"""


# Reading


async def find(tx: Tx, agent_id: str, source_id: str) -> DocumentSourceView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, agent_id, source_id)


async def exists(tx: Tx, agent_id: str, source_id: str) -> bool:
    return bool(await fast.value(tx, tenant_of(tx), _EXISTS, agent_id, source_id))


async def list_page(
    tx: Tx, agent_id: str, page: Page, *, status: str | None, search: str | None, sort: str | None
) -> tuple[list[DocumentSourceView], Total]:
    where = Where(tenant_of(tx), tenant_column="s.tenant_id")
    where.add("s.agent_id = $n", agent_id)
    where.equal("s.status", status)
    where.contain(search, "s.name")
    order = _ORDERS.sql(sort).replace("document_sources.", "s.")
    return await paging.fetch(
        tx, _VIEW, "document_sources s", where, order, page, tenant_is_implied=True
    )


async def find_work(tx: Tx, agent_id: str, source_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_WORK, agent_id, source_id)


# Changing


async def check_quota(tx: Tx, tenant_id: str, agent_id: str) -> None:
    conditions = (DocumentSource.tenant_id == tenant_id, DocumentSource.agent_id == agent_id)
    await quota.check(tx, DocumentSource, MAX_SOURCES, "sources", *conditions, owner="An agent")


async def lock(tx: Tx, tenant: str, source_id: str) -> bool:
    return bool(await fast.value(tx, tenant, _LOCK, source_id))


async def delete(tx: Tx, tenant: str, source_id: str) -> bool:
    return await fast.execute(tx, tenant, _DELETE, source_id) == 1


async def set_work(
    tx: Tx, tenant: str, source_id: str, work_id: str, next_sync_at: datetime | None = None
) -> None:
    await fast.execute(tx, tenant, _SET_WORK, source_id, work_id, next_sync_at)


async def list_work(tx: Tx, tenant: str, agent_ids: list[str]) -> list[str]:
    return [row["work_id"] for row in await fast.rows(tx, tenant, _LIST_WORK, agent_ids)]


async def take_due(tx: Tx, limit: int) -> list[Row]:
    """Locks sources that are due and have no work."""
    return list(await (await tx.raw()).fetch(_TAKE_DUE, limit))


# Syncs


async def start(tx: Tx, tenant: str, source_id: str, work_id: str) -> Row | None:
    """Returns None when other work has taken over, or the source was deleted."""
    return await fast.row(tx, tenant, _START, source_id, work_id)


async def find_settings(tx: Tx, tenant: str, source_id: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_SETTINGS, source_id)


async def add_counts(tx: Tx, tenant: str, source_id: str, *, added: int, changed: int) -> None:
    await fast.execute(tx, tenant, _ADD_COUNTS, source_id, added, changed)


async def complete(tx: Tx, tenant: str, source_id: str, *columns: Any) -> Row | None:
    """The columns are the schedule, by which the next time was found, that time, and the counts of
    documents that were left out and removed.
    """
    return await fast.row(tx, tenant, _COMPLETE, source_id, *columns)


async def fail(tx: Tx, tenant: str, source_id: str, *columns: Any) -> None:
    """The columns are status, error, wait_until, the schedule and the next time by it."""
    await fast.execute(tx, tenant, _FAIL, source_id, *columns)


async def set_status(tx: Tx, tenant: str, source_id: str, error: str | None = None) -> None:
    """Sets it by the changes that wait."""
    await fast.execute(tx, tenant, _SET_STATUS, source_id, error)
