"""What other areas may do with tables, within their own transactions. No call leaves the
transaction unusable when it raises.
"""

from collections.abc import Sequence
from typing import Any

from db.session import Tx

from . import rows, text_queries
from .columns import Table
from .errors import RowNotFound
from .filters import Filters
from .schemas import RowView


async def load_table(tx: Tx, tenant_id: str, table_id: str) -> Table:
    """Raises DataTableNotFound."""
    return await rows.load(tx, tenant_id, table_id)


async def insert_row(
    tx: Tx, tenant_id: str, table_id: str, values: dict[str, Any], *, source: str | None = None
) -> RowView:
    """Raises DataTableNotFound, Invalid, NotUnique, TableFull, RowQuotaExceeded. A second call with
    the same source returns the first row.
    """
    if source is not None:
        return await rows.insert_once(tx, tenant_id, table_id, values, source)
    [view] = await rows.insert_many(tx, tenant_id, table_id, [values], is_bulk=False)
    return view


async def update_row(
    tx: Tx, tenant_id: str, table_id: str, row_id: str, values: dict[str, Any]
) -> RowView:
    """Sets some values. Raises DataTableNotFound, RowNotFound, Invalid, NotUnique."""
    return await rows.update(tx, tenant_id, table_id, row_id, values)


async def delete_row(tx: Tx, tenant_id: str, table_id: str, row_id: str) -> None:
    """Raises DataTableNotFound, RowNotFound."""
    await rows.delete(tx, tenant_id, table_id, row_id)


async def find_row(tx: Tx, tenant_id: str, table_id: str, row_id: str) -> RowView | None:
    """Raises DataTableNotFound."""
    await rows.load(tx, tenant_id, table_id)
    try:
        return await rows.get(tx, table_id, row_id)
    except RowNotFound:
        return None


async def update_rows(
    tx: Tx, tenant_id: str, table_id: str, filters: Filters, values: dict[str, Any]
) -> int:
    """Sets some values of all rows that match, at most 1,000; returns their number."""
    return await rows.update_matching(tx, tenant_id, table_id, filters, values)


async def delete_rows(tx: Tx, tenant_id: str, table_id: str, filters: Filters) -> int:
    """Deletes all rows that match, at most 1,000; returns their number."""
    return await rows.delete_matching(tx, tenant_id, table_id, filters)


async def query_rows(
    tx: Tx, tenant_id: str, table_id: str, filters: Filters, *, sort: str | None, limit: int
) -> list[RowView]:
    """Returns the first rows that match, at most 1,000; the newest unless `sort` is set. Raises
    RowsTooLarge.
    """
    return await rows.query(tx, tenant_id, table_id, filters, sort=sort, limit=limit)


async def list_texts(
    tx: Tx, tenant_id: str, table_id: str, columns: Sequence[str], *, limit: int, max_chars: int
) -> list[list[str]]:
    """Returns the values of columns in the newest rows as texts, cut after `max_chars`. A missing
    value, a list, an object and a column that does not exist are empty texts. Raises
    DataTableNotFound.
    """
    keys = await _find_keys(tx, tenant_id, table_id, columns)
    return await text_queries.list_texts(
        tx, tenant_id, table_id, keys, limit=limit, max_chars=max_chars
    )


async def find_texts(
    tx: Tx,
    tenant_id: str,
    table_id: str,
    columns: Sequence[str],
    texts: Sequence[str],
    *,
    limit: int,
) -> list[set[str]]:
    """Returns for each column which of the texts the newest rows have in it, in the form that
    `list_texts` returns. Raises DataTableNotFound.
    """
    keys = await _find_keys(tx, tenant_id, table_id, columns)
    return await text_queries.find_texts(tx, tenant_id, table_id, keys, texts, limit=limit)


async def _find_keys(tx: Tx, tenant_id: str, table_id: str, columns: Sequence[str]) -> list[str]:
    """No value has an empty key."""
    table = await rows.load(tx, tenant_id, table_id)
    found = map(table.find_column, columns)
    return [column.key if column is not None else "" for column in found]
