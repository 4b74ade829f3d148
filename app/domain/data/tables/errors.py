from collections.abc import Sequence

from app.kit.errors import ApiError, Conflict, NotFound, Unavailable


class DataTableNotFound(NotFound, code="data_table_not_found"): ...


class RowNotFound(NotFound, code="row_not_found"): ...


class ImportNotFound(NotFound, code="import_not_found"): ...


class TableTooLarge(Conflict, code="table_too_large"):
    """The table has too many rows for this change."""


class TableFull(Conflict, code="table_full"):
    """The table has as many rows as it may have."""


class RowQuotaExceeded(Conflict, code="row_quota_exceeded"):
    """The tenant has as many rows as its plan allows."""


class RowsTooLarge(ApiError, status=422, code="rows_too_large"):
    """The rows of a query are too large to be read at once."""


class TableLocked(Unavailable, code="table_locked"):
    """The columns of the table are being changed."""


class NotUnique(Conflict):
    """Another row has the value of a unique column. `problems` has the positions of the rows among
    those that were to be written, the names of columns, and what is wrong; None instead of a name
    for the row as a whole.
    """

    def __init__(self, problems: Sequence[tuple[int, str | None, str]], *, is_bulk: bool) -> None:
        details = {
            (f"rows.{position}." if is_bulk else "")
            + ("values" if name is None else f"values.{name}"): message
            for position, name, message in problems[:100]
        }
        field, message = next(iter(details.items()))
        super().__init__(f"{field}: {message}", details=details)
        self.problems = problems


class ExportInterrupted(RuntimeError):
    """The rest of the rows cannot be sent: the table was changed or deleted meanwhile, or they take
    too long to find.
    """


class UnreadableFile(ValueError):
    """A CSV file that cannot be imported. The message continues: The file."""
