"""Reads JSON: lists of objects as rows, like those of a table, and other values as lines."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .cutting import Chunk, Refused, flatten, join_headings
from .table import Row, cut_rows
from .text import decode

MAX_DEPTH: Final = 100
_TOO_DEEP = f"has more than {MAX_DEPTH} levels of values in each other"
_CONSTANTS = {True: "true", False: "false"}


def read(content: bytes) -> Iterator[Chunk]:
    text = decode(content)
    try:
        yield from _cut(_parse(text), [])
    except json.JSONDecodeError as error:
        # Files of JSON lines have this ending too.
        if "Extra data" not in error.msg:
            raise Refused(f"is not valid JSON: {error.msg} in line {error.lineno}") from None
        yield from _cut(_parse_lines(text), [])


def read_lines(content: bytes) -> Iterator[Chunk]:
    yield from _cut(_parse_lines(decode(content)), [])


def _parse_lines(text: str) -> list[Any]:
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(_parse(line))
            except json.JSONDecodeError as error:
                raise Refused(f"is not valid JSON: {error.msg} in line {number}") from None
    return values


def _parse(text: str) -> Any:
    """Numbers stay as they are written."""
    try:
        return json.loads(text, parse_int=str, parse_float=str)
    except RecursionError:
        raise Refused(_TOO_DEEP) from None


def _cut(value: Any, path: list[str]) -> Iterator[Chunk]:
    """Cuts a value: first what is no list of objects, and then each such list for itself."""
    rows: Iterable[Row]
    if _is_rows(value):
        rows = ((number, list(_list_cells(row))) for number, row in enumerate(value, 1))
        yield from cut_rows(rows, join_headings(map(flatten, path)) or None)
        return
    lists: list[tuple[list[str], Any]] = []
    lines = list(_list_cells(value, path, lists))
    is_object = isinstance(value, dict) and not lists
    is_flat = is_object and not any(isinstance(item, (dict, list)) for item in value.values())
    rows = [(1, lines)] if is_flat else ((None, [line]) for line in lines)
    yield from cut_rows(rows)
    for inner, rows_of in lists:
        yield from _cut(rows_of, inner)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(i, dict) for i in value)


def _list_cells(
    value: Any, path: list[str] | None = None, lists: list[tuple[list[str], Any]] | None = None
) -> Iterator[str]:
    """Yields a path with its value for all values in a value. With `lists`, lists of objects are
    put there instead.
    """
    path = path or []
    if len(path) > MAX_DEPTH:
        raise Refused(_TOO_DEEP)
    if lists is not None and path and _is_rows(value):
        lists.append((path, value))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _list_cells(item, [*path, name], lists)
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        for number, item in enumerate(value, 1):
            yield from _list_cells(item, [*path, str(number)], lists)
    elif text := _render(value):
        name = flatten(".".join(path))
        yield f"{name}: {text}" if name else text


def _render(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_render, value)))
    if value is None:
        return ""
    return flatten(_CONSTANTS[value] if isinstance(value, bool) else str(value))
