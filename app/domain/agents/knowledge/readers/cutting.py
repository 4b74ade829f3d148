"""Cuts texts into chunks of about 200 to 400 tokens, at headings, sentences or words."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

# About 200 to 400 tokens of English, and an overlap of about 40.
CHUNK_BYTES: Final = (800, 1600)
_OVERLAP_BYTES = 160
# The splitter's time grows with the square of a text without sentences.
_BLOCK_CHARS = 10_000
_MARKS = ("\n\n", "\n", ". ", " ")
# A longer heading is a paragraph.
_MAX_HEADING_CHARS = 150
CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u2060\ufeff\ufffe\uffff]")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")

# A text, its page and its row.
Chunk = tuple[str, int | None, int | None]
# The level of a heading from 1 on, or 0, and the text.
Line = tuple[int, str]


class Refused(Exception):
    """The message continues a sentence that starts with the name of the file."""


def count_bytes(text: str) -> int:
    """Measures a text: a token has about as many bytes in any script, but not characters."""
    return len(text.encode("utf-8", "replace"))


def clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    return _BLANK_LINES.sub("\n\n", CONTROL.sub(" ", text)).strip()


def cut(text: str, *, markdown: bool = False, prefix: str = "") -> Iterator[str]:
    """Yields pieces that overlap. Each starts with the prefix."""
    for block in filter(None, _blocks(clean(text))):
        splitter = _splitter(block, markdown=markdown, prefix_bytes=count_bytes(prefix))
        for piece in splitter.chunks(block):
            yield prefix + piece


def cut_sections(lines: Iterator[Line]) -> Iterator[Chunk]:
    """Cuts at headings. A chunk starts with the headings above it."""
    path: list[str] = []
    body: list[str] = []
    for level, text in lines:
        heading = " ".join(clean(text).split()) if level else ""
        if not 0 < len(heading) <= _MAX_HEADING_CHARS:
            body.append(text)
            continue
        yield from _cut_section(path, body, is_leaf=level <= len(path))
        path = [*path[: level - 1], *[""] * (level - 1 - len(path)), heading]
        body = []
    yield from _cut_section(path, body, is_leaf=True)


def _cut_section(path: list[str], body: list[str], *, is_leaf: bool) -> Iterator[Chunk]:
    title = " > ".join(filter(None, path))
    # So much of the path that each heading is whole in some chunk.
    prefix = title[-2 * _MAX_HEADING_CHARS - len(" > ") :]
    separator = "\n\n" if prefix else ""
    is_empty = True
    for piece in cut("\n".join(body), markdown=True, prefix=prefix + separator):
        is_empty = False
        yield piece, None, None
    if is_empty and prefix and (is_leaf or len(title) > _MAX_HEADING_CHARS):
        yield prefix, None, None


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
    overlap = int(_OVERLAP_BYTES / bytes_per_character)
    low, high = max(low, overlap + 1), max(high, 2 * overlap)
    kind = MarkdownSplitter if markdown else TextSplitter
    return kind((low, high), overlap=overlap)
