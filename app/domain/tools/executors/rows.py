"""Rows of a database as a tool's output."""

import base64
import datetime as dt
import decimal
import math
from collections.abc import Iterable
from typing import Any

import asyncpg
import msgspec

from app.domain.tools.executors.protocol import OUTPUT_BYTES, ToolFailed

_LARGEST_INT = 2**53


def result(
    columns: list[str], rows: Iterable[Any], touched: int | None, max_rows: int = 0
) -> dict[str, Any]:
    cells = [[_plain(value) for value in row] for row in rows]
    truncated = touched is None and len(cells) > max_rows
    if truncated:
        cells = cells[:max_rows]
    output = {
        "columns": columns,
        "rows": cells,
        "row_count": len(cells) if touched is None else touched,
        "truncated": truncated,
    }
    if len(msgspec.json.encode(output)) > OUTPUT_BYTES:
        raise ToolFailed("output_too_large", "the rows are more than 1 MiB; ask for less")
    return output


def _plain(value: Any) -> Any:
    """As JSON can hold it, numbers as numbers where nothing is lost."""
    match value:
        case None | bool() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case int():
            return value if abs(value) <= _LARGEST_INT else str(value)
        case decimal.Decimal():
            return _number(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case asyncpg.BitString() | asyncpg.Range():
            return _special(value)
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | asyncpg.Record():
            return [_plain(item) for item in value]
    return str(value)


def _special(value: Any) -> str:
    """As Postgres writes it."""
    if isinstance(value, asyncpg.BitString):
        return str(value.as_string()).replace(" ", "")
    if value.isempty:
        return "empty"
    low, high = ("" if end is None else _plain(end) for end in (value.lower, value.upper))
    return f"{'[' if value.lower_inc else '('}{low},{high}{']' if value.upper_inc else ')'}"


def _number(value: decimal.Decimal) -> Any:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) <= _LARGEST_INT:
        return int(value)
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)
