"""Reads DOCX files: headings, paragraphs, tables and notes.

The tree is walked here, because python-docx takes a millisecond for the style of a paragraph and
leaves out insertions, content controls, text boxes and tables in tables.
"""

import io
import re
from collections.abc import Iterator
from typing import Any

from .cutting import Chunk, Line, Refused, cut_sections
from .package import Package

_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PARAGRAPH = f"{_W}p"
_SPACES = {f"{_W}tab", f"{_W}br", f"{_W}cr"}
_WRAPPERS = {f"{_W}sdt", f"{_W}sdtContent", f"{_W}customXml"}
# Deleted text, and the second copy of a text box.
_HIDDEN = {
    f"{_W}del",
    f"{_W}moveFrom",
    f"{_W}pPr",
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
}
_NOT_DOCX = "is not a DOCX file, although its name says so"


def read(content: bytes) -> Iterator[Chunk]:
    Package(content, "DOCX", "DOC").require("[Content_Types].xml")
    import docx  # noqa: PLC0415  # for this format only

    try:
        document = docx.Document(io.BytesIO(content))
    except MemoryError:
        raise
    except (KeyError, ValueError):
        raise Refused(_NOT_DOCX) from None
    except Exception as error:
        raise Refused("is a damaged DOCX file") from error
    yield from cut_sections(_lines(document))


def _lines(document: Any) -> Iterator[Line]:
    from docx.oxml import parse_xml  # noqa: PLC0415  # for this format only

    levels = {
        style.get(f"{_W}styleId", ""): _heading_level(style)
        for part in _related_parts(document, "/styles")
        for style in parse_xml(part.blob).iter(f"{_W}style")
    }
    yield from _block_lines(document.element.body, levels)
    for part in _related_parts(document, "/footnotes", "/endnotes"):
        yield from _block_lines(parse_xml(part.blob), {})


def _related_parts(document: Any, *types: str) -> Iterator[Any]:
    """Reads relations: python-docx would open a file of its own for a part that is missing."""
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.endswith(types):
            yield relation.target_part


def _heading_level(style: Any) -> int:
    name = _attribute(style, f"{_W}name", "")
    heading = _HEADING.match(name)
    return int(heading[1]) + 1 if heading else int(name == "Title")


def _attribute(parent: Any, path: str, default: str) -> str:
    element = parent.find(path)
    value: str = default if element is None else element.get(f"{_W}val", default)
    return value


def _block_lines(parent: Any, levels: dict[str, int]) -> Iterator[Line]:
    for element in parent:
        if element.tag == _PARAGRAPH:
            style = _attribute(element, f"{_W}pPr/{_W}pStyle", "")
            yield levels.get(style, 0), _text(element).strip()
            yield 0, ""
        elif element.tag == f"{_W}tbl":
            yield from _table_lines(element)
        elif element.tag not in _HIDDEN:
            yield from _block_lines(element, levels)


def _text(element: Any) -> str:
    """Returns the text of an element with that of its text boxes and tables."""
    parts: list[str] = []
    for child in element:
        if child.tag == f"{_W}t":
            parts.append(child.text or "")
        elif child.tag in _SPACES:
            parts.append("\n" if child.tag == f"{_W}br" else " ")
        elif child.tag == f"{_W}noBreakHyphen":
            parts.append("-")
        elif len(child) and child.tag not in _HIDDEN:
            text = _text(child)
            parts.append(f" {text} " if child.tag == _PARAGRAPH else text)
    return "".join(parts)


def _table_lines(table: Any) -> Iterator[Line]:
    """Yields a Markdown table. A cell that covers several rows is repeated in each."""
    above: dict[int, str] = {}
    yield 0, ""
    for number, row in enumerate(_children(table, f"{_W}tr")):
        cells: list[str] = []
        column = 0
        for cell in _children(row, f"{_W}tc"):
            covers = cell.find(f"{_W}tcPr/{_W}vMerge")
            is_covered = covers is not None and covers.get(f"{_W}val") != "restart"
            text = "" if is_covered else " ".join(_text(cell).split())
            above[column] = text or (above.get(column, "") if is_covered else "")
            cells.append(above[column])
            width = _attribute(cell, f"{_W}tcPr/{_W}gridSpan", "1")
            column += int(width) if width.isdecimal() else 1
        yield 0, f"| {' | '.join(cells)} |"
        if number == 0:
            yield 0, "|" + " --- |" * len(cells)
    yield 0, ""


def _children(parent: Any, tag: str) -> Iterator[Any]:
    for child in parent:
        if child.tag == tag:
            yield child
        elif child.tag in _WRAPPERS:
            yield from _children(child, tag)
