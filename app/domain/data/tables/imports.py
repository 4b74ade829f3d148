"""Imports of CSV files: accepts, shows and cancels them, and stores their rows in batches."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

import asyncpg
import msgspec

from app.context import RequestContext
from app.jobs import work
from app.jobs.work import WorkKind
from app.kit import clock, csv_cells, files, paging, texts
from app.kit.errors import ApiError, Conflict, FileTooLarge, Invalid
from app.kit.files import Upload
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.value_checks import WrongValue
from app.kit.views import Data
from app.security.principal import Principal
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Tx

from . import import_queries, queries, row_queries, rows, values
from .columns import Column, Table
from .csv_reader import DELIMITERS, CsvFile
from .errors import ImportNotFound, UnreadableFile
from .row_queries import NewRow
from .schemas import ImportMode, ImportProblem, ImportStatus, ImportView

FOLDER: Final = "imports/"
BATCH: Final = 500
# JSON takes up to 40 times as much in memory once it is decoded.
BATCH_CHARS: Final = 1024 * 1024
# How many rows that exist are read at a time.
_MATCHED = 100
IMPORT: Final = WorkKind(
    "tables.import",
    "imports",
    timeout_seconds=3600,
    retry_delays=(2, 10, 60, 300),
    per_tenant=2,
)
_MEGABYTE = 1024 * 1024
_MAX_NAME_CHARS = 255
_KEEP = timedelta(days=7)
_NOT_UNIQUE = "must be unique; another row has this value"
_NO_UNIQUE_COLUMN = (
    "the table has no unique column; make the column that identifies a row unique first"
)


class ImportOptions(msgspec.Struct, frozen=True):
    mode: ImportMode = "insert"
    # The name of the unique column that matches rows.
    match: str | None = None
    delimiter: str | None = None


# Requests


async def start(
    services: Services,
    principal: Principal,
    table_id: str,
    upload: Upload,
    options: ImportOptions,
    store_answer: Callable[[Tx, Data[ImportView]], Awaitable[None]],
) -> Data[ImportView]:
    """Stores the file durably, then the import, its work and the answer together."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        table = await rows.load(tx, tenant_of(tx), table_id)
        match_key = _find_match(table, options)
        await _check_limit(tx, table.tenant_id)
    if options.delimiter not in {None, *DELIMITERS}:
        raise Invalid.field("delimiter", "must be a comma, semicolon, tab or |")
    max_mb = services.settings.max_body_mb
    blocks = files.read_blocks(upload, max_mb * _MEGABYTE, partial(_too_large, max_mb))
    import_id = new_id("imp")
    file = await services.files.put_stream(FOLDER + import_id, blocks)
    name = texts.storable(upload.filename)[-_MAX_NAME_CHARS:] or "file.csv"
    try:
        async with services.db.tx(table.tenant_id) as tx:
            await rows.load(tx, table.tenant_id, table_id, for_rows=True)
            await import_queries.lock_limit(tx, table.tenant_id)
            await _check_limit(tx, table.tenant_id)
            work_id = await work.accept(tx, IMPORT, tenant_id=table.tenant_id, ref_id=import_id)
            fields = (table_id, name, file.key, options.mode, match_key, options.delimiter, work_id)
            view = await import_queries.insert(tx, table.tenant_id, import_id, *fields)
            answer = Data(view)
            await store_answer(tx, answer)
            return answer
    except ApiError:
        await services.files.delete(file.key)
        raise


def _too_large(max_mb: int) -> FileTooLarge:
    message = f"The file is larger than {max_mb} MB; split it."
    return FileTooLarge(message, details={"max_size_mb": max_mb})


async def _check_limit(tx: Tx, tenant_id: str) -> None:
    limit = import_queries.MAX_UNFINISHED
    if await import_queries.count_unfinished(tx, tenant_id) >= limit:
        raise Conflict(f"A tenant has at most {limit} imports at a time; wait for one to end")


def _find_match(table: Table, options: ImportOptions) -> str | None:
    """Returns the key of the column that matches rows."""
    if options.mode == "insert":
        if options.match is not None:
            raise Invalid.field("match", "is for the mode upsert")
        return None
    unique = [column for column in table.columns if column.unique]
    if not unique:
        raise Invalid.field("match", _NO_UNIQUE_COLUMN)
    chosen = [column for column in unique if options.match in {None, column.name}]
    if len(chosen) != 1:
        names = ", ".join(column.name for column in unique)
        raise Invalid.field("match", f"must be a unique column of the table; there are: {names}")
    return chosen[0].key


