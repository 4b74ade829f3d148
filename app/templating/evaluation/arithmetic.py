"""The operators of templates. Each checks the size of its result before it computes it. Comparisons
never fail: only two numbers and two texts have an order.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from app.templating.evaluation.problems import LimitProblem, Problem
from app.templating.evaluation.values import (
    check_items,
    check_text,
    is_number,
    type_name,
)

# Larger integers have no JSON that every program reads.
_MAX_BITS = 64
_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


def binary(symbol: str, left: Any, right: Any) -> Any:
    if is_number(left) and is_number(right):
        return _compute(symbol, left, right)
    if symbol == "+" and isinstance(left, str) and isinstance(right, str):
        check_text(len(left) + len(right))
        return left + right
    if symbol == "+" and isinstance(left, list) and isinstance(right, list):
        check_items(len(left) + len(right))
        return left + right
    if symbol == "*" and type(right) is int and isinstance(left, str | list):
        return _repeat(left, right)
    if symbol == "*" and type(left) is int and isinstance(right, str | list):
        return _repeat(right, left)
    raise Problem(f"`{symbol}` cannot join {type_name(left)} and {type_name(right)}")


def _repeat(value: str | list[Any], count: int) -> str | list[Any]:
    (check_text if isinstance(value, str) else check_items)(len(value) * max(0, count))
    return value * count


def _compute(symbol: str, left: float, right: float) -> Any:
    if symbol == "**":
        _check_power(left, right)
    try:
        result = _NUMBERS[symbol](left, right)
    except ZeroDivisionError:
        raise Problem("a division by zero") from None
    except OverflowError:
        raise LimitProblem("a number is too large") from None
    if isinstance(result, complex):
        raise Problem("the root of a negative number is no number")
    return _limited(result)


def _check_power(base: float, exponent: float) -> None:
    if isinstance(base, int) and isinstance(exponent, int):
        bits = max(0, base.bit_length() - 1) * max(0, exponent)
        if bits > _MAX_BITS:
            raise LimitProblem(f"a number has more than {_MAX_BITS} bits")


def _limited(result: Any) -> Any:
    if isinstance(result, int) and result.bit_length() > _MAX_BITS:
        raise LimitProblem(f"a number has more than {_MAX_BITS} bits")
    return result


def unary(symbol: str, value: Any) -> Any:
    if not is_number(value):
        raise Problem(f"`{symbol}` needs a number, not {type_name(value)}")
    return -value if symbol == "-" else value


def _is_equal(left: Any, right: Any) -> bool:
    try:
        return bool(left == right)
    except RecursionError:
        return False


def _contains(container: Any, item: Any) -> bool:
    match container:
        case str():
            return isinstance(item, str) and item in container
        case list() | dict():
            return not isinstance(item, dict | list) and item in container
    return False


def _are_ordered(symbol: str, left: Any, right: Any) -> bool:
    have_order = is_number(left) and is_number(right)
    have_order = have_order or (isinstance(left, str) and isinstance(right, str))
    return have_order and bool(_ORDERS[symbol](left, right))


_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _is_equal,
    "ne": lambda left, right: not _is_equal(left, right),
    "in": lambda left, right: _contains(right, left),
    "notin": lambda left, right: not _contains(right, left),
    **{name: partial(_are_ordered, name) for name in _ORDERS},
}


def compare(first: Any, *operands: Any) -> bool:
    """Compares a chain, as `1 < a < 5`: operands are the names of operators and their values."""
    left = first
    for name, right in zip(operands[::2], operands[1::2], strict=True):
        if not _COMPARISONS[name](left, right):
            return False
        left = right
    return True
