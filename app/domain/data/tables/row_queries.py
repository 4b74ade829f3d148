"""SQL that reads, writes and deletes rows. Slots are computed from the values by the statement."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.domain.area import Event
from app.domain.platform.events import api as events
from db import fast
from db.fast import Row, tenant_of
from db.session import Tx

from .columns import SLOTS, Column, Table
from .slot_queries import assignments_sql, list_slots, unique_sql

COLUMNS = "r.id, r.values, r.created_at, r.updated_at"
_FIND = f"""
SELECT {COLUMNS}, t.columns FROM data_rows r
JOIN data_tables t ON t.id = r.table_id AND t.tenant_id = r.tenant_id
WHERE ($1::text IS NULL OR r.tenant_id = $1) AND r.table_id = $2 AND r.id = $3
  AND t.deleted_at IS NULL
"""
_LOCK = f"""
SELECT {COLUMNS} FROM data_rows r
WHERE r.tenant_id = $1 AND r.table_id = $2 AND r.id = ANY($3) ORDER BY r.id FOR NO KEY UPDATE
"""
_FIND_BY_SOURCE = f"""
SELECT {COLUMNS}, r.table_id FROM data_rows r WHERE r.tenant_id = $1 AND r.source = $2
"""
_DELETE = f"""
DELETE FROM data_rows r WHERE r.tenant_id = $1 AND r.table_id = $2 AND r.id = ANY($3)
RETURNING {COLUMNS}
"""
_EMIT = f"WITH {events.emission_sql('$2')} SELECT {events.ROUTED} WHERE $1::text IS NOT NULL"


class NewRow(msgspec.Struct, frozen=True):
    id: str
    created_at: datetime
    stored: dict[str, Any]
    source: str | None = None


async def find(tx: Tx, table_id: str, row_id: str) -> Row | None:
    """Returns a row with the columns of its table."""
    return await fast.row(tx, tenant_of(tx), _FIND, table_id, row_id)


async def lock(tx: Tx, table: Table, row_ids: Sequence[str]) -> list[Row]:
    return await fast.rows(tx, table.tenant_id, _LOCK, table.id, list(row_ids))


async def find_by_source(tx: Tx, tenant: str, source: str) -> Row | None:
    return await fast.row(tx, tenant, _FIND_BY_SOURCE, source)


async def insert(
    tx: Tx, table: Table, rows: Sequence[NewRow], returned: str = COLUMNS
) -> list[Row]:
    """Returns columns of the rows that were inserted. Those that are not unique are left out."""
    sql = f"""
    INSERT INTO data_rows AS r (tenant_id, table_id, id, created_at, updated_at, values, source,
                                {", ".join(SLOTS)})
    SELECT $1, $2, x.id, x.created_at, x.created_at, x.v, x.source,
           {", ".join(list_slots(table.columns, "x.v").values())}
    FROM unnest($3::text[], $4::timestamptz[], $5::jsonb[], $6::text[])
      AS x(id, created_at, v, source)
    ON CONFLICT DO NOTHING RETURNING {returned}
    """
    return await fast.rows(
        tx,
        table.tenant_id,
        sql,
        table.id,
        [row.id for row in rows],
        [row.created_at for row in rows],
        [_encode(row.stored) for row in rows],
        [row.source for row in rows],
    )


async def update(tx: Tx, table: Table, values: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Sets all values of rows, by their ids. Raises asyncpg.UniqueViolationError; the statement has
    no effect then, and the transaction goes on.
    """
    sql = f"""
    UPDATE data_rows r SET values = x.v, updated_at = now(),
           {assignments_sql(table.columns, "x.v")}
    FROM unnest($3::text[], $4::jsonb[]) AS x(id, v)
    WHERE r.tenant_id = $1 AND r.table_id = $2 AND r.id = x.id RETURNING {COLUMNS}
    """
    args = (table.id, list(values), [_encode(item) for item in values.values()])
    async with (await tx.raw()).transaction():
        return await fast.rows(tx, table.tenant_id, sql, *args)


async def find_duplicates(
    tx: Tx, table: Table, stored: Sequence[Mapping[str, Any]]
) -> list[tuple[int, Column]]:
    """Returns the positions of values that a row has already, and the columns."""
    unique = [column for column in table.columns if column.unique_slot is not None]
    if not unique:
        return []
    exists = ", ".join(
        f"EXISTS (SELECT 1 FROM data_rows r WHERE r.tenant_id = $1 AND r.table_id = $2 "
        f"AND r.{column.unique_slot} = {unique_sql(column, 'x.v')}) AS {column.key}"
        for column in unique
    )
    sql = f"""
    SELECT x.n, {exists} FROM unnest($3::jsonb[]) WITH ORDINALITY AS x(v, n) ORDER BY x.n
    """
    args = (table.id, [_encode(item) for item in stored])
    rows = await fast.rows(tx, table.tenant_id, sql, *args)
    return [(row["n"] - 1, column) for row in rows for column in unique if row[column.key]]


async def match(
    tx: Tx, table: Table, column: Column, stored: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    """Locks the rows that have the values of a unique column; returns the position of the values by
    the ids of rows.
    """
    sql = f"""
    SELECT x.n, r.id FROM unnest($3::jsonb[]) WITH ORDINALITY AS x(v, n)
    JOIN data_rows r ON r.table_id = $2 AND r.{column.unique_slot} = {unique_sql(column, "x.v")}
    WHERE r.tenant_id = $1 ORDER BY r.id FOR NO KEY UPDATE OF r
    """
    args = (table.id, [_encode(item) for item in stored])
    rows = await fast.rows(tx, table.tenant_id, sql, *args)
    return {row["id"]: row["n"] - 1 for row in rows}


async def delete(tx: Tx, table: Table, row_ids: Sequence[str]) -> list[Row]:
    return await fast.rows(tx, table.tenant_id, _DELETE, table.id, list(row_ids))


async def emit(tx: Tx, tenant: str, row_events: Sequence[Event]) -> None:
    """Records the events of many rows with one statement."""
    encoded = events.encode_events(list(row_events), tenant_id=tenant)
    events.wake(tx, await fast.value(tx, tenant, _EMIT, encoded))


def _encode(stored: Mapping[str, Any]) -> str:
    return msgspec.json.encode(stored).decode()
