"""The filters and tests of templates: those of Jinja, over plain JSON. Filters of our own replace
those of Jinja that take attributes, know undefined values or have no limit.
"""

import html
import inspect
import math
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import msgspec
from jinja2 import filters as jinja_filters
from jinja2 import tests as jinja_tests

from app.templating.evaluation.arithmetic import compare
from app.templating.evaluation.problems import LimitProblem, Problem
from app.templating.evaluation.values import (
    as_json_value,
    check_text,
    look_up,
    to_json,
    to_text,
    type_name,
)

_MAX_RANGE = 100_000
_MAX_WIDTH = 10_000
_MAX_INDENT = 16
_WORD = re.compile(r"[^-\s(\[{<]+")
_JINJA_FILTERS = (
    *("abs", "batch", "dictsort", "filesizeformat", "float", "groupby", "int"),
    *("list", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr"),
    *("slice", "sort", "sum", "unique", "urlencode", "wordcount", "wordwrap"),
)
_JINJA_TESTS = (
    *("boolean", "false", "float", "integer", "lower", "mapping", "none", "number"),
    *("string", "true", "upper"),
)
# Filters that the compiler of templates uses; no template can name them.
ITERATE, SLICE, CONCAT, COMPARE = "-iterate", "-slice", "-concat", "-compare"


def bounded_range(*bounds: Any) -> list[int]:
    if not all(type(bound) is int for bound in bounds):
        raise Problem("`range` needs integers")
    numbers = range(*bounds)
    # `len` refuses what does not fit into 64 bits.
    if max(map(abs, bounds)) >= 2**62 or len(numbers) > _MAX_RANGE:
        raise LimitProblem(f"`range` has more than {_MAX_RANGE} items")
    return list(numbers)


def _own(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a filter of our own: raises Problem for arguments that it does not have."""
    signature = inspect.signature(function)

    def apply(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except TypeError:
            try:
                signature.bind(*arguments, **named)
            except TypeError:
                raise Problem(f"the filter '{name}' has no such argument") from None
            raise

    return apply


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a filter of Jinja: it returns a list instead of an iterator."""

    @wraps(function)  # keeps Jinja's mark of functions that take the context
    def apply(*arguments: Any, **named: Any) -> Any:
        return as_json_value(function(*arguments, **named))

    return apply


def _iterate(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str | dict | list):
        return list(value)
    raise Problem(f"a loop cannot use {type_name(value)}")


def _slice(value: Any, start: Any, stop: Any, step: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str | list):
        raise Problem(f"a slice of {type_name(value)}")
    if not all(bound is None or type(bound) is int for bound in (start, stop, step)) or step == 0:
        raise Problem("a slice needs integers, and a step other than 0")
    return value[start:stop:step]


def _concat(*parts: Any) -> str:
    texts = [to_text(part) for part in parts]
    check_text(sum(map(len, texts)))
    return "".join(texts)


def _map_text(change: Callable[[str], str]) -> Callable[[Any], str]:
    return lambda value: change(to_text(value))


def _capitalize_words(text: str) -> str:
    return _WORD.sub(lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def _default(value: Any, default_value: Any = "", boolean: Any = False) -> Any:  # noqa: FBT002  # the parameters of Jinja's filter
    is_missing = value is None or (boolean and not value)
    return default_value if is_missing else value


def _first(value: Any) -> Any:
    return value[0] if value and isinstance(value, str | list) else None


def _last(value: Any) -> Any:
    return value[-1] if value and isinstance(value, str | list) else None


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | dict | list) else 0


def _truncate(value: Any, length: int = 255, killwords: Any = False, end: str = "...") -> str:  # noqa: FBT002  # the same
    text = to_text(value)
    if len(text) <= length:
        return text
    text = text[: length - len(end)]
    return (text if killwords else text.rsplit(" ", 1)[0]) + end


def _items(value: Any) -> list[list[Any]]:
    if value is not None and not isinstance(value, dict):
        raise Problem(f"the filter 'items' needs an object, not {type_name(value)}")
    return [list(pair) for pair in (value or {}).items()]


def _replace(value: Any, old: Any, new: Any, count: int = -1) -> str:
    text, old, new = to_text(value), to_text(old), to_text(new)
    matches = text.count(old) if count is None or count < 0 else min(text.count(old), count)
    check_text(len(text) + matches * len(new))
    return text.replace(old, new, -1 if count is None else count)


def _center(value: Any, width: int = 80) -> str:
    return to_text(value).center(_width(width))


def _indent(value: Any, width: int = 4, first: Any = False, blank: Any = False) -> str:  # noqa: FBT002  # the parameters of Jinja's filter
    text, prefix = to_text(value), " " * _width(width)
    check_text(len(text) + (text.count("\n") + 1) * len(prefix))
    lines = text.split("\n")
    rest = [prefix + line if line or blank else line for line in lines[1:]]
    return "\n".join([prefix + lines[0] if first else lines[0], *rest])


def _width(width: Any) -> int:
    if type(width) is not int or width > _MAX_WIDTH:
        raise LimitProblem(f"a width must be an integer of at most {_MAX_WIDTH}")
    return width


def _join(value: Any, d: Any = "", attribute: Any = None) -> Any:
    if not isinstance(value, list):
        return value
    items = value
    if attribute is not None:
        keys = str(attribute).split(".")
        items = [_look_up_all(item, keys) for item in value]
    texts, separator = [to_text(item) for item in items], to_text(d)
    check_text(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _look_up_all(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = look_up(value, int(key) if key.isdecimal() else key)
    return value


def _round(value: Any, precision: int = 0, method: str = "common") -> Any:
    if type(precision) is not int or abs(precision) > _MAX_INDENT:
        raise Problem(f"a precision must be an integer of at most {_MAX_INDENT}")
    if method not in {"common", "ceil", "floor"}:
        raise Problem("a method must be 'common', 'ceil' or 'floor'")
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    if method == "common":
        return round(value, precision) if precision else round(value)
    result = getattr(math, method)(value * 10**precision) / 10**precision
    return result if precision > 0 else int(result)


def _to_json(value: Any, indent: int | None = None) -> str:
    text = to_json(value)
    if indent is None:
        return text
    if type(indent) is not int or not 0 <= indent <= _MAX_INDENT:
        raise Problem(f"an indent must be an integer from 0 to {_MAX_INDENT}")
    return msgspec.json.format(text, indent=indent or -1)


def _remainder_is(value: Any, divisor: Any, remainder: int) -> bool:
    if type(value) is not int or type(divisor) is not int or divisor == 0:
        return False
    return value % divisor == remainder


def _comparison(name: str) -> Callable[[Any, Any], bool]:
    return lambda left, right: compare(left, name, right)


_OWN_FILTERS: dict[str, Callable[..., Any]] = {
    "capitalize": _map_text(str.capitalize),
    "center": _center,
    "count": _length,
    "d": _default,
    "default": _default,
    "e": _map_text(html.escape),
    "escape": _map_text(html.escape),
    "first": _first,
    "indent": _indent,
    "items": _items,
    "join": _join,
    "last": _last,
    "length": _length,
    "lower": _map_text(str.lower),
    "replace": _replace,
    "round": _round,
    "string": to_text,
    "title": _map_text(_capitalize_words),
    "tojson": _to_json,
    "trim": _map_text(str.strip),
    "truncate": _truncate,
    "upper": _map_text(str.upper),
}
FILTERS: dict[str, Callable[..., Any]] = {
    **{name: _plain(jinja_filters.FILTERS[name]) for name in _JINJA_FILTERS},
    **{name: _own(name, function) for name, function in _OWN_FILTERS.items()},
    ITERATE: _iterate,
    SLICE: _slice,
    CONCAT: _concat,
    COMPARE: compare,
}
_COMPARISONS = {
    "eq": ("==", "equalto"),
    "ne": ("!=",),
    "lt": ("<", "lessthan"),
    "lteq": ("<=", "le"),
    "gt": (">", "greaterthan"),
    "gteq": (">=", "ge"),
    "in": (),
}
TESTS: dict[str, Any] = {
    **{name: jinja_tests.TESTS[name] for name in _JINJA_TESTS},
    **{
        alias: _comparison(name)
        for name, aliases in _COMPARISONS.items()
        for alias in (name, *aliases)
    },
    "defined": lambda value: value is not None,
    "undefined": lambda value: value is None,
    "iterable": lambda value: isinstance(value, str | dict | list),
    "sequence": lambda value: isinstance(value, str | dict | list),
    "divisibleby": lambda value, num: _remainder_is(value, num, 0),
    "even": lambda value: _remainder_is(value, 2, 0),
    "odd": lambda value: _remainder_is(value, 2, 1),
}
