"""Reads CSV files. Each row carries the names of its columns."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from .cutting import CHUNK_BYTES, Chunk, Refused, count_bytes, cut, flatten
from .text import decode

MAX_FIELD_CHARS: Final = 1_000_000
_SAMPLE_CHARS = 64 * 1024
_SAMPLE_ROWS = 20
_DELIMITERS = ",;\t|"
_MAX_NAME_CHARS = 80

# The number of a row, if it has one, and its cells with the names of their columns.
Row = tuple[int | None, list[str]]


def read(content: bytes) -> Iterator[Chunk]:
    text = decode(content)
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_guess_delimiter(text))
        yield from cut_rows(_label_rows(rows))
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


def _label_rows(rows: Iterator[list[str]]) -> Iterator[Row]:
    header = [flatten(name) for name in next(filter(any, rows), [])]
    is_empty = True
    for number, row in enumerate(rows, 1):
        cells = _label_cells(header, row)
        is_empty = is_empty and not cells
        yield number, cells
    if is_empty:
        # The only row is no header.
        yield None, ["; ".join(filter(None, header))]


def cut_rows(rows: Iterable[Row], heading: str | None = None) -> Iterator[Chunk]:
    """Puts rows together up to the size of a chunk. A chunk has the number of its first row."""
    prefix = f"{heading}\n\n" if heading else ""
    lines: list[str] = []
    first: int | None = None
    size = 0
    for number, cells in rows:
        line = "; ".join(cells)
        if not line:
            continue
        length = count_bytes(line)
        if lines and size + length > CHUNK_BYTES[0]:
            yield Chunk(prefix + "\n".join(lines), None, first, heading)
            lines, size = [], 0
        if length > CHUNK_BYTES[1] - count_bytes(prefix):
            for piece in _cut_row(cells, count_bytes(prefix)):
                yield Chunk(prefix + piece, None, number, heading)
            continue
        first = first if lines else number
        lines.append(line)
        size += length
    if lines:
        yield Chunk(prefix + "\n".join(lines), None, first, heading)


def _cut_row(cells: list[str], prefix_bytes: int) -> Iterator[str]:
    """Cuts a long row between its cells. Each piece starts with the first cell, or names it."""
    name = cells[0][:_MAX_NAME_CHARS]
    for text in cut("\n".join(cells), prefix_bytes=prefix_bytes):
        yield text if text.startswith(name) else f"{name}\n{text}"


def _label_cells(header: list[str], row: list[str]) -> list[str]:
    cells = []
    for number, value in enumerate(row):
        text = flatten(value)
        if text:
            name = header[number] if number < len(header) else ""
            cells.append(f"{name or f'column {number + 1}'}: {text}")
    return cells
