"""Rows in every table of the first release, and what an upgrade has to keep of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from sqlalchemy import MetaData, Table, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.settings import Settings
from db import migrate, schema
from tests.matrix.seeds import Rows, build_row
from tests.platform.storage.counting import SIZES

# The sums of counters and of changes that are not added up yet, by tenant and kind.
_COUNTED = """
SELECT tenant_id, kind, sum(bytes)::bigint AS bytes FROM (
    SELECT tenant_id, kind, bytes FROM storage_kinds
    UNION ALL SELECT tenant_id, kind, bytes FROM storage_changes
) counted
WHERE kind = ANY($1) GROUP BY tenant_id, kind
UNION ALL SELECT tenant_id, 'files', used_bytes FROM storage_usage
UNION ALL SELECT tenant_id, 'number of files', file_count FROM storage_usage
"""
# The same, from the rows.
_RECOUNTED = """
SELECT tenant_id, kind, sum(bytes)::bigint AS bytes FROM ({rows}) counted GROUP BY tenant_id, kind
UNION ALL SELECT tenant_id, 'files', sum(size_bytes)::bigint FROM files GROUP BY tenant_id
UNION ALL SELECT tenant_id, 'number of files', count(*) FROM files GROUP BY tenant_id
"""

FULL_TENANT, _SPARSE_TENANT = "ten_full", "ten_sparse"

Keys = dict[str, set[tuple[Any, ...]]]
Bytes = dict[tuple[str, str], int]


class Storage(NamedTuple):
    """What tenants store, by tenant and kind."""

    counted: Bytes
    recounted: Bytes

    def list_wrong_kinds(self) -> list[str]:
        wrong = self.counted.items() ^ self.recounted.items()
        return sorted({kind for (_tenant_id, kind), _bytes in wrong})


@asynccontextmanager
async def _connect(settings: Settings) -> AsyncIterator[AsyncConnection]:
    engine = migrate.create_engine(settings.sqlalchemy_url)
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


async def _read_tables(connection: AsyncConnection) -> list[Table]:
    """Returns the tables in the order in which rows can be inserted. They are those of the
    database, since the models may be newer.
    """
    metadata = MetaData()
    await connection.run_sync(metadata.reflect)
    return [table for table in metadata.sorted_tables if table.name != schema.VERSION_TABLE]


async def insert_rows(settings: Settings) -> list[Table]:
    """Inserts two rows into every table, each of its own tenant: one has a value in every column,
    the other one only where the column needs it. Returns the tables.
    """
    async with _connect(settings) as connection:
        tables = await _read_tables(connection)
        for tenant_id in (FULL_TENANT, _SPARSE_TENANT):
            await _insert_for(connection, tables, tenant_id)
    return tables


async def _insert_for(connection: AsyncConnection, tables: list[Table], tenant_id: str) -> None:
    rows: Rows = {}
    for table in tables:
        row = build_row(table, rows, tenant_id)
        if table.name == "tenants":
            row["id"] = tenant_id
        if tenant_id == _SPARSE_TENANT:
            row = {name: row[name] for name in row if not table.c[name].nullable}
        # Some rows count from their end on; none is inserted with one.
        end = row.pop("finished_at", None)
        await connection.execute(insert(table).values(row))
        if end is not None:
            statement = table.update().where(table.c.id == row["id"])
            await connection.execute(statement.values(finished_at=end))
        rows[table.name] = row


async def read_keys(settings: Settings, tables: list[Table]) -> Keys:
    """Returns the primary keys of the rows of each table."""
    keys = {}
    async with _connect(settings) as connection:
        for table in tables:
            rows = await connection.execute(select(*table.primary_key.columns))
            keys[table.name] = {tuple(row) for row in rows}
    return keys


async def read_storage(settings: Settings) -> Storage:
    """Reads it as this release declares what counts: the database must have its schema."""
    kinds = sorted({kind for kind, _size in SIZES.values()})
    sizes = " UNION ALL ".join(
        f"SELECT tenant_id, '{kind}' AS kind, {size} AS bytes FROM {table} t"
        for table, (kind, size) in SIZES.items()
    )
    async with _connect(settings) as connection:
        return Storage(
            counted=await _read_bytes(connection, _COUNTED, kinds),
            recounted=await _read_bytes(connection, _RECOUNTED.format(rows=sizes)),
        )


async def _read_bytes(connection: AsyncConnection, sql: str, *values: object) -> Bytes:
    result = await connection.exec_driver_sql(sql, values)
    rows = [row for row in result.mappings() if row["bytes"]]
    return {(row["tenant_id"], row["kind"]): row["bytes"] for row in rows}
