from functools import partial
from typing import Annotated

import msgspec
from litestar import Controller, delete, get, patch, post, put
from litestar.datastructures import UploadFile
from litestar.params import JSONBody, MultipartBody, QueryParameter
from litestar.response import Stream

from app.http import idempotency
from app.http.dependencies import Context, HttpRequest, Id, Page, Principal, Services, Tx
from app.http.paging import OfStatus, Search, Sort
from app.http.records import Record, lock_row
from app.kit import filenames
from app.kit.paging import Paged
from app.kit.views import Data
from db.fast import tenant_of

from . import export, imports, rows, tables
from .imports import ImportOptions
from .schemas import (
    ChangeRow,
    CreatedRows,
    CreateRows,
    CreateTable,
    ImportMode,
    ImportProblem,
    ImportStatus,
    ImportView,
    RowView,
    TableView,
    UpdateTable,
)

_TABLE = Record(lock_row("data_tables", id="table_id"))
_ROW = Record(lock_row("data_rows", table_id="table_id", id="row_id"))


class ImportUpload(msgspec.Struct):
    """A CSV file whose first row names columns of the table. At most 25 MB unless configured
    otherwise.
    """

    file: UploadFile


# The name of a column has up to 64 characters.
RowSort = Annotated[
    str | None,
    QueryParameter(max_length=65, description="A column to sort by; a leading - means descending"),
]


FILTERS = "Example: filter[price][gte]=10. Without an operator: equal."
MODES = (
    "`insert` adds rows; `upsert` changes rows whose `match` column has the same value, and adds "
    "the others. With upsert, the last of several rows with one value counts."
)


class DataTableController(Controller):
    path = "/api/v1/data-tables"
    tags = ["Data tables"]

    @get(summary="List data tables", needs="data_tables:read")
    async def list_tables(
        self, tx: Tx, page_in: Page, search: Search = None, sort: Sort = None
    ) -> Paged[TableView]:
        """`search` looks in names and descriptions. Sort by name, created_at or updated_at; by
        default the newest come first.
        """
        return await tables.list_page(tx, page_in, search=search, sort=sort)

    @post(summary="Create a data table", needs="data_tables:write")
    async def create_table(self, context: Context, data: JSONBody[CreateTable]) -> Data[TableView]:
        """Up to 6 columns with texts and 6 with numbers, dates or booleans are indexed, so that
        filters and sorting by them are fast in large tables; up to 4 columns can be unique.
        """
        return Data(await tables.create(context, data))

    @get("/{table_id:str}", summary="Get a data table", needs="data_tables:read")
    async def get_table(self, tx: Tx, table_id: Id) -> Data[TableView]:
        return Data(await tables.get(tx, table_id))

    @put("/{table_id:str}", summary="Change a data table", needs="data_tables:write", record=_TABLE)
    async def update_table(
        self, tx: Tx, table_id: Id, data: JSONBody[UpdateTable]
    ) -> Data[TableView]:
        """Any subset of the fields. `columns` is the list of all columns: those that it does not
        name, by `id` or else by name, are dropped with their values. Values are converted to
        another type, or the change is refused with examples of rows that cannot be converted. A
        new required column needs a default when there are rows. A change that rewrites the rows of
        a table with more than 25,000 is refused with `table_too_large`; a new column of such a
        table has no index.
        """
        return Data(await tables.update(tx, table_id, data))

    @patch(
        "/{table_id:str}",
        summary="Change a part of a data table",
        needs="data_tables:write",
        record=_TABLE,
    )
    async def patch_table(
        self, tx: Tx, table_id: Id, data: JSONBody[UpdateTable]
    ) -> Data[TableView]:
        """The same as PUT."""
        return Data(await tables.update(tx, table_id, data))

    @delete("/{table_id:str}", summary="Delete a data table", needs="data_tables:write")
    async def delete_table(self, tx: Tx, table_id: Id) -> None:
        """It disappears at once. Its rows are removed in the background."""
        await tables.delete(tx, table_id)


