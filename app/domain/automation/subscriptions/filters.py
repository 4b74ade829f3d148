"""Filters of subscriptions: conditions on dotted paths in an event's data."""

from typing import Any, Final

import msgspec

from app.kit.errors import Invalid
from app.kit.texts import is_deeper

MAX_FILTERS: Final = 20
OPERATORS: Final = ("in", "gt", "lt", "exists")
_MAX_PATH_CHARS = 200
_MAX_BYTES = 8 * 1024
_MAX_DEPTH = 8
_MAX_INDEX_CHARS = 9
_MISSING: Final = object()


def validate(filters: dict[str, Any]) -> None:
    """Raises Invalid with the problem of each condition."""
    if len(filters) > MAX_FILTERS:
        raise Invalid.field("filters", f"must be at most {MAX_FILTERS}")
    if len(msgspec.json.encode(filters)) > _MAX_BYTES:
        raise Invalid.field("filters", f"must be at most {_MAX_BYTES // 1024} KiB")
    Invalid.check(
        (f"filters.{path}", problem)
        for path, condition in filters.items()
        if (problem := _find_problem(path, condition)) is not None
    )


def _find_problem(path: str, condition: Any) -> str | None:
    if len(path) > _MAX_PATH_CHARS or not all(part.strip() for part in path.split(".")):
        return "must be a path in the event's data, like agent_id or values.email"
    if is_deeper(condition, _MAX_DEPTH):
        return "is nested too deeply"
    if not isinstance(condition, dict):
        return None
    if not condition or not condition.keys() <= set(OPERATORS):
        return f"must be a value, or an object with {', '.join(OPERATORS)}"
    if "in" in condition and not isinstance(condition["in"], list):
        return "in must be a list"
    if "exists" in condition and not isinstance(condition["exists"], bool):
        return "exists must be true or false"
    for operator in ("gt", "lt"):
        value = condition.get(operator, 0)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return f"{operator} must be a number or a string"
    return None


def match(filters: dict[str, Any] | None, data: Any) -> bool:
    """True when all conditions hold."""
    return all(
        _holds(condition, _value_at(data, path)) for path, condition in (filters or {}).items()
    )


def _value_at(data: Any, path: str) -> Any:
    """Returns the value at a path. The whole path may be one key with dots; numbers index lists."""
    if isinstance(data, dict) and path in data:
        return data[path]
    value = data
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _is_index(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= _MAX_INDEX_CHARS


def _holds(condition: Any, value: Any) -> bool:
    if not isinstance(condition, dict):
        return _is_same(condition, value)
    return all(_compare(operator, operand, value) for operator, operand in condition.items())


def _compare(operator: str, operand: Any, value: Any) -> bool:
    match operator:
        case "exists":
            return bool((value is not _MISSING) == operand)
        case "in":
            return any(_is_same(item, value) for item in operand)
        case "gt":
            return bool(_are_comparable(value, operand) and value > operand)
    return bool(_are_comparable(value, operand) and value < operand)


def _is_same(left: Any, right: Any) -> bool:
    """Compares as JSON: true is not 1, and 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_same(left[key], right[key]) for key in left)
    return bool(left == right)


def _are_comparable(left: Any, right: Any) -> bool:
    """True for two numbers, or two texts, which covers dates."""
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return numbers or (isinstance(left, str) and isinstance(right, str))
