"""Reads Markdown: headings by their marks or underlines, and the title of the front matter."""

import re
from collections.abc import Iterator
from itertools import islice

from .blocks import FENCE, closes
from .cutting import Chunk, Line, cut_sections, flatten, put_below
from .text import decode

_MAX_FRONT_MATTER_LINES = 100
_FRONT_MATTER_MARKS = {"---": {"---", "..."}, "+++": {"+++"}}
_TITLE = re.compile(r"title\s*[:=]\s*(.+)", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(={2,}|-{2,})\s*$")
_NO_HEADING = re.compile(r"\s{4}|\s*(?:[-*+>|#]|\d+[.)]\s)")


def read(content: bytes) -> Iterator[Chunk]:
    lines = decode(content).splitlines()
    start = _front_matter_length(lines)
    title = _find_title(lines[:start])
    yield from cut_sections(put_below(title, _lines(lines, start)))


def _lines(lines: list[str], number: int) -> Iterator[Line]:
    fence = ""
    was_blank = True
    while number < len(lines):
        line, follower = lines[number], "".join(lines[number + 1 : number + 2])
        number += 1
        if fence:
            fence = "" if closes(fence, line) else fence
            yield 0, line
            continue
        if opening := FENCE.match(line):
            fence = opening[1]
        level, text = _parse_heading(line, follower if was_blank else "")
        # The underline is no text.
        number += level > 0 and text is line
        was_blank = level > 0 or not line.strip()
        yield level, text


def _parse_heading(line: str, follower: str) -> Line:
    """Returns level 0 and the line unless it is a heading, by its marks or its underline."""
    if heading := _HEADING.match(line):
        text = line[heading.end() :].strip()
        return len(heading[1]), text.rstrip("#").rstrip() or text
    underline = _UNDERLINE.match(follower)
    if underline is None or not line.strip() or _NO_HEADING.match(line):
        return 0, line
    return (1 if underline[1].startswith("=") else 2), line


def _front_matter_length(lines: list[str]) -> int:
    ends = _FRONT_MATTER_MARKS.get(lines[0].rstrip(), set()) if lines else set()
    for number, line in enumerate(islice(lines, 1, _MAX_FRONT_MATTER_LINES), 2):
        if line.rstrip() in ends:
            return number
    return 0


def _find_title(front_matter: list[str]) -> str:
    titles = filter(None, map(_TITLE.match, front_matter))
    return next((flatten(title[1]).strip("\"'") for title in titles), "")
