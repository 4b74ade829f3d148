"""Columns of a table: their stored form, their types and their slots.

A slot is a column of `data_rows` with an index. Statements name columns only by their keys and
slots, which are ours; the names of users are never part of SQL.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

ColumnType = Literal[
    "text", "number", "integer", "boolean", "date", "datetime", "select", "json", "file"
]
TEXT_SLOTS: Final = ("t1", "t2", "t3", "t4", "t5", "t6")
NUMBER_SLOTS: Final = ("n1", "n2", "n3", "n4", "n5", "n6")
UNIQUE_SLOTS: Final = ("u1", "u2", "u3", "u4")
SLOTS: Final = (*TEXT_SLOTS, *NUMBER_SLOTS, *UNIQUE_SLOTS)
# The characters of a text that its slot has.
SLOT_CHARS: Final = 200
# In a slot, stands for a missing value. It sorts after every value, and no value contains it.
NO_TEXT: Final = "\U0010ffff"
_TEXT_TYPES = frozenset({"text", "select"})
_NUMBER_TYPES = frozenset({"number", "integer"})
# Their values are numbers in a slot.
_NUMERIC_TYPES = _NUMBER_TYPES | {"boolean", "date", "datetime"}


class Column(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`key` names the values in rows. `slot` serves filters and sorting, `unique_slot` uniqueness;
    None without such an index.
    """

    key: str
    name: str
    type: ColumnType
    required: bool = False
    unique: bool = False
    default: Any = None
    options: list[str] = []
    slot: str | None = None
    unique_slot: str | None = None

    @property
    def is_text(self) -> bool:
        """True when values are compared as texts."""
        return self.type not in _NUMERIC_TYPES

    @property
    def holds_text(self) -> bool:
        return self.type in _TEXT_TYPES

    @property
    def holds_number(self) -> bool:
        return self.type in _NUMBER_TYPES


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table as its rows are read and written."""

    id: str
    tenant_id: str
    name: str
    columns: list[Column]
    revision: int = 1

    def find_column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def decode(columns: list[dict[str, Any]]) -> list[Column]:
    return msgspec.convert(columns, list[Column])


def slots_for(type_: str) -> tuple[str, ...]:
    """Returns the slots that can index a column of this type."""
    if type_ in _TEXT_TYPES:
        return TEXT_SLOTS
    return NUMBER_SLOTS if type_ in _NUMERIC_TYPES else ()


def find_free_slot(type_: str, used: Iterable[str | None]) -> str | None:
    """Returns a free slot for a column, or None when there is none."""
    return next((slot for slot in slots_for(type_) if slot not in set(used)), None)


def find_free_unique_slot(used: Iterable[str | None]) -> str | None:
    return next((slot for slot in UNIQUE_SLOTS if slot not in set(used)), None)