async def list_page(
    tx: Tx, table_id: str, page: Page, status: ImportStatus | None
) -> Paged[ImportView]:
    views, total = await import_queries.list_page(tx, table_id, page, status)
    if not views:
        await rows.load(tx, tenant_of(tx), table_id)
    return paging.paged(views, total, page)


async def get(tx: Tx, table_id: str, import_id: str) -> ImportView:
    view = await import_queries.find(tx, table_id, import_id)
    if view is None:
        raise _not_found(import_id)
    return view


async def list_errors(tx: Tx, table_id: str, import_id: str, page: Page) -> Paged[ImportProblem]:
    problems, total = await import_queries.list_errors(tx, table_id, import_id, page)
    if not problems:
        await get(tx, table_id, import_id)
    return paging.paged(problems, total, page)


def _not_found(import_id: str) -> ImportNotFound:
    return ImportNotFound(f"This data table has no import {import_id[:64]}")


async def cancel(context: RequestContext, table_id: str, import_id: str) -> ImportView:
    """Rows that were imported already stay."""
    tx, services = context.tx, context.services
    row = await import_queries.find_work(tx, table_id, import_id)
    if row is None:
        raise _not_found(import_id)
    tenant_id = row["tenant_id"]
    # Work is locked before the import, as a worker does.
    await work.cancel(tx, services.doorbell, tenant_id, row["work_id"])
    if await import_queries.end(tx, tenant_id, import_id, "cancelled") is None:
        raise Conflict("This import has already ended")
    tx.after_commit.append(partial(services.files.delete, row["file_key"]))
    return await get(tx, table_id, import_id)


async def delete_old_files(services: Services) -> None:
    """Imports delete their files themselves. These are left over from processes that died."""
    await services.files.delete_older(FOLDER, clock.now() - _KEEP)


# Rows of the file


class FileRow(msgspec.Struct, frozen=True):
    """A row of the file; `number` counts from 1."""

    number: int
    stored: dict[str, Any]


class FileRows(msgspec.Struct):
    """Rows of a file that can be stored, and what is wrong with the others."""

    rows: list[FileRow]
    problems: list[ImportProblem]


def map_header(table: Table, header: Sequence[str]) -> list[Column]:
    """Returns the column of each cell. Raises UnreadableFile."""
    known = {column.name.casefold(): column for column in table.columns}
    names = [csv_cells.unescape_formula(cell).casefold() for cell in header]
    unknown = [cell for cell, name in zip(header, names, strict=True) if name not in known]
    if unknown:
        text = ", ".join(repr(cell[:64]) for cell in unknown[:5])
        raise UnreadableFile(f"has columns that the table does not have: {text}")
    if len(set(names)) < len(names):
        raise UnreadableFile("has the same column twice")
    return [known[name] for name in names]


def parse(table: Table, file: CsvFile, records: list[list[str]], first: int) -> FileRows:
    """Checks records, of which the first one has a number."""
    columns = map_header(table, file.header)
    batch = FileRows([], [])
    for number, record in enumerate(records, first):
        stored: dict[str, Any] = {}
        problem = None
        if len(record) > len(columns):
            problem = ImportProblem(number, "has more cells than the header")
        for column, cell in zip(columns, record, strict=False):
            try:
                stored[column.key] = values.parse_text(column, csv_cells.unescape_formula(cell))
            except WrongValue as error:
                problem = problem or ImportProblem(number, str(error), column.name)
        if problem is None:
            batch.rows.append(FileRow(number, stored))
        else:
            batch.problems.append(problem)
    return batch


async def store(
    tx: Tx, table: Table, batch: FileRows, match_key: str | None
) -> list[ImportProblem]:
    """Inserts or updates rows; returns what is wrong with those that were left out."""
    problems = list(batch.problems)
    new = await _drop_unknown_files(tx, table, batch.rows, problems)
    column = next((item for item in table.columns if item.key == match_key), None)
    if match_key is not None and (column is None or column.unique_slot is None):
        raise UnreadableFile("can no longer be matched: its column is not unique")
    if column is not None:
        new = await _update_matched(tx, table, column, new, problems)
    refused = await _insert(tx, table, new, problems)
    if column is not None and refused:
        # Another transaction may have inserted them meanwhile.
        refused = await _update_matched(tx, table, column, refused, problems)
    await _report_duplicates(tx, table, refused, problems)
    return sorted(problems, key=lambda problem: problem.row)


