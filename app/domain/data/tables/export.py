"""Exports rows as CSV: page by page, each with a transaction of its own."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Final

from app.jobs.threads import TenantThreads
from app.kit import csv_cells, csv_export, filenames
from app.kit.csv_export import ExportLimit
from app.kit.errors import Conflict, Invalid
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Scope

from . import list_queries, queries, rows, values
from .columns import Column, Table
from .errors import ExportInterrupted
from .row_statement_queries import Selection

# Rows of nested JSON take ten times their length in memory.
_PAGE: Final = 100
_PLAIN_TYPES: Final = frozenset({"number", "integer", "boolean", "date", "datetime"})


async def select(
    services: Services,
    scope: Scope,
    table_id: str,
    parameters: Sequence[tuple[str, str]],
    *,
    search: str | None,
    sort: str | None,
) -> Selection:
    """Checks everything that can be wrong, before the answer starts."""
    async with services.db.tx(scope, autocommit=True) as tx:
        table = await rows.load(tx, tenant_of(tx), table_id)
        selection = rows.select(table, parameters, search=search, sort=sort)
        # Every page of an order without an index reads the whole table.
        if selection.has_unindexed_sort:
            await rows.check_sorted_rows(tx, table)
    return selection


def name_file(table: Table) -> str:
    """Returns the name of the file that has the rows of a table."""
    name = table.name.replace("/", "-").replace("\\", "-")
    return filenames.clean(f"{name}.csv") or "rows.csv"


async def start(services: Services, selection: Selection) -> AsyncIterator[bytes]:
    """Returns the parts of the file. Raises RateLimited, and Invalid when the first rows take too
    long to find.
    """
    limit, tenant_id = services.get(ExportLimit), selection.table.tenant_id
    return await csv_export.start(limit, tenant_id, _stream(services, selection))


async def _stream(services: Services, selection: Selection) -> AsyncGenerator[bytes]:
    """Raises ExportInterrupted when the columns change or rows take too long to find, so that the
    server aborts the connection and the caller does not take a part for the whole.
    """
    table, threads = selection.table, services.get(TenantThreads)
    try:
        page = await _read_page(services, selection, None)
    except ExportInterrupted:
        raise Conflict("This data table was changed or deleted meanwhile; try again") from None
    yield csv_cells.encode_rows(
        [[csv_cells.escape_formula(column.name) for column in table.columns]]
    )
    while page:
        yield await threads.run(table.tenant_id, _encode_page, table.columns, page)
        if len(page) < _PAGE:
            return
        after = (page[-1]["key"], page[-1]["id"])
        # Two pages at a time would take twice the memory.
        page = []
        try:
            page = await _read_page(services, selection, after)
        except Invalid as error:
            raise ExportInterrupted(f"data table {table.id}: {error.message}") from None


async def _read_page(
    services: Services, selection: Selection, after: tuple[Any, str] | None
) -> list[Row]:
    table = selection.table
    async with services.db.tx(table.tenant_id, autocommit=True) as tx:
        page = await list_queries.list_after(tx, selection, after, _PAGE)
        current = await queries.load(tx, table.tenant_id, table.id)
    if current is None or current.revision != table.revision:
        raise ExportInterrupted(f"data table {table.id} was changed or deleted")
    return page


def _encode_page(columns: list[Column], page: list[Row]) -> bytes:
    return csv_cells.encode_rows(_format(columns, row["values"]) for row in page)


def _format(columns: list[Column], stored: dict[str, Any]) -> list[str]:
    return [_format_cell(column, stored.get(column.key)) for column in columns]


def _format_cell(column: Column, value: Any) -> str:
    text = values.format_value(column, value)
    return text if column.type in _PLAIN_TYPES else csv_cells.escape_formula(text)
