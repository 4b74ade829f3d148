"""Checks values against their columns, and converts them from and to the texts of CSV cells.

A stored value is JSON: dates and times are ISO 8601 texts, times in UTC and to the millisecond.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from app.kit import value_checks
from app.kit.errors import Problem
from app.kit.texts import has_nul, is_deeper
from app.kit.value_checks import MAX_INTEGER, WrongValue

from .columns import NO_TEXT, Column

MAX_ROW_BYTES: Final = 64 * 1024
MAX_JSON_DEPTH: Final = 16
# Of the json values of a row: an empty list takes two bytes as JSON, and 80 once it is decoded.
MAX_JSON_ELEMENTS: Final = 5000
# Postgres prints the numbers of json values with all their digits, so that others would make an
# answer many times as long as the value.
_MIN_JSON_NUMBER, _MAX_JSON_NUMBER = 1e-20, 1e20
_MIN_JSON_INTEGER, _MAX_JSON_INTEGER = -(2**63), 2**63 - 1
_MAX_FILE_ID_CHARS = 64
# Python takes quadratic time for long ones.
_MAX_DIGITS = 20
_TOO_MANY_ELEMENTS = (
    f"must have at most {MAX_JSON_ELEMENTS:,} elements: lists, objects, keys and values of JSON"
)
_TRUE, _FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


def check_value(column: Column, value: Any) -> Any:
    """Returns a value that is not None in its stored form. Raises WrongValue."""
    stored = _CHECKS[column.type](value)
    if column.type == "select" and stored not in column.options:
        raise WrongValue(f"must be one of {', '.join(column.options)}"[:300])
    return stored


def check_values(columns: list[Column], values: Mapping[str, Any], path: str) -> "CheckResult":
    """Checks the values of a row by the names of their columns; those that are left out are not
    part of the result. An unknown name is a problem.
    """
    known = {column.name: column for column in columns}
    stored: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, value in values.items():
        column = known.get(name)
        if column is None:
            problems.append((f"{path}.{name}", "there is no column with this name"))
        elif value is None:
            stored[column.key] = None
        else:
            try:
                stored[column.key] = check_value(column, value)
            except WrongValue as error:
                problems.append((f"{path}.{name}", str(error)))
    return CheckResult(stored, problems)


class CheckResult(msgspec.Struct):
    """Stored values by the keys of columns, where None removes a value; and what is wrong."""

    stored: dict[str, Any]
    problems: list[Problem]


def add_defaults(columns: list[Column], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a new row: with defaults, without those that are missing."""
    defaults = {item.key: item.default for item in columns if item.default is not None}
    return {key: value for key, value in {**defaults, **stored}.items() if value is not None}


def find_row_problems(columns: list[Column], stored: Mapping[str, Any], path: str) -> list[Problem]:
    """Returns what is wrong with a row as a whole."""
    problems = (
        [
            (f"{path}.{column.name}", "is required")
            for column in columns
            if column.required and _is_missing(stored.get(column.key))
        ]
        if any(column.required for column in columns)
        else []
    )
    if len(msgspec.json.encode(stored)) > MAX_ROW_BYTES:
        problems.append((path, f"must be at most {MAX_ROW_BYTES // 1024} KiB as JSON"))
    if count_elements(*stored.values()) > MAX_JSON_ELEMENTS:
        problems.append((path, _TOO_MANY_ELEMENTS))
    return problems


def count_elements(*values: Any) -> int:
    """Returns the number of lists, objects, keys and other values in lists and objects."""
    return sum(_count_elements(value) for value in values if isinstance(value, list | dict))


def _count_elements(value: Any) -> int:
    match value:
        case list():
            return 1 + sum(map(_count_elements, value))
        case dict():
            return 1 + len(value) + sum(map(_count_elements, value.values()))
    return 1


def _is_missing(value: Any) -> bool:
    # Lists and objects of json columns have no hash.
    return value is None or value == ""


