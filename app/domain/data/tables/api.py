"""What other areas may call."""

from app.domain.data.tables.columns import Column, Table
from app.domain.data.tables.filters import ROW_FIELDS
from app.domain.data.tables.queries import list_column_names
from app.domain.data.tables.service import (
    delete_row,
    delete_rows,
    find_row,
    find_texts,
    insert_row,
    list_texts,
    load_table,
    query_rows,
    update_row,
    update_rows,
)
