from typing import Any, ClassVar

from app.domain.events.event import Event


class TableCreated(Event):
    type: ClassVar[str] = "data_table.created"
    description: ClassVar[str] = "A data table was created"

    table_id: str
    name: str


class TableUpdated(Event):
    type: ClassVar[str] = "data_table.updated"
    description: ClassVar[str] = "A data table was changed"

    table_id: str
    name: str
    changed: list[str]


class TableDeleted(Event):
    type: ClassVar[str] = "data_table.deleted"
    description: ClassVar[str] = "A data table was deleted"

    table_id: str
    name: str


class RowCreated(Event):
    type: ClassVar[str] = "data_table.row.created"
    description: ClassVar[str] = "A row was added to a data table"

    table_id: str
    row_id: str
    values: dict[str, Any]


class RowUpdated(Event):
    type: ClassVar[str] = "data_table.row.updated"
    description: ClassVar[str] = "A row of a data table was changed"

    table_id: str
    row_id: str
    values: dict[str, Any]
    changed: list[str]


class RowDeleted(Event):
    type: ClassVar[str] = "data_table.row.deleted"
    description: ClassVar[str] = "A row of a data table was deleted"

    table_id: str
    row_id: str
