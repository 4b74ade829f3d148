"""SQL of imports."""

from typing import Any

import msgspec

from app.kit import paging
from app.kit.paging import Page
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.session import Tx
from db.views import View

from .schemas import ImportProblem, ImportStatus, ImportView

MAX_UNFINISHED = 5
MAX_ERRORS = 10_000
_VIEW = View(ImportView, "i")
_PROBLEMS = View(ImportProblem, row="e.number", message="e.message", column="e.column_name")
_TABLE = "data_imports i JOIN data_tables t ON t.id = i.table_id AND t.tenant_id = i.tenant_id"
_FIND = f"""
SELECT {_VIEW.columns} FROM {_TABLE}
WHERE ($1::text IS NULL OR i.tenant_id = $1) AND i.table_id = $2 AND i.id = $3
  AND t.deleted_at IS NULL
"""
_FIND_WORK = f"""
SELECT i.tenant_id, i.work_id, i.file_key FROM {_TABLE}
WHERE ($1::text IS NULL OR i.tenant_id = $1) AND i.table_id = $2 AND i.id = $3
  AND t.deleted_at IS NULL
"""
_INSERT = f"""
INSERT INTO data_imports AS i (tenant_id, id, table_id, status, filename, file_key, mode, match_key,
                               delimiter, errors, work_id)
VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7, $8, '[]', $9) RETURNING {_VIEW.columns}
"""
_COUNT_UNFINISHED = """
SELECT count(*) FROM data_imports
WHERE tenant_id = $1 AND status IN ('pending', 'running') AND created_at > now() - interval '7 days'
"""
_LOCK_LIMIT = "SELECT pg_advisory_xact_lock(hashtextextended('imports:' || $1, 0))"
_START = """
UPDATE data_imports SET status = 'running'
WHERE tenant_id = $1 AND id = $2 AND status IN ('pending', 'running')
RETURNING table_id, file_key, mode, match_key, delimiter, rows_total, rows_done
"""
_SET_TOTAL = "UPDATE data_imports SET rows_total = $3 WHERE tenant_id = $1 AND id = $2"
# The record of the import has the first errors once more, so that one request shows them.
_ADD = """
WITH progress AS (
    UPDATE data_imports SET rows_done = rows_done + $3, rows_failed = rows_failed + $4,
           errors = jsonb_path_query_array(errors || $5::jsonb, '$[0 to 99]')
    WHERE tenant_id = $1 AND id = $2 RETURNING rows_failed - $4 AS failed_before
)
INSERT INTO data_import_errors (tenant_id, import_id, number, column_name, message)
SELECT $1, $2, e."row", e."column", e.message
FROM jsonb_to_recordset($5::jsonb) AS e("row" int, "column" text, message text)
ORDER BY e."row" LIMIT coalesce((SELECT greatest(0, $6 - failed_before) FROM progress), 0)
ON CONFLICT (import_id, number) DO NOTHING
"""
_END = """
UPDATE data_imports
SET status = $3, error = $4, finished_at = now()
WHERE tenant_id = $1 AND id = $2 AND status IN ('pending', 'running')
RETURNING table_id, rows_done, rows_failed, file_key
"""


async def insert(tx: Tx, tenant: str, import_id: str, *values: object) -> ImportView:
    row = await fast.row(tx, tenant, _INSERT, import_id, *values)
    if row is None:
        raise LookupError(import_id)
    return _VIEW.build(row)


async def lock_limit(tx: Tx, tenant: str) -> None:
    """Lets one transaction at a time count imports and add one."""
    await fast.value(tx, tenant, _LOCK_LIMIT)


async def count_unfinished(tx: Tx, tenant: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT_UNFINISHED))


async def find(tx: Tx, table_id: str, import_id: str) -> ImportView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, table_id, import_id)


async def find_work(tx: Tx, table_id: str, import_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_WORK, table_id, import_id)


async def list_page(
    tx: Tx, table_id: str, page: Page, status: ImportStatus | None
) -> tuple[list[ImportView], Total]:
    where = Where(tenant_of(tx), "t.deleted_at IS NULL", tenant_column="i.tenant_id")
    where.add("i.table_id = $n", table_id)
    where.equal("i.status", status)
    return await paging.fetch(tx, _VIEW, _TABLE, where, "i.id DESC", page)


async def list_errors(
    tx: Tx, table_id: str, import_id: str, page: Page
) -> tuple[list[ImportProblem], Total]:
    where = Where(tenant_of(tx), "t.deleted_at IS NULL", tenant_column="i.tenant_id")
    where.add("i.table_id = $n", table_id)
    where.add("i.id = $n", import_id)
    joined = f"{_TABLE} JOIN data_import_errors e ON e.import_id = i.id"
    joined += " AND e.tenant_id = i.tenant_id"
    return await paging.fetch(tx, _PROBLEMS, joined, where, "e.number", page)


async def start(tx: Tx, tenant: str, import_id: str) -> Row | None:
    """None for an import that has ended."""
    return await fast.row(tx, tenant, _START, import_id)


async def set_total(tx: Tx, tenant: str, import_id: str, total: int) -> None:
    await fast.execute(tx, tenant, _SET_TOTAL, import_id, total)


async def add_progress(
    tx: Tx, tenant: str, import_id: str, rows: int, failed: int, errors: list[Any]
) -> None:
    encoded = msgspec.json.encode(errors).decode()
    await fast.execute(tx, tenant, _ADD, import_id, rows, failed, encoded, MAX_ERRORS)


async def end(
    tx: Tx, tenant: str, import_id: str, status: str, error: str | None = None
) -> Row | None:
    """None when the import has ended already."""
    return await fast.row(tx, tenant, _END, import_id, status, error)
