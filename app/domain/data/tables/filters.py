"""Filters and sort orders of rows, from query parameters and from other areas."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal, cast, get_args

import msgspec

from app.kit.errors import Invalid
from app.kit.value_checks import WrongValue

from . import values
from .columns import Column, Table

Op = Literal["eq", "ne", "gt", "gte", "lt", "lte", "contains", "in", "is_null"]
OPS: Final[tuple[Op, ...]] = get_args(Op)
# Fields that every row has besides its columns.
ROW_FIELDS: Final = frozenset({"id", "created_at", "updated_at"})
MAX_FILTERS: Final = 20
_MAX_LISTED = 100
_MAX_CHARS = 1000
_PREFIX, _SUFFIX = "filter[", "]"
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EQUALITY = frozenset({"eq", "ne", "in", "is_null"})
_ORDER = frozenset({"gt", "gte", "lt", "lte"})
_OPS_OF_TYPES: Final[dict[str, frozenset[str]]] = {
    "text": _EQUALITY | _ORDER | {"contains"},
    "select": _EQUALITY | _ORDER | {"contains"},
    "number": _EQUALITY | _ORDER,
    "integer": _EQUALITY | _ORDER,
    "date": _EQUALITY | _ORDER,
    "datetime": _EQUALITY | _ORDER,
    "boolean": _EQUALITY,
    "file": _EQUALITY,
    "json": frozenset({"is_null"}),
}

# From a column to an operator and a value, or to a plain value for equality.
Filters = Mapping[str, Any]


class Condition(msgspec.Struct, frozen=True):
    """`operand` is a text or a number, as slots have them; a list of them for `in`, and a boolean
    for `is_null`.
    """

    column: Column
    op: Op
    operand: Any


class Sort(msgspec.Struct, frozen=True):
    """By a column, or by `id` or `updated_at`. The order of ids is that of creation."""

    key: Column | Literal["id", "updated_at"] = "id"
    descending: bool = True


def parse_sort(table: Table, sort: str | None, default: str = "-created_at") -> Sort:
    text = sort or default
    descending, name = text.startswith("-"), text.removeprefix("-")
    if name in {"created_at", "id"}:
        return Sort("id", descending)
    if name == "updated_at":
        return Sort("updated_at", descending)
    column = table.find_column(name)
    if column is None or column.type == "json":
        raise Invalid.field(
            "sort", "must be created_at, updated_at or a column that is not json, with or without -"
        )
    return Sort(column, descending)


# Query parameters


def parse_query(table: Table, parameters: Sequence[tuple[str, str]]) -> list[Condition]:
    """Reads parameters like `filter[price][gte]=10`; others are ignored. Raises Invalid."""
    texts: dict[str, list[str]] = {}
    for name, value in parameters:
        if name.startswith(_PREFIX):
            texts.setdefault(name, []).append(value)
    if len(texts) > MAX_FILTERS:
        raise Invalid.field("filter", f"there may be at most {MAX_FILTERS} filters")
    if sum(map(len, texts.values())) > _MAX_LISTED:
        raise Invalid.field("filter", f"there may be at most {_MAX_LISTED} values in all filters")
    return [_parse_parameter(table, name, items) for name, items in texts.items()]


def _parse_parameter(table: Table, name: str, texts: list[str]) -> Condition:
    path = name[:200]
    if not name.endswith(_SUFFIX) or len(name) > len(path):
        raise Invalid.field(path, "must look like filter[column][operator]")
    column_name, _, op = name[len(_PREFIX) : -len(_SUFFIX)].partition("][")
    column, operator = _find(table, column_name, op or "eq", path)
    if operator == "in" and len(texts) == 1:
        texts = texts[0].split(",")
    elif operator != "in" and len(texts) > 1:
        raise Invalid.field(path, "may be set once")
    if operator == "is_null":
        return Condition(column, operator, _parse_flag(texts[0], path))
    return _build(column, operator, texts, path, _parse_operand)


def _parse_flag(text: str, path: str) -> bool:
    if text not in {"true", "false"}:
        raise Invalid.field(path, "must be true or false")
    return text == "true"


def _parse_operand(column: Column, text: Any) -> Any:
    return values.parse_text(column, text)


# Filters of other areas


def parse_filters(table: Table, filters: Filters) -> list[Condition]:
    """Reads filters by column. Raises Invalid."""
    conditions = list(_iterate_filters(table, filters))
    if len(conditions) > MAX_FILTERS:
        raise Invalid.field("filter", f"there may be at most {MAX_FILTERS} filters")
    return conditions


def _iterate_filters(table: Table, filters: Filters) -> Iterator[Condition]:
    for name, value in filters.items():
        operations = value if isinstance(value, Mapping) else {"eq": value}
        for op, operand in operations.items():
            path = f"filter.{name}.{op}"[:200]
            column, operator = _find(table, name, op, path)
            if operator == "is_null" or (operand is None and operator in {"eq", "ne"}):
                is_null = operand if operator == "is_null" else operator == "eq"
                if not isinstance(is_null, bool):
                    raise Invalid.field(path, "must be true or false")
                yield Condition(column, "is_null", is_null)
                continue
            operands = operand if operator == "in" else [operand]
            if not isinstance(operands, list | tuple):
                raise Invalid.field(path, "must be a list")
            yield _build(column, operator, operands, path, values.check_value)


# Both


def _find(table: Table, name: str, op: str, path: str) -> tuple[Column, Op]:
    column = table.find_column(name)
    if column is None:
        raise Invalid.field(path, "there is no column with this name")
    allowed = _OPS_OF_TYPES[column.type]
    if op not in allowed:
        known = ", ".join(item for item in OPS if item in allowed)
        message = f"a column of the type {column.type} takes only these operators: {known}"
        raise Invalid.field(path, message)
    return column, cast("Op", op)


def _build(
    column: Column,
    op: Op,
    operands: Sequence[Any],
    path: str,
    read: Callable[[Column, Any], Any],
) -> Condition:
    if not 0 < len(operands) <= _MAX_LISTED:
        raise Invalid.field(path, f"must have 1 to {_MAX_LISTED} values")
    # Compared as texts: an option that was removed matches nothing.
    comparable = msgspec.structs.replace(column, type="text") if column.type == "select" else column
    try:
        numbers = [_to_slot(comparable, read(comparable, operand)) for operand in operands]
    except WrongValue as error:
        raise Invalid.field(path, str(error)) from None
    if op == "in":
        return Condition(column, op, list(dict.fromkeys(numbers)))
    return Condition(column, op, numbers[0])


def _to_slot(column: Column, stored: Any) -> str | float:
    """Returns a value as slots have it. Raises WrongValue."""
    if stored is None:
        raise WrongValue("must not be empty; use is_null")
    if isinstance(stored, str) and len(stored) > _MAX_CHARS:
        raise WrongValue(f"must have at most {_MAX_CHARS} characters")
    match column.type:
        case "date":
            return float((date.fromisoformat(stored) - _EPOCH_DAY).days)
        case "datetime":
            return float((values.parse_time(stored) - _EPOCH) // _MILLISECOND)
        case "number" | "integer" | "boolean":
            return float(stored)
    return str(stored)
