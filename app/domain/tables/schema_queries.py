"""SQL that checks and rewrites all rows of a table for a change of its columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.domain.tables.columns import Column, Table
from app.domain.tables.slot_queries import slot_sql, text_sql, unique_sql
from db import fast
from db.fast import Row
from db.session import Tx

_OF_TABLE = "r.tenant_id = $1 AND r.table_id = $2"
_EXAMPLES = 5
_PAGE = f"""
SELECT r.id, r.values->$4::text AS value FROM data_rows r
WHERE {_OF_TABLE} AND r.id > $3 ORDER BY r.id LIMIT $5
"""
_SET_VALUES = f"""
UPDATE data_rows r SET values = r.values || jsonb_build_object($3::text, x.v)
FROM unnest($4::text[], $5::jsonb[]) AS x(id, v) WHERE {_OF_TABLE} AND r.id = x.id
"""


async def list_values(tx: Tx, table: Table, column: Column, after_id: str, limit: int) -> list[Row]:
    """Returns the values of a column in the order of rows, None where one is missing."""
    return await fast.rows(tx, table.tenant_id, _PAGE, table.id, after_id, column.key, limit)


async def set_values(tx: Tx, table: Table, column: Column, values: Mapping[str, Any]) -> None:
    """Sets a value of each row, by their ids."""
    encoded = [msgspec.json.encode(value).decode() for value in values.values()]
    await fast.execute(
        tx, table.tenant_id, _SET_VALUES, table.id, column.key, list(values), encoded
    )


async def find_without_value(tx: Tx, table: Table, column: Column) -> list[str]:
    """Returns the ids of a few rows."""
    missing = f"coalesce({text_sql(column, 'r.values')}, '') = ''"
    return await _find_examples(tx, table, missing)


async def find_other_options(tx: Tx, table: Table, column: Column) -> list[str]:
    """Returns the ids of a few rows whose value is no option of a select column."""
    condition = f"{text_sql(column, 'r.values')} <> ALL($3::text[])"
    return await _find_examples(tx, table, condition, column.options)


async def _find_examples(tx: Tx, table: Table, condition: str, *args: object) -> list[str]:
    sql = f"""
    SELECT r.id FROM data_rows r WHERE {_OF_TABLE} AND {condition} ORDER BY r.id LIMIT {_EXAMPLES}
    """
    return [row["id"] for row in await fast.rows(tx, table.tenant_id, sql, table.id, *args)]


async def find_duplicates(tx: Tx, table: Table, column: Column) -> list[str]:
    """Returns the ids of a few rows whose value another row has."""
    sql = f"""
    SELECT max(x.id) AS id FROM (
        SELECT r.id, {unique_sql(column, "r.values")} AS key FROM data_rows r WHERE {_OF_TABLE}
    ) x WHERE x.key IS NOT NULL GROUP BY x.key HAVING count(*) > 1 LIMIT {_EXAMPLES}
    """
    return [row["id"] for row in await fast.rows(tx, table.tenant_id, sql, table.id)]


async def rewrite(
    tx: Tx,
    table: Table,
    *,
    slots: Sequence[Column],
    unique_slots: Sequence[Column],
    defaults: Sequence[Column],
    dropped: Sequence[str],
) -> None:
    """Fills the slots of columns, fills missing values with defaults and removes the values of
    dropped columns, all with one statement.
    """
    cleared = [f"{column.unique_slot} = NULL" for column in unique_slots]
    if cleared:
        # Values of a column that had the slot before are no duplicates.
        sql = f"UPDATE data_rows r SET {', '.join(cleared)} WHERE {_OF_TABLE}"
        await fast.execute(tx, table.tenant_id, sql, table.id)
    filled = {column.key: column.default for column in defaults}
    # An empty text is no value of a required column.
    empty = ", ".join(
        f"CASE WHEN {text_sql(column, 'r.values')} = '' THEN '{column.key}' END"
        for column in defaults
    )
    values = f"($3::jsonb || (r.values - $4::text[] - ARRAY[{empty}]::text[]))"
    assignments = [
        f"values = {values}",
        *(f"{column.slot} = {slot_sql(column, values)}" for column in slots),
        *(f"{column.unique_slot} = {unique_sql(column, values)}" for column in unique_slots),
    ]
    sql = f"UPDATE data_rows r SET {', '.join(assignments)} WHERE {_OF_TABLE}"
    encoded = msgspec.json.encode(filled).decode()
    await fast.execute(tx, table.tenant_id, sql, table.id, encoded, list(dropped))