def name_values(columns: list[Column], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a row by the names of columns, None for those that are missing."""
    return {column.name: _read_stored(column, stored.get(column.key)) for column in columns}


def _read_stored(column: Column, value: Any) -> Any:
    """Postgres returns a large number with all its digits, as an integer."""
    is_large = column.type == "number" and isinstance(value, int) and abs(value) > MAX_INTEGER
    return float(value) if is_large else value


def list_file_ids(columns: list[Column], stored: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the name of the column and the id of each file."""
    for column in columns:
        file_id = stored.get(column.key)
        if column.type == "file" and file_id is not None:
            yield column.name, file_id


# Types


def _check_text(value: Any) -> str:
    text = value_checks.check_text(value)
    if "\0" in text or NO_TEXT in text:
        raise WrongValue("must not contain NUL or the character U+10FFFF")
    return text


def _check_number(value: Any) -> int | float:
    try:
        number = float(value_checks.check_number(value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WrongValue("must be a finite number of double precision")
    return value_checks.simplify_number(number)


def _check_integer(value: Any) -> int:
    number = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise WrongValue("must be a whole number")
    if abs(number) > MAX_INTEGER:
        raise WrongValue(f"must be between -{MAX_INTEGER} and {MAX_INTEGER}")
    return number


def _check_date(value: Any) -> str:
    return value_checks.parse_date(value).isoformat()


def parse_time(value: Any) -> datetime:
    """Returns a time in UTC, to the millisecond; in UTC unless it names a zone."""
    time = value_checks.parse_time(value)
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _check_datetime(value: Any) -> str:
    return value_checks.format_time(parse_time(value))


def _check_json(value: Any) -> Any:
    if is_deeper(value, MAX_JSON_DEPTH + 1):
        raise WrongValue(f"must nest at most {MAX_JSON_DEPTH} levels")
    if count_elements(value) > MAX_JSON_ELEMENTS:
        raise WrongValue(_TOO_MANY_ELEMENTS)
    try:
        encoded = msgspec.json.encode(value)
        plain = msgspec.json.decode(encoded)
    except (TypeError, ValueError, OverflowError):
        raise WrongValue("must be JSON of valid Unicode") from None
    if b"\\u0000" in encoded and has_nul(plain):
        raise WrongValue("must not contain NUL")
    if not _has_short_numbers(plain):
        raise WrongValue(
            "must have numbers of a magnitude between 1e-20 and 1e20, and integers of 64 bits"
        )
    return plain


def _has_short_numbers(value: Any) -> bool:
    match value:
        case int():
            return _MIN_JSON_INTEGER <= value <= _MAX_JSON_INTEGER
        case float():
            return value == 0 or _MIN_JSON_NUMBER <= abs(value) <= _MAX_JSON_NUMBER
        case list():
            return all(map(_has_short_numbers, value))
        case dict():
            return all(map(_has_short_numbers, value.values()))
    return True


def _check_file(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_FILE_ID_CHARS:
        raise WrongValue("must be the id of a file, like fil_…")
    return _check_text(value)


_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "text": _check_text,
    "number": _check_number,
    "integer": _check_integer,
    "boolean": value_checks.check_boolean,
    "date": _check_date,
    "datetime": _check_datetime,
    "select": _check_text,
    "json": _check_json,
    "file": _check_file,
}


# Cells


def parse_text(column: Column, text: str) -> Any:
    """Returns the value that a text stands for, in its stored form; None for an empty text.
    Raises WrongValue.
    """
    if column.holds_text:
        return check_value(column, text) if text else None
    text = text.strip()
    return check_value(column, _PARSERS.get(column.type, str)(text)) if text else None


def format_value(column: Column, value: Any) -> str:
    """Returns a stored value as a text that `parse_text` understands; "" for None."""
    match value:
        case None:
            return ""
        case int() if column.type == "number" and abs(value) > MAX_INTEGER:
            return repr(float(value))
        case bool() if column.type != "json":
            return "true" if value else "false"
        case str() if column.type != "json":
            return value
    return msgspec.json.encode(value).decode()


def _parse_number(text: str) -> float:
    # Python accepts underscores and words like "nan".
    if "_" in text:
        raise WrongValue("must be a number")
    try:
        return float(text)
    except ValueError:
        raise WrongValue("must be a number") from None


def _parse_integer(text: str) -> int | float:
    try:
        return _parse_number(text) if len(text) > _MAX_DIGITS or "_" in text else int(text)
    except WrongValue:
        raise WrongValue("must be a whole number") from None
    except ValueError:
        return _parse_number(text)


def _parse_boolean(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise WrongValue("must be true or false")
    return word in _TRUE


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise WrongValue("must be valid JSON") from None


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "number": _parse_number,
    "integer": _parse_integer,
    "boolean": _parse_boolean,
    "json": _parse_json,
}
