"""What other areas may call."""

from .columns import Column, Table
from .filters import ROW_FIELDS
from .queries import list_column_names
from .service import (
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
