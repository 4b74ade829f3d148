from typing import Annotated, Any

from app.domain.area import Event, example


class _TableEvent(Event):
    table_id: Annotated[str, example("tbl_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Leads")]


class DataTableCreated(_TableEvent):
    """A data table was created."""

    type = "data_table.created"

    columns: Annotated[list[str], example(["email", "score"])]


class DataTableUpdated(_TableEvent):
    """A data table's name, description or columns were changed."""

    type = "data_table.updated"

    changed: Annotated[list[str], example(["columns"])]


class DataTableDeleted(_TableEvent):
    """A data table was deleted with its rows."""

    type = "data_table.deleted"


class _RowEvent(Event):
    table_id: Annotated[str, example("tbl_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    row_id: Annotated[str, example("row_01k9x3m7e8c0v2q4r6t8w0y2a5")]
    values: Annotated[dict[str, Any], example({"email": "ann@example.com", "score": 7})]


class RowCreated(_RowEvent):
    """A row was added to a data table; not for imported rows."""

    type = "data_table.row.created"


class RowUpdated(_RowEvent):
    """A row of a data table was changed."""

    type = "data_table.row.updated"


class RowDeleted(_RowEvent):
    """A row of a data table was deleted."""

    type = "data_table.row.deleted"


class DataTableImported(Event):
    """The import of a CSV file into a data table is complete."""

    type = "data_table.imported"

    table_id: Annotated[str, example("tbl_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    import_id: Annotated[str, example("imp_01k9x3m7e8c0v2q4r6t8w0y2a6")]
    rows_done: Annotated[int, example(1000)]
    rows_failed: Annotated[int, example(3)]