class DataRowController(Controller):
    path = "/api/v1/data-tables/{table_id:str}/rows"
    tags = ["Data tables"]

    @get(summary="List rows", needs="data_tables:read", filters=FILTERS)
    async def list_rows(
        self,
        tx: Tx,
        request: HttpRequest,
        page_in: Page,
        table_id: Id,
        search: Search = None,
        sort: RowSort = None,
    ) -> Paged[RowView]:
        """Filters are query parameters like `filter[price][gte]=10`, at most 20, with the operators
        eq, ne, gt, gte, lt, lte, contains, in (values with commas between them) and is_null (true
        or false). `search` looks in columns with texts. Sort by a column, created_at or updated_at;
        by default the newest come first. Rows without a value come last, or first with a leading
        `-`; texts are in the order of their characters. The total of filtered rows is an estimate
        beyond 1,000, and `estimated` is true.
        """
        parameters = request.query_params.multi_items()
        return await rows.list_page(
            tx, table_id, page_in, list(parameters), search=search, sort=sort
        )

    @post(summary="Add rows", stores=True, needs="data_tables:write")
    async def create_rows(self, tx: Tx, table_id: Id, data: JSONBody[CreateRows]) -> CreatedRows:
        """One row as `values`, or up to 500 as `rows`: all of them are stored, or none."""
        return await rows.create(tx, table_id, data)

    @get("/{row_id:str}", summary="Get a row", needs="data_tables:read")
    async def get_row(self, tx: Tx, table_id: Id, row_id: Id) -> Data[RowView]:
        return Data(await rows.get(tx, table_id, row_id))

    @put(
        "/{row_id:str}",
        summary="Replace a row",
        stores=True,
        needs="data_tables:write",
        record=_ROW,
    )
    async def replace_row(
        self, tx: Tx, table_id: Id, row_id: Id, data: JSONBody[ChangeRow]
    ) -> Data[RowView]:
        """All values: those that are left out get their default or are removed."""
        view = await rows.update(tx, tenant_of(tx), table_id, row_id, data.values, replace=True)
        return Data(view)

    @patch(
        "/{row_id:str}", summary="Change a row", stores=True, needs="data_tables:write", record=_ROW
    )
    async def update_row(
        self, tx: Tx, table_id: Id, row_id: Id, data: JSONBody[ChangeRow]
    ) -> Data[RowView]:
        """Some values; null removes one."""
        return Data(await rows.update(tx, tenant_of(tx), table_id, row_id, data.values))

    @delete("/{row_id:str}", summary="Delete a row", needs="data_tables:write")
    async def delete_row(self, tx: Tx, table_id: Id, row_id: Id) -> None:
        await rows.delete(tx, tenant_of(tx), table_id, row_id)


class DataTransferController(Controller):
    path = "/api/v1/data-tables/{table_id:str}"
    tags = ["Data tables"]

    @post(
        "/import",
        summary="Import a CSV file",
        stores=True,
        needs="data_tables:write",
        status_code=202,
        upload=True,
        idempotent="long_running",
        full_files=1,
    )
    async def import_file(
        self,
        request: HttpRequest,
        services: Services,
        principal: Principal,
        table_id: Id,
        data: MultipartBody[ImportUpload],
        mode: Annotated[ImportMode, QueryParameter(description=MODES)] = "insert",
        match: Annotated[
            str | None,
            QueryParameter(max_length=64, description="The unique column that matches rows"),
        ] = None,
        delimiter: Annotated[
            str | None,
            QueryParameter(max_length=1, description="Detected from the first line unless set"),
        ] = None,
    ) -> Data[ImportView]:
        """A worker stores the rows; the answer is the record of the import, which has the progress.
        A wrong row is reported and left out. An empty cell is a missing value; in a new row it
        takes the default of its column.
        """
        options = ImportOptions(mode, match, delimiter)
        store_answer = partial(idempotency.store_answer, request)
        return await imports.start(services, principal, table_id, data.file, options, store_answer)

    @get("/imports", summary="List imports", needs="data_tables:read")
    async def list_imports(
        self,
        tx: Tx,
        page_in: Page,
        table_id: Id,
        status: OfStatus[ImportStatus] = None,
    ) -> Paged[ImportView]:
        """The newest first."""
        return await imports.list_page(tx, table_id, page_in, status)

    @get("/imports/{import_id:str}", summary="Get an import", needs="data_tables:read")
    async def get_import(self, tx: Tx, table_id: Id, import_id: Id) -> Data[ImportView]:
        return Data(await imports.get(tx, table_id, import_id))

    @get(
        "/imports/{import_id:str}/errors",
        summary="List errors of an import",
        needs="data_tables:read",
    )
    async def list_import_errors(
        self, tx: Tx, page_in: Page, table_id: Id, import_id: Id
    ) -> Paged[ImportProblem]:
        """In the order of the rows of the file; the first 10,000."""
        return await imports.list_errors(tx, table_id, import_id, page_in)

    @post(
        "/imports/{import_id:str}/cancel",
        summary="Cancel an import",
        needs="data_tables:write",
        status_code=200,
    )
    async def cancel_import(
        self, context: Context, table_id: Id, import_id: Id
    ) -> Data[ImportView]:
        """Rows that were imported already stay."""
        return Data(await imports.cancel(context, table_id, import_id))

    @get(
        "/export",
        summary="Export rows",
        needs="data_tables:read",
        media_type="text/csv",
        filters=FILTERS,
    )
    async def export_rows(
        self,
        services: Services,
        principal: Principal,
        request: HttpRequest,
        table_id: Id,
        search: Search = None,
        sort: RowSort = None,
    ) -> Stream:
        """All rows as CSV in UTF-8, with the filters and the order of the list, in a file with the
        name of the table. A value that a spreadsheet would read as a formula starts with an
        apostrophe, which an import removes. An export whose rows take too long to find is refused,
        or aborted when it has started. A tenant has at most 2 exports at the same time: 429
        `rate_limited`, with `Retry-After`.
        """
        parameters = list(request.query_params.multi_items())
        selection = await export.select(
            services, principal.scope, table_id, parameters, search=search, sort=sort
        )
        headers = {
            "content-disposition": filenames.as_attachment(export.name_file(selection.table)),
            "content-type": "text/csv; charset=utf-8",
        }
        return Stream(await export.start(services, selection), headers=headers)
