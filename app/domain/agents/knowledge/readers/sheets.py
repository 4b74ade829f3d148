"""Reads XLSX files: the rows of each sheet that is not hidden, with the names of their columns.

Sheets are read row by row, so that neither a large one nor one whose only cell is the last of a
million rows takes memory. Formulas have the values that the program has stored with them.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from .cell_formats import CellFormats
from .cutting import Chunk, flatten, join_headings
from .package import Package
from .table import Row, cut_rows

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MAX_COLUMNS: Final = 16_384
# Of the number of a row.
_MAX_DIGITS = 7
# A title may stand above the header.
_HEADER_ROWS = 20
_BOOLEANS = {"0": "FALSE", "1": "TRUE"}


class _Workbook(NamedTuple):
    package: Package
    strings: list[str]
    formats: CellFormats


class _SheetRow(NamedTuple):
    """The number of a row, and its cells that have a text, by the numbers of their columns."""

    number: int
    cells: dict[int, str]


def read(content: bytes) -> Iterator[Chunk]:
    package = Package(content, "XLSX", "XLS", streamed="xl/worksheets/")
    name, root = package.find_main("workbook")
    relations = package.relations(name)
    parts = {relation.type: relation.target for relation in relations.values()}
    book = _Workbook(
        package,
        _read_strings(package, parts.get("sharedStrings")),
        CellFormats(root, package.parse(parts["styles"]) if "styles" in parts else None),
    )
    for sheet in root.iter(f"{_S}sheet"):
        relation = relations.get(sheet.get(_RELATION_ID, ""))
        is_visible = sheet.get("state", "visible") == "visible"
        if relation is not None and relation.type == "worksheet" and is_visible:
            rows = _read_rows(book, relation.target)
            heading = join_headings([flatten(sheet.get("name", ""))])
            yield from cut_rows(_label_rows(rows), heading or None)


def _read_strings(package: Package, name: str | None) -> list[str]:
    if name is None:
        return []
    return [_text(element) for element in package.stream(name, f"{_S}si")]


def _text(element: Any) -> str:
    """Returns the text of a string, without what says how to pronounce it."""
    runs = chain(element.iterfind(f"{_S}t"), element.iterfind(f"{_S}r/{_S}t"))
    return "".join(run.text or "" for run in runs)


def _read_rows(book: _Workbook, name: str) -> Iterator[_SheetRow]:
    number = 0
    for row in book.package.stream(name, f"{_S}row"):
        position = row.get("r", "")[:_MAX_DIGITS]
        number = int(position) if position.isdecimal() else number + 1
        cells: dict[int, str] = {}
        column = 0
        for cell in row.iterfind(f"{_S}c"):
            column = _column(cell.get("r", "")) or column + 1
            text = flatten(_value(book, cell))
            if text and column <= _MAX_COLUMNS:
                cells[column] = text
        if cells:
            yield _SheetRow(number, cells)


def _column(reference: str) -> int:
    """Returns the number of the column in a reference like AB12; 0 when there is none."""
    number = 0
    for letter in reference[:3]:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _value(book: _Workbook, cell: Any) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        inline = cell.find(f"{_S}is")
        return _text(inline) if inline is not None else ""
    value = (cell.findtext(f"{_S}v") or "").strip()
    if kind == "s":
        is_known = value.isdecimal() and int(value) < len(book.strings)
        return book.strings[int(value)] if is_known else ""
    if kind == "b":
        return _BOOLEANS.get(value, "")
    if kind == "e":
        return ""
    return book.formats.render(value, cell.get("s", "")) if kind == "n" else value


def _label_rows(rows: Iterator[_SheetRow]) -> Iterator[Row]:
    """The header is the first row with several cells, or the first row of a sheet without one. What
    stands above it is text.
    """
    start = list(islice(rows, _HEADER_ROWS))
    if not start:
        return
    place = next((index for index, row in enumerate(start) if len(row.cells) > 1), 0)
    for row in start[:place]:
        yield row.number, list(row.cells.values())
    header = start[place]
    is_empty = True
    for row in chain(start[place + 1 :], rows):
        is_empty = False
        yield row.number, _label_cells(header.cells, row.cells)
    if is_empty:
        yield header.number, list(header.cells.values())


def _label_cells(header: dict[int, str], cells: dict[int, str]) -> list[str]:
    return [f"{header.get(column, f'column {column}')}: {text}" for column, text in cells.items()]
