"""Cuts texts into chunks of about 200 to 400 tokens, at headings, sentences or words."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import Any, Final, NamedTuple

from . import blocks

# About 200 to 400 tokens of English, and an overlap of about 40.
CHUNK_BYTES: Final = (800, 1600)
_overlap_bytes = ContextVar("overlap_bytes", default=160)
# The splitter's time grows with the square of a text without sentences.
_BLOCK_CHARS = 10_000
_MARKS = ("\n\n", "\n", ". ", " ")
# A longer heading is a paragraph.
_MAX_HEADING_CHARS = 150
_SEPARATOR = " > "
_MAX_TITLE_CHARS = 2 * _MAX_HEADING_CHARS + len(_SEPARATOR)
CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u2060\ufeff\ufffe\uffff]")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")

# The level of a heading from 1 on, or 0, and the text.
Line = tuple[int, str]


class Chunk(NamedTuple):
    text: str
    page: int | None = None
    row: int | None = None
    # The headings above the text, which starts with them.
    heading: str | None = None


class Refused(Exception):
    """The message continues a sentence that starts with the name of the file."""


def count_bytes(text: str) -> int:
    """Measures a text: a token has about as many bytes in any script, but not characters."""
    return len(text.encode("utf-8", "replace"))


@contextmanager
def without_overlaps() -> Iterator[None]:
    """For chunks that are put together to one text again."""
    token = _overlap_bytes.set(0)
    try:
        yield
    finally:
        _overlap_bytes.reset(token)


def clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    return _BLANK_LINES.sub("\n\n", CONTROL.sub(" ", text)).strip()


def cut(text: str, *, markdown: bool = False, prefix_bytes: int = 0) -> Iterator[str]:
    """Yields pieces that overlap, and leave room for a prefix."""
    for block in filter(None, _blocks(clean(text))):
        splitter = _splitter(block, markdown=markdown, prefix_bytes=prefix_bytes)
        yield from splitter.chunks(block)


def cut_sections(lines: Iterator[Line], page: int | None = None) -> Iterator[Chunk]:
    """Cuts at headings. A chunk starts with the headings above it."""
    path: list[str] = []
    body: list[str] = []
    for level, text in lines:
        heading = flatten(text) if level else ""
        if not 0 < len(heading) <= _MAX_HEADING_CHARS:
            body.append(text)
            continue
        yield from _cut_section(path, body, page, is_leaf=level <= len(path))
        path = [*path[: level - 1], *[""] * (level - 1 - len(path)), heading]
        body = []
    yield from _cut_section(path, body, page, is_leaf=True)


def put_below(title: str, lines: Iterator[Line]) -> Iterator[Line]:
    """Puts all headings below the title, unless the first of them is the title."""
    start: list[Line] = []
    for level, text in lines:
        start.append((level, text))
        if level:
            break
    has_title = bool(start) and start[-1][0] > 0 and flatten(start[-1][1]) == title
    shift = 0 if has_title or not title else 1
    if shift:
        yield 1, title
    for level, text in chain(start, lines):
        yield level + shift if level else 0, text


def flatten(text: str) -> str:
    """Returns a text in one line."""
    return " ".join(clean(text).split())


def join_headings(path: Iterable[str]) -> str:
    """Returns as many of the last headings as fit, at least two of them."""
    headings = [heading for heading in path if heading]
    while len(title := _SEPARATOR.join(headings)) > _MAX_TITLE_CHARS:
        headings = headings[1:]
    return title


def _cut_section(
    path: list[str], body: list[str], page: int | None, *, is_leaf: bool
) -> Iterator[Chunk]:
    title = join_headings(path)
    prefix = f"{title}\n\n" if title else ""
    is_empty = True
    for piece in _cut_blocks("\n".join(body), prefix):
        is_empty = False
        yield Chunk(piece, page, None, title or None)
    # A heading that the sections below it may have no room for.
    is_long = len(_SEPARATOR.join(filter(None, path))) > _MAX_HEADING_CHARS
    if is_empty and title and (is_leaf or is_long):
        yield Chunk(title, page, None, title)


def _cut_blocks(text: str, prefix: str) -> Iterator[str]:
    """Cuts a text with blocks of code and tables, none of which is cut in two when it fits."""
    max_bytes = CHUNK_BYTES[1] - count_bytes(prefix)
    parts: list[str] = []
    size = 0
    for block in blocks.split(clean(text)):
        if block.kind == "text":
            pieces = list(cut(block.text, markdown=True, prefix_bytes=count_bytes(prefix)))
        elif block.kind == "table":
            pieces = list(_cut_table(block.text, max_bytes))
        elif count_bytes(block.text) <= max_bytes:
            pieces = [block.text]
        else:
            pieces = list(cut(block.text, markdown=True, prefix_bytes=count_bytes(prefix)))
        for number, piece in enumerate(pieces):
            length = count_bytes(piece)
            # Pieces of one block overlap, so they are not joined.
            if parts and (number or size + length > max_bytes):
                yield prefix + "\n\n".join(parts)
                parts, size = [], 0
            parts.append(piece)
            size += length
    if parts:
        yield prefix + "\n\n".join(parts)


def _cut_table(text: str, max_bytes: int) -> Iterator[str]:
    """Cuts a long table between its rows. Each piece starts with the head of the table."""
    first, second, *rows = text.split("\n")
    head = f"{first}\n{second}"
    if count_bytes(text) <= max_bytes:
        yield text
        return
    if count_bytes(head) > max_bytes // 2:
        yield from cut(text, markdown=True, prefix_bytes=CHUNK_BYTES[1] - max_bytes)
        return
    lines, size = [head], count_bytes(head)
    for row in rows:
        length = count_bytes(row) + 1
        if size + length > max_bytes and len(lines) > 1:
            yield "\n".join(lines)
            lines, size = [head], count_bytes(head)
        if size + length > max_bytes:
            room = CHUNK_BYTES[1] - max_bytes + count_bytes(head)
            yield from (f"{head}\n{piece}" for piece in cut(row, prefix_bytes=room))
            continue
        lines.append(row)
        size += length
    if len(lines) > 1:
        yield "\n".join(lines)


def _blocks(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + _BLOCK_CHARS
        if end < len(text):
            middle = end - _BLOCK_CHARS // 2
            places = (text.rfind(mark, middle, end) for mark in _MARKS)
            end = next((place + 1 for place in places if place > 0), end)
        yield text[start:end].strip()
        start = end


def _splitter(text: str, *, markdown: bool, prefix_bytes: int) -> Any:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter  # noqa: PLC0415  # slow

    bytes_per_character = max(1.0, count_bytes(text) / len(text))
    low, high = (int((size - prefix_bytes) / bytes_per_character) for size in CHUNK_BYTES)
    overlap = int(_overlap_bytes.get() / bytes_per_character)
    low, high = max(low, overlap + 1), max(high, 2 * overlap)
    kind = MarkdownSplitter if markdown else TextSplitter
    return kind((low, high), overlap=overlap)
