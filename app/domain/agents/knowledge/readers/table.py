"""Reads CSV files. Each row carries the names of its columns."""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .cutting import CHUNK_BYTES, Chunk, Refused, clean, count_bytes, cut
from .text import decode

MAX_FIELD_CHARS: Final = 1_000_000
_SAMPLE_CHARS = 64 * 1024
_SAMPLE_ROWS = 20
_DELIMITERS = ",;\t|"
_MAX_NAME_CHARS = 80


def read(content: bytes) -> Iterator[Chunk]:
    text = decode(content)
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_guess_delimiter(text))
        yield from _cut_rows(rows)
    except csv.Error as error:
        if "field larger" in str(error):
            message = f"has a field of more than {MAX_FIELD_CHARS:,} characters"
            raise Refused(f"{message}; check its quotation marks") from None
        raise Refused(f"is a damaged CSV file: {error}") from None


def _guess_delimiter(text: str) -> str:
    """Returns the delimiter that gives the most rows as many cells as the first row has."""
    sample = text[:_SAMPLE_CHARS]

    def rate(delimiter: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        try:
            widths = [len(row) for row in islice(reader, _SAMPLE_ROWS) if row]
        except csv.Error:
            return 0, 0
        width = widths[0] if widths else 0
        return (widths.count(width), width) if width > 1 else (0, 0)

    return max(_DELIMITERS, key=rate)


def _cut_rows(rows: Iterator[list[str]]) -> Iterator[Chunk]:
    """Puts rows together up to the size of a chunk."""
    header = [_flatten(name) for name in next(filter(any, rows), [])]
    lines: list[str] = []
    first, size, is_empty = 1, 0, True
    for number, row in enumerate(rows, 1):
        cells = _label_cells(header, row)
        line = "; ".join(cells)
        if not line:
            continue
        is_empty = False
        length = count_bytes(line)
        if lines and size + length > CHUNK_BYTES[0]:
            yield "\n".join(lines), None, first
            lines, size = [], 0
        if length > CHUNK_BYTES[1]:
            yield from ((piece, None, number) for piece in _cut_row(cells))
            continue
        first = first if lines else number
        lines.append(line)
        size += length
    if lines:
        yield "\n".join(lines), None, first
    if is_empty:
        # The only row is no header.
        yield from ((piece, None, None) for piece in cut("; ".join(filter(None, header))))


def _cut_row(cells: list[str]) -> Iterator[str]:
    """Cuts a long row between its cells. Each piece starts with the first cell, or names it."""
    name = cells[0][:_MAX_NAME_CHARS]
    for text in cut("\n".join(cells)):
        yield text if text.startswith(name) else f"{name}\n{text}"


def _label_cells(header: list[str], row: list[str]) -> list[str]:
    cells = []
    for number, value in enumerate(row):
        text = _flatten(value)
        if text:
            name = header[number] if number < len(header) else ""
            cells.append(f"{name or f'column {number + 1}'}: {text}")
    return cells


def _flatten(value: str) -> str:
    return " ".join(clean(value).split())
