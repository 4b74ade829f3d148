"""The operations of templates on plain JSON. Each charges its cost before or right after it runs:
the budget of a rendering bounds time and memory, whatever the data are. A missing value is None.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

# A unit is at most about 20 nanoseconds: all operations of one rendering take tens of milliseconds.
MAX_COST = 2_000_000
_ITEM_COST = 60
_WORD_COST = 16
_FAILURE_COST = 500_000
_MAX_PRECISION = 15
_MAX_TRUNCATION = 10_000
_MAX_SEPARATOR = 10
# CPython searches in quadratic time up to these sizes, in linear time beyond them.
_SHORT_TEXT = 2_500
_MEDIUM_TEXT = 30_000
_SHORT_NEEDLE = 100
_WORD = re.compile(r"[^-\s(\[{<]+")


class CostExceeded(Exception):
    """The operations of a rendering cost more than its budget."""


class Run:
    """One rendering, or several with one budget: their data and what is left of the budget."""

    __slots__ = ("_budget", "values")

    def __init__(self, values: Mapping[str, Any], budget: int = MAX_COST) -> None:
        self.values = values
        self._budget = budget

    @property
    def is_exceeded(self) -> bool:
        return self._budget < 0

    def charge(self, units: int) -> None:
        self._budget -= units
        if self._budget < 0:
            raise CostExceeded


def look_up(value: Any, key: str | int) -> Any:
    """Returns a member of an object or an item of a list, never an attribute."""
    if isinstance(value, dict):
        return value.get(key)
    is_item = isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value)
    return value[key] if is_item else None


def encode(value: Any) -> tuple[str, int]:
    """Returns compact JSON and its cost; `null` for what cannot be encoded, such as data of extreme
    depth, whose size is unknown.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "null", _FAILURE_COST


def _encode(value: Any) -> tuple[str, int]:
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text, 2 * len(text)
    return text, len(text)


def to_json(run: Run, value: Any) -> str:
    text, cost = encode(value)
    run.charge(cost)
    return text


def to_text(run: Run, value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            try:
                return str(value)
            except ValueError:  # more digits than Python converts
                return ""
        case float():
            return repr(value) if math.isfinite(value) else ""
        case dict() | list():
            return to_json(run, value)
    return ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(run: Run, left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        run.charge(min(len(left), len(right)))
    elif isinstance(left, dict | list) and isinstance(right, dict | list):
        to_json(run, left)  # its length is the cost of a comparison
    try:
        return bool(left == right)
    except RecursionError:
        return False


def _contains(run: Run, container: Any, item: Any) -> bool:
    if isinstance(item, dict | list):
        return False
    size = len(item) if isinstance(item, str) else 1
    match container:
        case str():
            run.charge(_search_cost(len(container), size))
            return isinstance(item, str) and item in container
        case list():
            run.charge(2 * len(container) + size)
            return item in container
        case dict():
            run.charge(size)
            return item in container
    return False


def _search_cost(length: int, needle: int) -> int:
    is_quadratic = length < _SHORT_TEXT or (length < _MEDIUM_TEXT and needle < _SHORT_NEEDLE)
    return length + (length * needle // 10 if is_quadratic else needle)


def _ordered(run: Run, left: Any, right: Any, compare: Callable[[Any, Any], bool]) -> bool:
    """Compares numbers with numbers and texts with texts; nothing else has an order."""
    if isinstance(left, str) and isinstance(right, str):
        run.charge(min(len(left), len(right)))
        return compare(left, right)
    return _is_number(left) and _is_number(right) and compare(left, right)


COMPARISONS: dict[str, Callable[[Run, Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda run, left, right: not _equal(run, left, right),
    "lt": lambda run, left, right: _ordered(run, left, right, lambda a, b: a < b),
    "lteq": lambda run, left, right: _ordered(run, left, right, lambda a, b: a <= b),
    "gt": lambda run, left, right: _ordered(run, left, right, lambda a, b: a > b),
    "gteq": lambda run, left, right: _ordered(run, left, right, lambda a, b: a >= b),
    "in": lambda run, left, right: _contains(run, right, left),
    "notin": lambda run, left, right: not _contains(run, right, left),
}


def _map_text(change: Callable[[str], str], unit_cost: int = 1) -> Callable[[Run, Any], str]:
    def apply(run: Run, value: Any) -> str:
        text = to_text(run, value)
        run.charge(len(text) * unit_cost)
        return change(text)

    return apply


def _title(text: str) -> str:
    return _WORD.sub(lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def _default(_: Run, value: Any, substitute: Any, boolean: Any) -> Any:
    is_missing = value is None or (boolean and not value)
    return substitute if is_missing else value


def _length(_: Run, value: Any) -> int:
    return len(value) if isinstance(value, str | dict | list) else 0


def _round(_: Run, value: Any, precision: int) -> Any:
    """Returns an integer for precision 0: templates have no other way to one."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    return round(value, precision) if precision else round(value)


def _truncate(run: Run, value: Any, length: int, killwords: Any, end: str) -> str:
    text = to_text(run, value)
    if len(text) <= length:
        return text
    text = text[: length - len(end)]
    return (text if killwords else text.rsplit(" ", 1)[0]) + end


def _first(_: Run, value: Any) -> Any:
    return value[0] if value and isinstance(value, str | list) else None


def _last(_: Run, value: Any) -> Any:
    return value[-1] if value and isinstance(value, str | list) else None


def _join(run: Run, value: Any, separator: str) -> Any:
    if not isinstance(value, list):
        return value
    texts = []
    for item in value:
        text = to_text(run, item)
        run.charge(_ITEM_COST + len(text))
        texts.append(text)
    return separator.join(texts)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a filter. One with a rule is a constant that fulfils it."""

    name: str
    default: Any
    rule: str | None = None
    is_valid: Callable[[Any], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Filter:
    apply: Callable[..., Any]
    parameters: tuple[Parameter, ...] = ()


def _integer(name: str, default: int, lowest: int, highest: int) -> Parameter:
    return Parameter(
        name,
        default,
        f"an integer from {lowest} to {highest}",
        lambda value: type(value) is int and lowest <= value <= highest,
    )


def _boolean(name: str) -> Parameter:
    rule = "true or false"
    return Parameter(name, default=False, rule=rule, is_valid=lambda value: type(value) is bool)


def _separator(name: str, default: str) -> Parameter:
    return Parameter(
        name,
        default,
        f"a text of at most {_MAX_SEPARATOR} characters",
        lambda value: isinstance(value, str) and len(value) <= _MAX_SEPARATOR,
    )


# Parameters have the names that they have in Jinja.
FILTERS = {
    "capitalize": Filter(_map_text(str.capitalize)),
    "default": Filter(_default, (Parameter("default_value", ""), _boolean("boolean"))),
    "first": Filter(_first),
    "join": Filter(_join, (_separator("d", ""),)),
    "last": Filter(_last),
    "length": Filter(_length),
    "lower": Filter(_map_text(str.lower)),
    "round": Filter(_round, (_integer("precision", 0, 0, _MAX_PRECISION),)),
    "title": Filter(_map_text(_title, _WORD_COST)),
    "tojson": Filter(to_json),
    "trim": Filter(_map_text(str.strip)),
    "truncate": Filter(
        _truncate,
        (
            _integer("length", 255, _MAX_SEPARATOR, _MAX_TRUNCATION),
            _boolean("killwords"),
            _separator("end", "..."),
        ),
    ),
    "upper": Filter(_map_text(str.upper)),
}
