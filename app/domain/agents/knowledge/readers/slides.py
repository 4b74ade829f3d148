"""Reads PPTX files: the texts, tables, diagrams and notes of each slide that is not hidden."""

from collections.abc import Iterator
from typing import Any

from .cutting import Chunk, Line, cut_sections, flatten
from .package import Package

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_TITLES = {"title", "ctrTitle"}
# Numbers, dates and footers, and the picture of the slide above its notes.
_LEFT_OUT = {"sldNum", "dt", "ftr", "hdr", "sldImg"}


def read(content: bytes) -> Iterator[Chunk]:
    package = Package(content, "PPTX", "PPT")
    name, root = package.find_main("presentation")
    relations = package.relations(name)
    slides = [
        relations[element.get(_RELATION_ID, "")].target
        for element in root.iter(f"{_P}sldId")
        if element.get(_RELATION_ID, "") in relations
    ]
    for page, slide in enumerate(slides, 1):
        tree = package.parse(slide, "sld")
        if tree.get("show") not in {"0", "false"}:
            yield from cut_sections(_slide_lines(package, slide, tree), page)


def _slide_lines(package: Package, name: str, tree: Any) -> Iterator[Line]:
    title = next((shape for shape in tree.iter(f"{_P}sp") if _kind(shape) in _TITLES), None)
    if title is not None:
        yield 1, flatten(" ".join(text for _, text in _shape_lines(title)))
    yield from _tree_lines(tree, title)
    for relation in package.relations(name).values():
        if relation.type == "diagramData":
            yield from _shape_lines(package.parse(relation.target))
        elif relation.type == "notesSlide":
            yield from _tree_lines(package.parse(relation.target), None)


def _tree_lines(tree: Any, title: Any) -> Iterator[Line]:
    """Yields the lines of all shapes, also of those in groups."""
    for element in tree.iter(f"{_P}sp", f"{_A}tbl"):
        if element is title or next(element.iterancestors(_FALLBACK), None) is not None:
            continue
        if element.tag == f"{_A}tbl":
            yield from _table_lines(element)
        elif _kind(element) not in _LEFT_OUT:
            yield from _shape_lines(element)
            yield 0, ""


def _kind(shape: Any) -> str:
    """Returns the type of the placeholder that the shape fills, if it fills one."""
    placeholder = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return "" if placeholder is None else placeholder.get("type", "")


def _shape_lines(shape: Any) -> Iterator[Line]:
    for paragraph in shape.iter(f"{_A}p"):
        text = _text(paragraph)
        if text:
            properties = paragraph.find(f"{_A}pPr")
            level = "0" if properties is None else properties.get("lvl", "0")
            indent = int(level[:1]) if level[:1].isdecimal() else 0
            yield 0, f"{'  ' * (indent - 1)}- {text}" if indent else text


def _text(paragraph: Any) -> str:
    parts = (
        element.text if element.tag == f"{_A}t" else " "
        for element in paragraph.iter(f"{_A}t", f"{_A}br", f"{_A}tab")
    )
    return flatten("".join(part or "" for part in parts))


def _table_lines(table: Any) -> Iterator[Line]:
    yield 0, ""
    for number, row in enumerate(table.iterfind(f"{_A}tr")):
        texts = (
            " ".join(text for _, text in _shape_lines(cell)).replace("|", "/")
            for cell in row.iterfind(f"{_A}tc")
        )
        cells = list(texts)
        yield 0, f"| {' | '.join(cells)} |"
        if number == 0:
            yield 0, "|" + " --- |" * len(cells)
    yield 0, ""