async def _drop_unknown_files(
    tx: Tx, table: Table, file_rows: list[FileRow], problems: list[ImportProblem]
) -> list[FileRow]:
    files = {row.number: list(values.list_file_ids(table.columns, row.stored)) for row in file_rows}
    ids = [file_id for items in files.values() for _, file_id in items]
    unknown = await rows.find_unknown_files(tx, table, ids)
    kept = []
    for row in file_rows:
        wrong = [name for name, file_id in files[row.number] if file_id in unknown]
        if wrong:
            problems.append(ImportProblem(row.number, "this file does not exist", wrong[0]))
        else:
            kept.append(row)
    return kept


async def _update_matched(
    tx: Tx,
    table: Table,
    column: Column,
    file_rows: list[FileRow],
    problems: list[ImportProblem],
) -> list[FileRow]:
    """Updates the rows that exist; returns the others. The last of several with one value wins."""
    last = {row.stored.get(column.key): row for row in file_rows}
    without = [row for row in file_rows if row.stored.get(column.key) is None]
    distinct = [row for key, row in last.items() if key is not None]
    matched = await row_queries.match(tx, table, column, [row.stored for row in distinct])
    row_ids = sorted(matched, key=lambda row_id: matched[row_id])
    for start in range(0, len(row_ids), _MATCHED):
        batch = row_ids[start : start + _MATCHED]
        existing = {row["id"]: row for row in await row_queries.lock(tx, table, batch)}
        for row_id in batch:
            problem = await _update(tx, table, existing[row_id], distinct[matched[row_id]])
            if problem is not None:
                problems.append(problem)
    positions = set(matched.values())
    return [*without, *(row for index, row in enumerate(distinct) if index not in positions)]


async def _update(tx: Tx, table: Table, existing: Row, row: FileRow) -> ImportProblem | None:
    merged = existing["values"] | row.stored
    after = {key: value for key, value in merged.items() if value is not None}
    problem = _find_problem(table, row.number, after)
    if problem is None:
        try:
            await row_queries.update(tx, table, {existing["id"]: after})
        except asyncpg.UniqueViolationError as error:
            name = rows.find_unique_column(table, error).name
            return ImportProblem(row.number, _NOT_UNIQUE, name)
    return problem


def _find_problem(table: Table, number: int, stored: dict[str, Any]) -> ImportProblem | None:
    for path, message in values.find_row_problems(table.columns, stored, "values"):
        name = path.removeprefix("values").removeprefix(".") or None
        return ImportProblem(number, message, name)
    return None


async def _insert(
    tx: Tx, table: Table, file_rows: list[FileRow], problems: list[ImportProblem]
) -> list[FileRow]:
    """Returns the rows that are not unique. An empty cell takes the default of its column."""
    new_rows: dict[str, tuple[NewRow, FileRow]] = {}
    for row in sorted(file_rows, key=lambda item: item.number):
        stored = _complete(table, row)
        problem = _find_problem(table, row.number, stored)
        if problem is not None:
            problems.append(problem)
            continue
        new_row = rows.build_row(stored)
        new_rows[new_row.id] = (new_row, row)
    if not new_rows:
        return []
    await rows.check_room(tx, table, len(new_rows))
    inserted = await row_queries.insert(tx, table, [item for item, _ in new_rows.values()], "r.id")
    await queries.add_to_count(tx, table.tenant_id, table.id, len(inserted))
    for item in inserted:
        del new_rows[item["id"]]
    return [row for _, row in new_rows.values()]


def _complete(table: Table, row: FileRow) -> dict[str, Any]:
    """Returns the values of a new row, with defaults."""
    cells_with_values = {key: value for key, value in row.stored.items() if value is not None}
    return values.add_defaults(table.columns, cells_with_values)


async def _report_duplicates(
    tx: Tx, table: Table, file_rows: list[FileRow], problems: list[ImportProblem]
) -> None:
    if not file_rows:
        return
    stored = [_complete(table, row) for row in file_rows]
    duplicates = await row_queries.find_duplicates(tx, table, stored)
    names = {position: column.name for position, column in reversed(duplicates)}
    problems += [
        ImportProblem(row.number, _NOT_UNIQUE, names.get(position))
        for position, row in enumerate(file_rows)
    ]
