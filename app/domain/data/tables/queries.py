"""SQL of tables. A deleted table is part of no answer."""

import asyncio
from typing import Any

import msgspec

from app.domain import quota
from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import DataTable
from db.session import Tx

from . import columns
from .columns import Column, Table
from .errors import TableLocked

MAX_TABLES = 500
_SORT_ORDERS = SortOrders(
    "-created_at",
    DataTable.id,
    name=DataTable.name,
    created_at=DataTable.created_at,
    updated_at=DataTable.updated_at,
)


def count_sql(table: str) -> str:
    """Returns the number of rows of a table with this alias or name."""
    return (
        "(SELECT coalesce(sum(c.rows), 0)::bigint FROM data_table_counts c "
        f"WHERE c.table_id = {table}.id AND c.tenant_id = {table}.tenant_id)"
    )


_COLUMNS = f"""id, name, description, columns, {count_sql("data_tables")} AS row_count, created_at,
updated_at"""
_FIND = f"""
SELECT {_COLUMNS} FROM data_tables
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND deleted_at IS NULL
"""
_LOAD = """
SELECT id, tenant_id, name, columns, revision FROM data_tables
WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2 AND deleted_at IS NULL
"""
_LIST_COLUMN_NAMES = """
SELECT id, jsonb_path_query_array(columns, '$[*].name') AS names FROM data_tables
WHERE tenant_id = $1 AND id = ANY($2) AND deleted_at IS NULL
"""
_LOAD_FOR_ROWS = f"{_LOAD} FOR KEY SHARE SKIP LOCKED"
# About a second in all.
_LOCK_ATTEMPTS = 20
_LOCK_PAUSE_SECONDS = 0.05
_COUNT = """
SELECT coalesce(sum(rows), 0)::bigint FROM data_table_counts WHERE tenant_id = $1 AND table_id = $2
"""
# Rows of a deleted table no longer count for the tenant.
_FIND_ROOM = f"""
SELECT t.plan, t.limits::text AS limits, ({_COUNT}) AS table_rows, (
    SELECT coalesce(sum(c.rows), 0)::bigint FROM data_table_counts c
    WHERE c.tenant_id = $1 AND c.table_id NOT IN (
        SELECT d.id FROM data_tables d WHERE d.tenant_id = $1 AND d.deleted_at IS NOT NULL
    )
) AS tenant_rows
FROM tenants t WHERE t.id = $1
"""
# Each connection has a part of its own, as far as there are enough.
_ADD_COUNT = """
INSERT INTO data_table_counts AS c (tenant_id, table_id, part, rows)
VALUES ($1, $2, pg_backend_pid() % 16, $3)
ON CONFLICT (table_id, part) DO UPDATE SET rows = c.rows + excluded.rows
"""


async def list_page(
    tx: Tx, page: Page, *, search: str | None, sort: str | None
) -> tuple[list[Row], Total]:
    where = Where(tenant_of(tx), "deleted_at IS NULL")
    where.contain(search, "name", "description")
    return await paging.fetch_rows(tx, _COLUMNS, "data_tables", where, _SORT_ORDERS.sql(sort), page)


async def find_row(tx: Tx, table_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND, table_id)


async def load(tx: Tx, tenant: str | None, table_id: str) -> Table | None:
    row = await fast.row(tx, tenant, _LOAD, table_id)
    return None if row is None else build_table(row)


async def list_column_names(tx: Tx, tenant: str, table_ids: list[str]) -> dict[str, list[str]]:
    """Returns the names of the columns of each of these tables that exists."""
    rows = await fast.rows(tx, tenant, _LIST_COLUMN_NAMES, table_ids)
    return {row["id"]: row["names"] for row in rows}


async def load_for_rows(tx: Tx, tenant: str | None, table_id: str) -> Table | None:
    """The columns stay as they are until the transaction ends. Raises TableLocked while another
    transaction changes them: a longer wait would hold a connection for each writer.
    """
    for _ in range(_LOCK_ATTEMPTS):
        row = await fast.row(tx, tenant, _LOAD_FOR_ROWS, table_id)
        if row is not None:
            return build_table(row)
        if await load(tx, tenant, table_id) is None:
            return None
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)
    raise TableLocked("The columns of this data table are being changed; try again", retry_after=2)


def build_table(row: Row) -> Table:
    return Table(
        id=row["id"],
        tenant_id=row["tenant_id"],
        name=row["name"],
        columns=columns.decode(row["columns"]),
        revision=row["revision"],
    )


async def find_for_change(tx: Tx, table_id: str) -> DataTable | None:
    """Waits for writers of rows, and makes others wait."""
    session = await tx.session()
    table: DataTable | None = await session.get(DataTable, table_id, with_for_update=True)
    return table if table is not None and table.deleted_at is None else None


def encode_columns(columns_: list[Column]) -> list[dict[str, Any]]:
    encoded: list[dict[str, Any]] = msgspec.to_builtins(columns_)
    return encoded


async def check_quota(tx: Tx, tenant_id: str) -> None:
    conditions = (DataTable.tenant_id == tenant_id, DataTable.deleted_at.is_(None))
    await quota.check(tx, DataTable, MAX_TABLES, "data tables", *conditions)


async def count_rows(tx: Tx, tenant: str, table_id: str) -> int:
    return int(await fast.value(tx, tenant, _COUNT, table_id))


async def find_room(tx: Tx, tenant: str, table_id: str) -> Row | None:
    """Returns the number of rows of a table and of its tenant, with the limits of the tenant."""
    return await fast.row(tx, tenant, _FIND_ROOM, table_id)


async def add_to_count(tx: Tx, tenant: str, table_id: str, rows: int) -> None:
    await fast.execute(tx, tenant, _ADD_COUNT, table_id, rows)
