from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit.validation import ONE_LINE

from .columns import ColumnType

MAX_COLUMNS = 50
MAX_BULK_ROWS = 500
_TIME = "2026-01-01T12:00:00Z"
_EMAIL: dict[str, Any] = {"name": "email", "type": "text", "required": True, "unique": True}
_STATUS: dict[str, Any] = {
    "name": "status",
    "type": "select",
    "options": ["new", "won", "lost"],
    "default": "new",
}
_COLUMN: dict[str, Any] = {
    "id": "c1",
    **_EMAIL,
    "default": None,
    "options": None,
    "indexed": True,
}
_TABLE: dict[str, Any] = {
    "id": "tbl_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "name": "Leads",
    "description": "People who asked for an offer",
    "columns": [_COLUMN],
    "row_count": 2,
    "created_at": _TIME,
    "updated_at": _TIME,
}
_VALUES: dict[str, Any] = {"email": "ann@example.com", "status": "new"}
_ROW: dict[str, Any] = {
    "id": "row_01k9x3m7e8c0v2q4r6t8w0y2a5",
    "values": _VALUES,
    "created_at": _TIME,
    "updated_at": _TIME,
}
_PROBLEM: dict[str, Any] = {"row": 17, "column": "email", "message": "is required"}
_IMPORT: dict[str, Any] = {
    "id": "imp_01k9x3m7e8c0v2q4r6t8w0y2a6",
    "table_id": "tbl_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "status": "completed",
    "filename": "leads.csv",
    "mode": "insert",
    "rows_total": 1000,
    "rows_done": 1000,
    "rows_failed": 1,
    "errors": [_PROBLEM],
    "error": None,
    "created_at": _TIME,
    "finished_at": _TIME,
}

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Description = Annotated[str, Meta(max_length=2000)]
ColumnName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=ONE_LINE,
        description="Unique in the table, without brackets",
    ),
]
Options = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=100)]],
    Meta(max_length=200, description="The values of a select column"),
]
Values = Annotated[dict[str, Any], Meta(description="By the names of columns")]


class NewColumn(msgspec.Struct, kw_only=True):
    """Without `indexed`, the column gets an index while one is free."""

    example: ClassVar[dict[str, Any]] = _EMAIL

    name: ColumnName
    type: ColumnType
    required: bool = False
    unique: bool = False
    default: Any = None
    options: Options | None = None
    indexed: bool | None = None


class ChangedColumn(msgspec.Struct, kw_only=True):
    """A column that exists, by its `id` or else its name; or a new one, with its type. Fields that
    are left out stay as they are.
    """

    example: ClassVar[dict[str, Any]] = {"id": "c1", "name": "e-mail"}

    id: Annotated[str, Meta(min_length=1, max_length=16)] | UnsetType = UNSET
    name: ColumnName | UnsetType = UNSET
    type: ColumnType | UnsetType = UNSET
    required: bool | UnsetType = UNSET
    unique: bool | UnsetType = UNSET
    default: Any | UnsetType = UNSET
    options: Options | UnsetType | None = UNSET
    indexed: bool | UnsetType = UNSET


class CreateTable(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Leads",
        "description": "People who asked for an offer",
        "columns": [_EMAIL, _STATUS],
    }

    name: Name
    description: Description = ""
    columns: Annotated[list[NewColumn], Meta(min_length=1, max_length=MAX_COLUMNS)]


class UpdateTable(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"name": "Contacts"}

    name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    columns: (
        Annotated[list[ChangedColumn], Meta(min_length=1, max_length=MAX_COLUMNS)] | UnsetType
    ) = UNSET


class ColumnView(msgspec.Struct):
    """`id` stays the same when the column is renamed."""

    example: ClassVar[dict[str, Any]] = _COLUMN

    id: str
    name: str
    type: ColumnType
    required: bool
    unique: bool
    default: Any
    options: list[str] | None
    indexed: bool


class TableView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = _TABLE

    id: str
    name: str
    description: str
    columns: list[ColumnView]
    row_count: int
    created_at: datetime
    updated_at: datetime


# Rows


class CreateRows(msgspec.Struct, kw_only=True):
    """One row as `values`, or up to 500 as `rows`, of which all or none are stored."""

    example: ClassVar[dict[str, Any]] = {"values": _VALUES}

    values: Values | UnsetType = UNSET
    rows: Annotated[list[Values], Meta(min_length=1, max_length=MAX_BULK_ROWS)] | UnsetType = UNSET


class ChangeRow(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"values": {"status": "won"}}

    values: Values


class RowView(msgspec.Struct):
    """`values` has every column of the table; null where the row has no value."""

    example: ClassVar[dict[str, Any]] = _ROW

    id: str
    values: dict[str, Any]
    created_at: datetime
    updated_at: datetime


# Imports

ImportStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
ImportMode = Literal["insert", "upsert"]


class ImportProblem(msgspec.Struct, omit_defaults=True):
    """`row` counts the rows of the file from 1, without the header."""

    example: ClassVar[dict[str, Any]] = _PROBLEM

    row: int
    message: str
    column: str | None = None


class ImportView(msgspec.Struct):
    """`rows_done` counts the rows that were read, of which `rows_failed` were wrong and skipped;
    `errors` has the first 100 of these, and the list of errors up to 10,000. `error` says why a
    whole import failed.
    """

    example: ClassVar[dict[str, Any]] = _IMPORT

    id: str
    table_id: str
    status: ImportStatus
    filename: str
    mode: ImportMode
    rows_total: int | None
    rows_done: int
    rows_failed: int
    errors: list[ImportProblem]
    error: str | None
    created_at: datetime
    finished_at: datetime | None


class CreatedRows(msgspec.Struct):
    """A row for `values`, a list for `rows`."""

    example: ClassVar[dict[str, Any]] = {"data": _ROW}

    data: RowView | list[RowView]
