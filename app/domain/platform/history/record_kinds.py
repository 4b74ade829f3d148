"""What a row of the table of kinds consists of."""

from typing import Final

import msgspec

from db.base import Base

# Set when a row is hidden before it is deleted.
_DELETED_AT: Final = "deleted_at"


class TableHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows are records, or parts of records.

    `id` is the column with the record's id and `name` the one that names it. `part` is the path of
    a part, with columns in braces. `secrets` are shown as changed, without their values; `hidden`
    columns are not shown. `renamed` has the names that the API has for columns. Rows that have
    `unless` are no records.
    """

    model: type[Base]
    fields: tuple[str, ...]
    secrets: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    id: str = "id"
    name: str | None = "name"
    part: str = ""
    renamed: dict[str, str] = {}
    unless: str | None = None

    @property
    def tracked(self) -> tuple[str, ...]:
        has_deletion = hasattr(self.model, _DELETED_AT)
        return (*self.fields, *self.secrets, *([_DELETED_AT] if has_deletion else []))


class RecordKind(msgspec.Struct, frozen=True, kw_only=True):
    """`reads` is the permission for its history. Callers without `reads_all` see the `open_fields`
    alone. With `is_personal`, the history of a record is deleted with it.
    """

    name: str
    reads: str
    tables: tuple[TableHistory, ...] = ()
    reads_all: str | None = None
    open_fields: tuple[str, ...] = ()
    is_personal: bool = False


TIMES: Final = ("created_at", "updated_at")
