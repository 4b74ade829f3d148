"""Converts the rows of a database to a tool's output."""

import base64
import datetime as dt
import decimal
import math
from collections.abc import Iterable
from typing import Any

import asyncpg
import msgspec

from app.domain.agents.tools.errors import ToolFailed

from .protocol import OUTPUT_BYTES

# The largest integer that every JSON parser reads exactly.
_MAX_INT = 2**53


def rows_too_large() -> ToolFailed:
    return ToolFailed("output_too_large", "the rows are more than 1 MiB; ask for less")


def build_result(
    columns: list[str], rows: Iterable[Any], affected_rows: int | None, max_rows: int = 0
) -> dict[str, Any]:
    """`affected_rows` is the count of a statement that returns no rows, else None."""
    cells = [[_to_json(value) for value in row] for row in rows]
    truncated = affected_rows is None and len(cells) > max_rows
    if truncated:
        cells = cells[:max_rows]
    output = {
        "columns": columns,
        "rows": cells,
        "row_count": len(cells) if affected_rows is None else affected_rows,
        "truncated": truncated,
    }
    if len(msgspec.json.encode(output)) > OUTPUT_BYTES:
        raise rows_too_large()
    return output


def _to_json(value: Any) -> Any:
    """Returns a JSON value. A number that JSON cannot hold exactly becomes a text."""
    match value:
        case None | bool() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case int():
            return value if abs(value) <= _MAX_INT else str(value)
        case decimal.Decimal():
            return _decimal_to_json(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case asyncpg.BitString() | asyncpg.Range():
            return _postgres_text(value)
        case dict():
            return {str(key): _to_json(item) for key, item in value.items()}
        case list() | tuple() | set() | asyncpg.Record():
            return [_to_json(item) for item in value]
    return str(value)


def _postgres_text(value: Any) -> str:
    """Returns a bit string or a range in the notation of Postgres."""
    if isinstance(value, asyncpg.BitString):
        return str(value.as_string()).replace(" ", "")
    if value.isempty:
        return "empty"
    low, high = ("" if end is None else _to_json(end) for end in (value.lower, value.upper))
    return f"{'[' if value.lower_inc else '('}{low},{high}{']' if value.upper_inc else ')'}"


def _decimal_to_json(value: decimal.Decimal) -> Any:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) <= _MAX_INT:
        return int(value)
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)
