from typing import Any, ClassVar

from app.domain.area import Event

_TABLE_ID = "tbl_01k9x3m7e8c0v2q4r6t8w0y2a4"


class _TableEvent(Event):
    example: ClassVar[dict[str, Any]] = {"table_id": _TABLE_ID, "name": "Leads"}

    table_id: str
    name: str


class DataTableCreated(_TableEvent):
    type: ClassVar[str] = "data_table.created"
    description: ClassVar[str] = "A data table was created"
    example: ClassVar[dict[str, Any]] = {**_TableEvent.example, "columns": ["email", "score"]}

    columns: list[str]


class DataTableUpdated(_TableEvent):
    type: ClassVar[str] = "data_table.updated"
    description: ClassVar[str] = "A data table's name, description or columns were changed"
    example: ClassVar[dict[str, Any]] = {**_TableEvent.example, "changed": ["columns"]}

    changed: list[str]


class DataTableDeleted(_TableEvent):
    type: ClassVar[str] = "data_table.deleted"
    description: ClassVar[str] = "A data table was deleted with its rows"


class _RowEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "table_id": _TABLE_ID,
        "row_id": "row_01k9x3m7e8c0v2q4r6t8w0y2a5",
        "values": {"email": "ann@example.com", "score": 7},
    }

    table_id: str
    row_id: str
    values: dict[str, Any]


class RowCreated(_RowEvent):
    type: ClassVar[str] = "data_table.row.created"
    description: ClassVar[str] = "A row was added to a data table; not for imported rows"


class RowUpdated(_RowEvent):
    type: ClassVar[str] = "data_table.row.updated"
    description: ClassVar[str] = "A row of a data table was changed"


class RowDeleted(_RowEvent):
    type: ClassVar[str] = "data_table.row.deleted"
    description: ClassVar[str] = "A row of a data table was deleted"


class DataTableImported(Event):
    type: ClassVar[str] = "data_table.imported"
    description: ClassVar[str] = "The import of a CSV file into a data table is complete"
    example: ClassVar[dict[str, Any]] = {
        "table_id": _TABLE_ID,
        "import_id": "imp_01k9x3m7e8c0v2q4r6t8w0y2a6",
        "rows_done": 1000,
        "rows_failed": 3,
    }

    table_id: str
    import_id: str
    rows_done: int
    rows_failed: int
