"""SQL that checks and rewrites all rows of a table for a change of its columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from db import fast
from db.fast import Row
from db.session import Tx

from .columns import Column, Table
from .slot_queries import slot_sql, text_sql, unique_sql

_OF_TABLE = "r.tenant_id = $1 AND r.table_id = $2"
_EXAMPLES = 5


class Rewrite(msgspec.Struct):
    """What changes in every row: slots that are filled, missing values that get a default, and
    values of dropped columns that are removed.
    """

    slots: list[Column]
    unique_slots: list[Column]
    defaults: list[Column]
    dropped_keys: list[str]


async def list_values(
    tx: Tx, table: Table, columns: Sequence[Column], after_id: str, limit: int
) -> list[Row]:
    """Returns ids in their order, with values by the keys of their columns, None where one is
    missing.
    """
    values = "".join(f", r.values->'{column.key}' AS {column.key}" for column in columns)
    sql = f"""
    SELECT r.id{values} FROM data_rows r WHERE {_OF_TABLE} AND r.id > $3 ORDER BY r.id LIMIT $4
    """
    return await fast.rows(tx, table.tenant_id, sql, table.id, after_id, limit)


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


async def clear_unique_slots(tx: Tx, table: Table, columns: Sequence[Column]) -> None:
    """Values of a column that had the slot before are no duplicates."""
    slots = [column.unique_slot for column in columns]
    if slots:
        cleared = ", ".join(f"{slot} = NULL" for slot in slots)
        is_used = " OR ".join(f"r.{slot} IS NOT NULL" for slot in slots)
        sql = f"UPDATE data_rows r SET {cleared} WHERE {_OF_TABLE} AND ({is_used})"
        await fast.execute(tx, table.tenant_id, sql, table.id)


async def rewrite(
    tx: Tx, table: Table, changes: Rewrite, values: Mapping[str, Mapping[str, Any]]
) -> None:
    """Changes rows by their ids, and sets values by the keys of their columns."""
    filled = {column.key: column.default for column in changes.defaults}
    # An empty text is no value of a required column.
    empty = ", ".join(
        f"CASE WHEN {text_sql(column, 'r.values')} = '' THEN '{column.key}' END"
        for column in changes.defaults
    )
    result = f"($3::jsonb || (r.values - $4::text[] - ARRAY[{empty}]::text[]) || x.v)"
    assignments = [
        f"values = {result}",
        *(f"{column.slot} = {slot_sql(column, result)}" for column in changes.slots),
        *(
            f"{column.unique_slot} = {unique_sql(column, result)}"
            for column in changes.unique_slots
        ),
    ]
    sql = f"""
    UPDATE data_rows r SET {", ".join(assignments)}
    FROM unnest($5::text[], $6::jsonb[]) AS x(id, v) WHERE {_OF_TABLE} AND r.id = x.id
    """
    encoded = [msgspec.json.encode(item).decode() for item in values.values()]
    args = (msgspec.json.encode(filled).decode(), changes.dropped_keys, list(values), encoded)
    await fast.execute(tx, table.tenant_id, sql, table.id, *args)
