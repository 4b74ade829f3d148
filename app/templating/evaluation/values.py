"""Values of templates: plain JSON, and what renders as which text."""

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from app.kit.texts import storable
from app.templating.evaluation.problems import LimitProblem, Problem

# A longer text fits into no result, whatever filter shortens it.
MAX_TEXT = 4 * 1024 * 1024
MAX_ITEMS = 1_000_000
_NAMES = {type(None): "null", bool: "a boolean", str: "a text", dict: "an object", list: "a list"}


def type_name(value: Any) -> str:
    return "a number" if is_number(value) else _NAMES.get(type(value), "a function")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def look_up(value: Any, key: str | int) -> Any:
    """Returns a member of an object or an item of a list, never an attribute."""
    if isinstance(value, dict):
        return value.get(key)
    is_item = isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value)
    return value[key] if is_item else None


def check_text(length: int) -> None:
    if length > MAX_TEXT:
        raise LimitProblem("a text is longer than 4 MiB")


def check_items(count: int) -> None:
    if count > MAX_ITEMS:
        raise LimitProblem(f"a list has more than {MAX_ITEMS} items")


def as_json_value(value: Any) -> Any:
    """Returns lists for the iterators and tuples of Jinja's filters, and the tuples in them."""
    if isinstance(value, tuple | range | Iterator):
        return [list(item) if isinstance(item, tuple) else item for item in value]
    return value


def to_text(value: Any) -> str:
    """Returns "" for null, and for what has no text."""
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
            return to_json(value)
    return ""


def to_json(value: Any) -> str:
    """Returns compact JSON; `null` for what cannot be encoded."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_null)
    except (TypeError, ValueError, OverflowError):
        return "null"


def encode_result(value: Any) -> bytes:
    """Returns JSON that Postgres can store. Raises Problem for what is no JSON."""
    try:
        raw = _encode(value)
    except UnicodeEncodeError:
        return _encode(_storable(value))
    except OverflowError:
        raise Problem("a number has more than 64 bits") from None
    except (TypeError, ValueError):
        raise Problem("the value cannot be written as JSON") from None
    return _encode(_storable(value)) if b"\\u0000" in raw else raw


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=_null)


def _null(_: Any) -> None:
    """A function or the object `loop` has no JSON."""


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
    return value
