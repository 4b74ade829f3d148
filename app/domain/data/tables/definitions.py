"""Builds the columns of a table from what a request says, and gives them slots."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from app.kit.errors import Invalid, Problem
from app.kit.value_checks import WrongValue

from . import values
from .columns import Column, find_free_slot, find_free_unique_slot
from .filters import ROW_FIELDS
from .schemas import ChangedColumn, ColumnView, NewColumn

# All columns of a table as JSON, so that no row of defaults alone is too large.
MAX_BYTES: Final = values.MAX_ROW_BYTES
# Of all defaults: a request for 500 new rows has them 500 times.
MAX_ELEMENTS: Final = 500
_WRONG_NAME = "must not start with -, contain [ or ], or begin or end with a space"
_NO_INDEX = "there is no free index for this column; drop the index of another one"
_NO_UNIQUE = "there is no free unique index; a table has at most 4 unique columns"


class ColumnDraft(msgspec.Struct, frozen=True):
    """A column without slots, and whether it is to be indexed; None where the request leaves that
    open.
    """

    column: Column
    indexed: bool | None
    # The column as it was; None for a new one.
    before: Column | None = None


def build_views(columns: Iterable[Column]) -> list[ColumnView]:
    return [
        ColumnView(
            column.key,
            column.name,
            column.type,
            column.required,
            column.unique,
            column.default,
            column.options if column.type == "select" else None,
            column.slot is not None,
        )
        for column in columns
    ]


# New tables


def build_columns(new_columns: Sequence[NewColumn]) -> list[Column]:
    """Raises Invalid."""
    drafts = [
        ColumnDraft(
            Column(
                key=f"c{number}",
                name=item.name,
                type=item.type,
                required=item.required,
                unique=item.unique,
                default=item.default,
                options=item.options or [],
            ),
            item.indexed,
        )
        for number, item in enumerate(new_columns, 1)
    ]
    return assign_slots(check_drafts(drafts))


# Changes


def merge_columns(
    columns: Sequence[Column], changes: Sequence[ChangedColumn], next_key: int
) -> list[ColumnDraft]:
    """Returns the columns as they are to be; those that no change names are dropped."""
    drafts: list[ColumnDraft] = []
    problems: list[Problem] = []
    by_id = {change.id for change in changes if change.id is not UNSET}
    by_name = [column for column in columns if column.key not in by_id]
    for position, change in enumerate(changes):
        # A new column may have the name that another one gives up.
        before = _find_before(by_name if change.id is UNSET else columns, change)
        if before is None and change.id is not UNSET:
            problems.append((f"columns.{position}.id", "there is no column with this id"))
        elif before is None and (change.name is UNSET or change.type is UNSET):
            missing = "name" if change.name is UNSET else "type"
            problems.append((f"columns.{position}.{missing}", "is required for a new column"))
        elif any(before is not None and item.before is before for item in drafts):
            problems.append((f"columns.{position}", "names a column that an earlier item names"))
        else:
            drafts.append(_merge(before, change, f"c{next_key}"))
            next_key += before is None
    Invalid.check(problems)
    return check_drafts(drafts)


def _find_before(columns: Sequence[Column], change: ChangedColumn) -> Column | None:
    if change.id is not UNSET:
        return next((column for column in columns if column.key == change.id), None)
    return next((column for column in columns if column.name == change.name), None)


def _merge(before: Column | None, change: ChangedColumn, new_key: str) -> ColumnDraft:
    fields: dict[str, Any] = {
        name: value
        for name in ("name", "type", "required", "unique", "default", "options")
        if (value := getattr(change, name)) is not UNSET
    }
    if "options" in fields:
        fields["options"] = fields["options"] or []
    if fields.get("type", "select") != "select":
        fields.setdefault("options", [])
    indexed = None if change.indexed is UNSET else change.indexed
    if before is None:
        return ColumnDraft(Column(key=new_key, **fields), indexed)
    column = msgspec.structs.replace(before, **fields, slot=None, unique_slot=None)
    if indexed is None and column.type == before.type:
        # One without an index stays so, also when there is a free one.
        indexed = False if before.slot is None else None
    return ColumnDraft(column, indexed, before)


# Both


def check_drafts(drafts: Sequence[ColumnDraft]) -> list[ColumnDraft]:
    """Returns the columns with their defaults in stored form. Raises Invalid."""
    Invalid.check(_find_problems(drafts))
    complete = [msgspec.structs.replace(draft, column=_normalize(draft.column)) for draft in drafts]
    if len(msgspec.json.encode([draft.column for draft in complete])) > MAX_BYTES:
        raise Invalid.field("columns", f"must be at most {MAX_BYTES // 1024} KiB as JSON")
    if values.count_elements(*(draft.column.default for draft in complete)) > MAX_ELEMENTS:
        message = f"must have defaults with at most {MAX_ELEMENTS} elements of JSON together"
        raise Invalid.field("columns", message)
    return complete


def _find_problems(drafts: Sequence[ColumnDraft]) -> Iterator[Problem]:
    names = [draft.column.name.casefold() for draft in drafts]
    for position, draft in enumerate(drafts):
        column, path = draft.column, f"columns.{position}"
        name = column.name
        if name != name.strip() or any(letter in name for letter in "[]") or name[0] == "-":
            yield f"{path}.name", _WRONG_NAME
        elif name.casefold() in ROW_FIELDS:
            yield f"{path}.name", "is reserved: every row has id, created_at and updated_at"
        elif names.index(name.casefold()) != position:
            yield f"{path}.name", "is the name of another column"
        if (column.type == "select") != bool(column.options):
            yield f"{path}.options", "must be set for the type select, and for no other"
        elif len(set(column.options)) != len(column.options):
            yield f"{path}.options", "must be different from each other"
        if column.unique and column.type == "json":
            yield f"{path}.unique", "a column of the type json cannot be unique"
        if column.unique and column.default is not None:
            yield f"{path}.default", "a unique column cannot have a default"
        yield from _find_default_problems(column, path)


def _find_default_problems(column: Column, path: str) -> Iterator[Problem]:
    if column.default is None:
        return
    if column.type == "file":
        yield f"{path}.default", "a column of the type file cannot have a default"
        return
    try:
        values.check_value(column, column.default)
    except WrongValue as error:
        yield f"{path}.default", str(error)


def _normalize(column: Column) -> Column:
    if column.default is None:
        return column
    return msgspec.structs.replace(column, default=values.check_value(column, column.default))


def assign_slots(drafts: Sequence[ColumnDraft], *, may_index: bool = True) -> list[Column]:
    """Gives each column the slots that it had, or free ones. Without `may_index`, only columns that
    are to be indexed get another slot than before. Raises Invalid when none is left.
    """
    slots = {draft.column.key: _keep_slot(draft) for draft in drafts}
    unique_slots = {
        draft.column.key: draft.before.unique_slot if draft.before and draft.column.unique else None
        for draft in drafts
    }
    problems: list[Problem] = []
    # Those that were asked for come first.
    for position, draft in sorted(enumerate(drafts), key=lambda item: not item[1].indexed):
        key, path = draft.column.key, f"columns.{position}"
        is_wanted = draft.indexed or (draft.indexed is None and may_index)
        if slots[key] is None and is_wanted:
            slots[key] = find_free_slot(draft.column.type, slots.values())
            if slots[key] is None and draft.indexed:
                problems.append((f"{path}.indexed", _NO_INDEX))
        if draft.column.unique and unique_slots[key] is None:
            unique_slots[key] = find_free_unique_slot(unique_slots.values())
            if unique_slots[key] is None:
                problems.append((f"{path}.unique", _NO_UNIQUE))
    Invalid.check(problems)
    return [
        msgspec.structs.replace(
            draft.column, slot=slots[draft.column.key], unique_slot=unique_slots[draft.column.key]
        )
        for draft in drafts
    ]


def _keep_slot(draft: ColumnDraft) -> str | None:
    before = draft.before
    if before is None or draft.indexed is False or before.slot is None:
        return None
    # A slot for texts serves no numbers.
    return before.slot if before.is_text == draft.column.is_text and _has_index(draft) else None


def _has_index(draft: ColumnDraft) -> bool:
    return find_free_slot(draft.column.type, ()) is not None
