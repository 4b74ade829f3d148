"""Reads plain text and Markdown in any usual encoding."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .cutting import CONTROL, Chunk, Line, Refused, cut, cut_sections

_SAMPLE = 256 * 1024
_MAX_FRONT_MATTER_LINES = 100
# Of two equally likely encodings the first is taken.
OLD_ENCODINGS: Final = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
)
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_OTHER_FORMATS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(={2,}|-{2,})\s*$")
_NO_HEADING = re.compile(r"\s{4}|\s*(?:[-*+>|#]|\d+[.)]\s)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NOT_TEXT = "is not a text file, although its name says so"


def read_text(content: bytes) -> Iterator[Chunk]:
    for piece in cut(decode(content)):
        yield piece, None, None


def read_markdown(content: bytes) -> Iterator[Chunk]:
    yield from cut_sections(_markdown_lines(decode(content).splitlines()))


# Markdown


def _markdown_lines(lines: list[str]) -> Iterator[Line]:
    fence = ""
    was_blank = True
    number = _front_matter_length(lines)
    yield from ((0, line) for line in lines[1 : max(1, number - 1)])
    while number < len(lines):
        line, follower = lines[number], "".join(lines[number + 1 : number + 2])
        number += 1
        if fence:
            fence = "" if _closes(fence, line) else fence
            yield 0, line
            continue
        if opening := _FENCE.match(line):
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


def _closes(fence: str, line: str) -> bool:
    text = line.strip()
    return text.startswith(fence) and not text.strip(fence[0])


def _front_matter_length(lines: list[str]) -> int:
    if lines and lines[0].rstrip() == "---":
        for number, line in enumerate(islice(lines, 1, _MAX_FRONT_MATTER_LINES), 2):
            if line.rstrip() in {"---", "..."}:
                return number
    return 0


# Encodings


def decode(content: bytes) -> str:
    """Raises Refused when the bytes are no text."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "")
    if content.startswith(_OTHER_FORMATS) or (not encoding and b"\x00" in content):
        raise Refused(_NOT_TEXT)
    text = content.decode(encoding or "utf-8-sig", "replace")
    # A few bad bytes are damage. Many are another encoding.
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    if text.count("\ufffd") > (1 if encoding else foreign // 20):
        if encoding:
            raise Refused(_NOT_TEXT)
        text = content.decode(_guess_encoding(content), "replace")
    sample = text[:_SAMPLE]
    if len(CONTROL.findall(sample)) * 10 > len(sample):
        raise Refused(_NOT_TEXT)
    return text


def _guess_encoding(content: bytes) -> str:
    import charset_normalizer  # noqa: PLC0415  # for few files only

    matches = charset_normalizer.from_bytes(content[:_SAMPLE], cp_isolation=list(OLD_ENCODINGS))
    guesses = [
        (match.chaos, -match.coherence, OLD_ENCODINGS.index(match.encoding))
        for match in matches
        if match.encoding in OLD_ENCODINGS
    ]
    return OLD_ENCODINGS[min(guesses)[2]] if guesses else OLD_ENCODINGS[0]
