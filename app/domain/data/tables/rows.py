"""Rows of tables: creates, shows, changes, deletes and lists them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncpg
import msgspec
from msgspec import UNSET

from app.domain.platform.files import api as files
from app.kit import clock, ids, paging
from app.kit.errors import Conflict, Invalid, Problem
from app.kit.ids import new_id
from app.kit.pacing import Pace
from app.kit.paging import Page, Paged
from app.security.errors import TenantNotFound
from app.security.plans import plan_of
from db.fast import Row, tenant_of
from db.session import Tx

from . import columns, filters, list_queries, queries, row_queries, values
from .columns import Column, Table
from .errors import (
    DataTableNotFound,
    NotUnique,
    RowNotFound,
    RowQuotaExceeded,
    RowsTooLarge,
    TableFull,
)
from .events import RowCreated, RowDeleted, RowUpdated
from .filters import Condition, Filters
from .row_queries import NewRow
from .row_statement_queries import Selection
from .schemas import CreatedRows, CreateRows, RowView

MAX_ROWS: Final = 5_000_000
MAX_CHANGED_ROWS: Final = 1000
# Of the values of all rows of a query as JSON, which take ten times as much in memory.
MAX_QUERY_BYTES: Final = 2 * 1024 * 1024
# How many rows are read and changed at a time.
_BATCH: Final = 100
MAX_SORTED_ROWS: Final = 50_000
_NOT_UNIQUE = "must be unique; another row has this value"
_STORED_MEANWHILE = "another request stored this row at the same time; try again"


def not_found(table_id: str) -> DataTableNotFound:
    return DataTableNotFound(f"There is no data table {table_id[:64]}")


async def load(tx: Tx, tenant: str | None, table_id: str, *, for_rows: bool = False) -> Table:
    """With `for_rows`, the columns do not change before the transaction ends; raises TableLocked
    while they are being changed.
    """
    find = queries.load_for_rows if for_rows else queries.load
    table = await find(tx, tenant, table_id)
    if table is None:
        raise not_found(table_id)
    return table


def build_view(table: Table, row: Row) -> RowView:
    return RowView(
        row["id"],
        values.name_values(table.columns, row["values"]),
        row["created_at"],
        row["updated_at"],
    )


# Reading


async def list_page(
    tx: Tx,
    table_id: str,
    page: Page,
    parameters: Sequence[tuple[str, str]],
    *,
    search: str | None,
    sort: str | None,
) -> Paged[RowView]:
    table = await load(tx, tenant_of(tx), table_id)
    selection = select(table, parameters, search=search, sort=sort)
    await _check_sort(tx, selection)
    rows, total = await list_queries.list_page(tx, selection, page)
    return paging.paged([build_view(table, row) for row in rows], total, page)


def select(
    table: Table, parameters: Sequence[tuple[str, str]], *, search: str | None, sort: str | None
) -> Selection:
    conditions = filters.parse_query(table, parameters)
    return Selection(table, conditions, search, filters.parse_sort(table, sort))


async def _check_sort(tx: Tx, selection: Selection) -> None:
    if selection.has_unindexed_sort and not selection.has_indexed_filter:
        await check_sorted_rows(tx, selection.table)


async def check_sorted_rows(tx: Tx, table: Table) -> None:
    """Raises Invalid for a table that is too large to be sorted by a column without an index."""
    if await queries.count_rows(tx, table.tenant_id, table.id) > MAX_SORTED_ROWS:
        message = f"must be an indexed column for more than {MAX_SORTED_ROWS:,} rows"
        raise Invalid.field("sort", message)


async def get(tx: Tx, table_id: str, row_id: str) -> RowView:
    row = await row_queries.find(tx, table_id, row_id)
    if row is None:
        raise await _row_not_found(tx, table_id, row_id)
    named = values.name_values(columns.decode(row["columns"]), row["values"])
    return RowView(row["id"], named, row["created_at"], row["updated_at"])


async def _row_not_found(tx: Tx, table_id: str, row_id: str) -> RowNotFound:
    """Raises DataTableNotFound unless the table exists."""
    await load(tx, tenant_of(tx), table_id)
    return RowNotFound(f"This data table has no row {row_id[:64]}")


async def query(
    tx: Tx, tenant_id: str, table_id: str, filters_: Filters, *, sort: str | None, limit: int
) -> list[RowView]:
    """Returns the first rows that match; the newest without `sort`. Raises RowsTooLarge."""
    table = await load(tx, tenant_id, table_id)
    conditions = filters.parse_filters(table, filters_)
    selection = Selection(table, conditions, sort=filters.parse_sort(table, sort))
    await _check_sort(tx, selection)
    limit = max(1, min(limit, MAX_CHANGED_ROWS))
    rows = await list_queries.list_rows(tx, selection, limit, MAX_QUERY_BYTES)
    if rows is None:
        size = f"{MAX_QUERY_BYTES // 1024} KiB"
        raise RowsTooLarge(f"The rows are larger than {size} together; query fewer of them")
    return [build_view(table, row) for row in rows]


# Adding


async def create(tx: Tx, table_id: str, data: CreateRows) -> CreatedRows:
    tenant = tenant_of(tx)
    if data.rows is not UNSET and data.values is UNSET:
        views = await insert_many(tx, tenant, table_id, data.rows, is_bulk=True)
        return CreatedRows(views)
    if data.values is UNSET or data.rows is not UNSET:
        raise Invalid.field("values", "set either values or rows")
    [view] = await insert_many(tx, tenant, table_id, [data.values], is_bulk=False)
    return CreatedRows(view)


async def insert_many(
    tx: Tx,
    tenant: str | None,
    table_id: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    is_bulk: bool,
    source: str | None = None,
) -> list[RowView]:
    """Inserts all rows or none, with an event for each."""
    table = await load(tx, tenant, table_id, for_rows=True)
    stored = await _check_new(tx, table, rows, is_bulk=is_bulk)
    await check_room(tx, table, len(rows))
    new_rows = [build_row(item, source) for item in stored]
    inserted = {row["id"]: row for row in await row_queries.insert(tx, table, new_rows)}
    if len(inserted) < len(new_rows):
        raise await _not_unique(tx, table, new_rows, inserted, is_bulk=is_bulk)
    await queries.add_to_count(tx, table.tenant_id, table.id, len(new_rows))
    views = [build_view(table, inserted[row.id]) for row in new_rows]
    await _emit(tx, table, RowCreated, views)
    return views


async def insert_once(
    tx: Tx, tenant_id: str, table_id: str, row: Mapping[str, Any], source: str
) -> RowView:
    """Inserts a row unless this source has inserted one already; returns it in both cases."""
    known = await row_queries.find_by_source(tx, tenant_id, source)
    if known is None:
        try:
            [view] = await insert_many(tx, tenant_id, table_id, [row], is_bulk=False, source=source)
        except NotUnique:
            # Another transaction may have inserted it meanwhile.
            known = await row_queries.find_by_source(tx, tenant_id, source)
            if known is None:
                raise
        else:
            return view
    return build_view(await load(tx, tenant_id, known["table_id"]), known)


def build_row(stored: dict[str, Any], source: str | None = None) -> NewRow:
    row_id = new_id("row")
    return NewRow(row_id, ids.moment_of(row_id) or clock.now(), stored, source)


async def check_room(tx: Tx, table: Table, count: int) -> None:
    """Raises TableFull, RowQuotaExceeded. Simultaneous requests may add a few rows more."""
    row = await queries.find_room(tx, table.tenant_id, table.id)
    if row is None:
        raise TenantNotFound(f"There is no tenant {table.tenant_id[:64]}")
    if row["table_rows"] + count > MAX_ROWS:
        raise TableFull(f"A data table has at most {MAX_ROWS:,} rows; delete some first")
    limit = plan_of(row["plan"], msgspec.json.decode(row["limits"])).data_rows
    if limit and row["tenant_rows"] + count > limit:
        raise RowQuotaExceeded(
            f"The data tables of this tenant may have {limit:,} rows together; delete some first",
            details={"used_rows": row["tenant_rows"], "limit_rows": limit},
        )


async def _check_new(
    tx: Tx, table: Table, rows: Sequence[Mapping[str, Any]], *, is_bulk: bool
) -> list[dict[str, Any]]:
    problems: list[Problem] = []
    stored = []
    paths = [f"rows.{number}.values" if is_bulk else "values" for number in range(len(rows))]
    pace = Pace()
    for row, path in zip(rows, paths, strict=True):
        await pace.rest()
        result = values.check_values(table.columns, row, path)
        complete = values.add_defaults(table.columns, result.stored)
        row_problems = values.find_row_problems(table.columns, complete, path)
        problems += result.problems or row_problems
        stored.append(complete)
    Invalid.check(problems)
    await _check_files(tx, table, dict(zip(paths, stored, strict=True)))
    return stored


async def _check_files(tx: Tx, table: Table, stored: Mapping[str, Mapping[str, Any]]) -> None:
    references = [
        (f"{path}.{name}", file_id)
        for path, row in stored.items()
        for name, file_id in values.list_file_ids(table.columns, row)
    ]
    unknown = await find_unknown_files(tx, table, [file_id for _, file_id in references])
    Invalid.check(
        (path, "this file does not exist") for path, item in references if item in unknown
    )


async def find_unknown_files(tx: Tx, table: Table, file_ids: list[str]) -> set[str]:
    if not file_ids:
        return set()
    distinct = list(dict.fromkeys(file_ids))
    return set(await files.find_unknown_ids(tx, table.tenant_id, distinct))


async def _not_unique(
    tx: Tx,
    table: Table,
    rows: Sequence[NewRow],
    inserted: Mapping[str, Row],
    *,
    is_bulk: bool,
) -> Conflict:
    refused = [(position, row) for position, row in enumerate(rows) if row.id not in inserted]
    duplicates = await row_queries.find_duplicates(tx, table, [row.stored for _, row in refused])
    problems = [(refused[index][0], column.name, _NOT_UNIQUE) for index, column in duplicates]
    if not problems:
        return NotUnique([(refused[0][0], None, _STORED_MEANWHILE)], is_bulk=is_bulk)
    return NotUnique(problems, is_bulk=is_bulk)


# Changing


async def update(
    tx: Tx,
    tenant: str | None,
    table_id: str,
    row_id: str,
    new_values: Mapping[str, Any],
    *,
    replace: bool = False,
) -> RowView:
    """Sets some values of a row; with `replace`, all of them."""
    table = await load(tx, tenant, table_id, for_rows=True)
    rows = await row_queries.lock(tx, table, [row_id])
    if not rows:
        raise RowNotFound(f"This data table has no row {row_id[:64]}")
    [view] = await _change(tx, table, rows, new_values, replace=replace)
    return view


async def _change(
    tx: Tx, table: Table, rows: list[Row], new_values: Mapping[str, Any], *, replace: bool
) -> list[RowView]:
    """Writes the rows that differ; returns all."""
    result = values.check_values(table.columns, new_values, "values")
    Invalid.check(result.problems)
    await _check_files(tx, table, {"values": result.stored})
    known = {column.key for column in table.columns}
    changed: dict[str, dict[str, Any]] = {}
    for row in rows:
        before = {key: value for key, value in row["values"].items() if key in known}
        if replace:
            after = values.add_defaults(table.columns, result.stored)
        else:
            merged = before | result.stored
            after = {key: value for key, value in merged.items() if value is not None}
        Invalid.check(values.find_row_problems(table.columns, after, "values"))
        if after != before:
            changed[row["id"]] = after
    written = {row["id"]: row for row in await _write(tx, table, changed)} if changed else {}
    views = [build_view(table, written.get(row["id"], row)) for row in rows]
    await _emit(tx, table, RowUpdated, [view for view in views if view.id in written])
    return views


async def _write(tx: Tx, table: Table, changed: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    try:
        return await row_queries.update(tx, table, changed)
    except asyncpg.UniqueViolationError as error:
        name = find_unique_column(table, error).name
        raise NotUnique([(0, name, _NOT_UNIQUE)], is_bulk=False) from None


def find_unique_column(table: Table, error: asyncpg.UniqueViolationError) -> Column:
    """Returns the column whose uniqueness a statement would have violated."""
    slot = str(error.constraint_name).removeprefix("uq_data_rows_")
    return next(column for column in table.columns if column.unique_slot == slot)


async def update_matching(
    tx: Tx, tenant_id: str, table_id: str, filters_: Filters, new_values: Mapping[str, Any]
) -> int:
    """Returns the number of rows that match."""
    table = await load(tx, tenant_id, table_id, for_rows=True)
    count = 0
    # A savepoint: when the last rows cannot be changed, the first ones are not either.
    async with (await tx.raw()).transaction():
        for row_ids in await _list_ids_to_change(tx, table, filters.parse_filters(table, filters_)):
            rows = await row_queries.lock(tx, table, row_ids)
            await _change(tx, table, rows, new_values, replace=False)
            count += len(rows)
    return count


async def _list_ids_to_change(tx: Tx, table: Table, conditions: list[Condition]) -> list[list[str]]:
    """Returns the ids of the rows that match, in batches and in the order of locks."""
    row_ids = await list_queries.list_ids(tx, Selection(table, conditions), MAX_CHANGED_ROWS + 1)
    if len(row_ids) > MAX_CHANGED_ROWS:
        raise Invalid.field("filter", f"must match at most {MAX_CHANGED_ROWS:,} rows")
    row_ids.sort()
    return [row_ids[start : start + _BATCH] for start in range(0, len(row_ids), _BATCH)]


# Deleting


async def delete(tx: Tx, tenant: str | None, table_id: str, row_id: str) -> None:
    table = await load(tx, tenant, table_id, for_rows=True)
    if not await _delete(tx, table, [row_id]):
        raise RowNotFound(f"This data table has no row {row_id[:64]}")


async def delete_matching(tx: Tx, tenant_id: str, table_id: str, filters_: Filters) -> int:
    table = await load(tx, tenant_id, table_id, for_rows=True)
    batches = await _list_ids_to_change(tx, table, filters.parse_filters(table, filters_))
    return sum([await _delete(tx, table, row_ids) for row_ids in batches])


async def _delete(tx: Tx, table: Table, row_ids: Sequence[str]) -> int:
    rows = await row_queries.delete(tx, table, row_ids) if row_ids else []
    if rows:
        await queries.add_to_count(tx, table.tenant_id, table.id, -len(rows))
        await _emit(tx, table, RowDeleted, [build_view(table, row) for row in rows])
    return len(rows)


async def _emit(
    tx: Tx, table: Table, kind: type[RowCreated | RowUpdated | RowDeleted], views: Sequence[RowView]
) -> None:
    if views:
        row_events = [kind(table.id, view.id, view.values) for view in views]
        await row_queries.emit(tx, table.tenant_id, row_events)
