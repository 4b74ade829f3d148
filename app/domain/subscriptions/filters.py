"""Which events a subscription means: conditions on dotted paths in an event's data."""

from typing import Any, Final

import msgspec

from app.http.errors import Invalid
from app.kit.texts import is_deeper

MOST: Final = 20
OPERATORS: Final = ("in", "gt", "lt", "exists")
_PATH_CHARS = 200
_MOST_BYTES = 8 * 1024
_DEEPEST = 8
_INDEX_CHARS = 9
_MISSING: Final = object()


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """As given, or told what is wrong with each."""
    if len(given) > MOST:
        raise Invalid.field("filters", f"must be at most {MOST}")
    if len(msgspec.json.encode(given)) > _MOST_BYTES:
        raise Invalid.field("filters", f"must be at most {_MOST_BYTES // 1024} KiB")
    problems = {
        f"filters.{path[:_PATH_CHARS]}": problem
        for path, wanted in given.items()
        if (problem := _problem(path, wanted)) is not None
    }
    if problems:
        raise Invalid.fields(problems)
    return given


def _problem(path: str, wanted: Any) -> str | None:
    if len(path) > _PATH_CHARS or not all(part.strip() for part in path.split(".")):
        return "must be a path in the event's data, like agent_id or values.email"
    if is_deeper(wanted, _DEEPEST):
        return "is nested too deeply"
    if not isinstance(wanted, dict):
        return None
    if not wanted or not wanted.keys() <= set(OPERATORS):
        return f"must be a value, or an object with {', '.join(OPERATORS)}"
    if "in" in wanted and not isinstance(wanted["in"], list):
        return "in must be a list"
    if "exists" in wanted and not isinstance(wanted["exists"], bool):
        return "exists must be true or false"
    for operator in ("gt", "lt"):
        value = wanted.get(operator, 0)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return f"{operator} must be a number or a text"
    return None


def match(filters: dict[str, Any] | None, data: Any) -> bool:
    """All of them hold."""
    return all(_holds(wanted, _at(data, path)) for path, wanted in (filters or {}).items())


def _at(data: Any, path: str) -> Any:
    """A whole path may also be one key that has dots in it; numbers count in lists."""
    if isinstance(data, dict) and path in data:
        return data[path]
    found = data
    for part in path.split("."):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and _is_index(part) and int(part) < len(found):
            found = found[int(part)]
        else:
            return _MISSING
    return found


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) <= _INDEX_CHARS


def _holds(wanted: Any, found: Any) -> bool:
    if not isinstance(wanted, dict):
        return _same(wanted, found)
    for operator, value in wanted.items():
        match operator:
            case "exists":
                held = (found is not _MISSING) == value
            case "in":
                held = any(_same(one, found) for one in value)
            case "gt":
                held = _comparable(found, value) and found > value
            case _:
                held = _comparable(found, value) and found < value
        if not held:
            return False
    return True


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def _comparable(one: Any, other: Any) -> bool:
    """Two numbers, or two texts, which covers dates."""
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return numbers or (isinstance(one, str) and isinstance(other, str))
