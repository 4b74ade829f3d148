"""Lists of many large rows: copies the largest row of each table, as no test could create them."""

from sqlalchemy import Table

from app.services import Services
from db.base import Sealed
from db.session import ALL_TENANTS
from tests.matrix.seeds import list_owned_tables

COUNT = 100
# Rows whose number has an effect: of users and sessions that the test has, of work that would run,
# and of a log with numbers of its own.
_LEFT_OUT = {"users", "sessions", "work", "idempotency_keys", "credential_audit"}
_UNIQUE = """
    SELECT DISTINCT attname::text AS name FROM pg_index
    JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
    WHERE indrelid = $1::regclass AND indisunique AND attname NOT IN ('tenant_id')
"""
_COPY = """
    INSERT INTO {table} ({columns})
    SELECT {copies} FROM (
        SELECT * FROM {table} WHERE tenant_id = $1 ORDER BY pg_column_size({table}.*) DESC LIMIT 1
    ) AS largest, generate_series(1, $2) AS copy_number
    ON CONFLICT DO NOTHING
"""


async def multiply_rows(services: Services, tenant_id: str) -> list[str]:
    """Returns the tables that have more rows now."""
    names = []
    for table in list_owned_tables():
        if _can_be_copied(table):
            async with services.db.tx(ALL_TENANTS) as tx:
                raw = await tx.raw()
                await raw.execute("SET LOCAL session_replication_role = replica")
                unique = {row["name"] for row in await raw.fetch(_UNIQUE, table.name)}
                result = await raw.execute(_build_copy(table, unique), tenant_id, COUNT)
            if not result.endswith(" 0"):
                names.append(table.name)
    return names


def _can_be_copied(table: Table) -> bool:
    # What is sealed for a row cannot be opened in a copy of it.
    is_sealed = any(isinstance(column.type, Sealed) for column in table.c)
    return table.name not in _LEFT_OUT and "id" in table.c and not is_sealed


def _build_copy(table: Table, unique: set[str]) -> str:
    columns = [column for column in table.c if column.identity is None and not column.computed]
    parents = {column.name for column in columns if column.foreign_keys}
    copies = [
        f"largest.{column.name} || '_' || copy_number"
        if column.name == "id"
        or (column.name in unique - parents and column.type.python_type is str)
        else f"largest.{column.name} + copy_number"
        if column.name in unique - parents and column.type.python_type is int
        else f"largest.{column.name}"
        for column in columns
    ]
    names = ", ".join(column.name for column in columns)
    return _COPY.format(table=table.name, columns=names, copies=", ".join(copies))
