"""Reads HTML pages: headings, paragraphs, lists and tables, without scripts and hidden parts."""

import codecs
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

from .cutting import Chunk, Line, Refused, cut_sections, flatten
from .text import OLD_ENCODINGS, decode

# What pages declare besides the encodings that are guessed.
DECLARED_ENCODINGS: Final = ("iso8859_2", "iso8859_5", "iso8859_7", "iso8859_9", "iso8859_15")
_DECLARATION_BYTES = 4096
_CHARSET = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w.:-]+)""",
    re.IGNORECASE,
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_HIDDEN_ROLES = {"navigation", "menu", "menubar"}
# An entity that is not resolved has no tag.
_NO_TAG = ""
_HIDDEN = {
    *(
        _NO_TAG,
        "audio",
        "canvas",
        "datalist",
        "iframe",
        "math",
        "nav",
        "noscript",
        "object",
    ),
    *("script", "select", "style", "svg", "template", "textarea", "title", "video"),
}
_INLINE = {
    *(
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "br",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
    ),
    *("font", "i", "img", "input", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s"),
    *("samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
}
_LIST_ITEMS = {"li": "- ", "dt": "", "dd": ""}
_HEADING = re.compile(r"h([1-6])$")
_BACKTICKS = re.compile(r"`{3,}")
_CELLS = {"td", "th"}
_MAX_SPAN = 100


def read(content: bytes) -> Iterator[Chunk]:
    root = parse(decode_page(content))
    if root is None:
        return
    title = root.find("head/title")
    has_heading = next(root.iter("h1"), None) is not None
    above = (
        [(1, flatten("".join(title.itertext())))] if title is not None and not has_heading else []
    )
    yield from cut_sections(chain(above, lines_of(root)))


def parse(text: str) -> Any:
    """Returns the tree of a page; None when it is blank."""
    from lxml import etree  # noqa: PLC0415  # for few formats only

    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError:
        return None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise Refused("has too many levels of elements in each other")
    return root


def decode_page(content: bytes) -> str:
    """Decodes by the byte order mark, else as the page declares, else by what fits."""
    declaration = _CHARSET.search(content[:_DECLARATION_BYTES])
    has_mark = content.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))
    if declaration and not has_mark:
        try:
            name = codecs.lookup((declaration[1] or declaration[2]).decode()).name
        except LookupError:
            name = ""
        # Browsers read Latin 1 as the larger code page.
        name = "cp1252" if name in {"iso8859-1", "ascii"} else name
        if name.replace("-", "_") in {*OLD_ENCODINGS, *DECLARED_ENCODINGS}:
            # Also refuses what is no text.
            decode(content)
            return content.decode(name, "replace")
    return decode(content)


# Lines


def lines_of(root: Any) -> Iterator[Line]:
    """Yields the lines that a reader of the page sees, with the levels of headings."""
    from lxml import etree  # noqa: PLC0415  # for few formats only

    walk = etree.iterwalk(root, events=("start", "end"))
    paragraph = _Paragraph()
    for event, element in walk:
        tag = _tag(element)
        if event == "end":
            yield from paragraph.close(tag)
            paragraph.add(element.tail if element is not root else None)
        elif _is_hidden(element, tag):
            walk.skip_subtree()
        elif element is not root and (special := _read_special(element, tag)) is not None:
            yield from paragraph.finish()
            yield from special
            walk.skip_subtree()
        else:
            yield from paragraph.open(tag)
            paragraph.add(element.text)


class _Paragraph:
    """The text since the last end of a block."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        # What an item of a list starts with; None for other paragraphs.
        self._mark: str | None = None

    def open(self, tag: str) -> Iterator[Line]:
        if tag not in _INLINE:
            yield from self.finish()
        if tag == "br":
            self._parts.append("\n")
        if tag in _LIST_ITEMS:
            self._mark = _LIST_ITEMS[tag]

    def close(self, tag: str) -> Iterator[Line]:
        if tag not in _INLINE:
            yield from self.finish()
        if tag in _LIST_ITEMS:
            self._mark = None

    def add(self, text: str | None) -> None:
        if text:
            self._parts.append(text.replace("\n", " ").replace("\r", " "))

    def finish(self) -> Iterator[Line]:
        text = "".join(self._parts)
        if not text:
            return
        self._parts = []
        lines = [" ".join(line.split()) for line in text.split("\n")]
        text = "\n".join(lines).strip()
        if not text:
            return
        yield 0, (self._mark or "") + text
        if self._mark is None:
            yield 0, ""
        self._mark = None


def _read_special(element: Any, tag: str) -> list[Line] | None:
    """Returns the lines of a heading, a block of code or a table with data; None for others."""
    if heading := _HEADING.match(tag):
        return [(int(heading[1]), text_of(element)), (0, "")]
    if tag == "pre":
        text = "".join(element.itertext()).strip("\n")
        longest = max((len(mark) for mark in _BACKTICKS.findall(text)), default=2)
        fence = "`" * (longest + 1)
        return [(0, ""), *((0, line) for line in (fence, *text.split("\n"), fence)), (0, "")]
    # Tables with tables in them are the layout of a page.
    if tag != "table" or any(_tag(child) == tag for child in islice(element.iter(), 1, None)):
        return None
    return _read_table(element)


def _is_hidden(element: Any, tag: str) -> bool:
    return (
        tag in _HIDDEN
        or element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or element.get("role") in _HIDDEN_ROLES
        or bool(_HIDDEN_STYLE.search(element.get("style", "")))
    )


def text_of(element: Any) -> str:
    """Returns the text of an element in one line."""
    return flatten(" ".join(text for _, text in lines_of(element)))


def _tag(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else _NO_TAG


# Tables


def _read_table(table: Any) -> list[Line]:
    """Returns a line per row: a Markdown table, because a head is repeated when it is cut."""
    lines: list[Line] = [(0, "")]
    has_head = False
    above: dict[int, tuple[str, int]] = {}
    for element in table.iter():
        tag = _tag(element)
        if tag == "caption":
            lines += [(0, text_of(element)), (0, "")]
        if tag != "tr" or _is_hidden(element, tag):
            continue
        cells = _read_cells(element, above)
        if any(cells):
            lines.append((0, f"| {' | '.join(cells)} |"))
            if not has_head:
                lines.append((0, "|" + " --- |" * len(cells)))
            has_head = True
    return [*lines, (0, "")]


def _read_cells(row: Any, above: dict[int, tuple[str, int]]) -> list[str]:
    """Returns the cells of a row. A cell that covers several rows is repeated in each; `above` has
    such cells by their columns, with the number of rows that they still cover.
    """
    cells: list[str] = []
    for element in row:
        tag = _tag(element)
        if tag not in _CELLS or _is_hidden(element, tag):
            continue
        _repeat(cells, above)
        text = text_of(element).replace("|", "/")
        rows, columns = _span(element, "rowspan"), _span(element, "colspan")
        for number in range(columns):
            if rows > 1:
                above[len(cells)] = (text if number == 0 else "", rows - 1)
            cells.append(text if number == 0 else "")
    _repeat(cells, above)
    return cells


def _repeat(cells: list[str], above: dict[int, tuple[str, int]]) -> None:
    while (column := len(cells)) in above:
        text, rows = above.pop(column)
        cells.append(text)
        if rows > 1:
            above[column] = text, rows - 1


def _span(element: Any, name: str) -> int:
    value = element.get(name, "").strip()[:4]
    return max(1, min(int(value), _MAX_SPAN)) if value.isdecimal() else 1
