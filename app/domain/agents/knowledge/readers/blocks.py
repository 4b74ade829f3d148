"""Finds the blocks of code and the tables in a text with Markdown."""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TABLE_ROW = re.compile(r"\s*\|")
_TABLE_RULE = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*$")

BlockKind = Literal["text", "code", "table"]


class Block(NamedTuple):
    kind: BlockKind
    text: str


def split(text: str) -> Iterator[Block]:
    """Yields the blocks of a text in their order. None is blank."""
    lines = text.split("\n")
    start = number = 0
    while number < len(lines):
        kind, end = _find_end(lines, number)
        if kind != "text":
            yield from _build("text", lines[start:number])
            yield from _build(kind, lines[number:end])
            start = end
        number = end
    yield from _build("text", lines[start:])


def closes(fence: str, line: str) -> bool:
    """Whether the line ends the block of code that the fence opens."""
    text = line.strip()
    return text.startswith(fence) and not text.strip(fence[0])


def _find_end(lines: list[str], start: int) -> tuple[BlockKind, int]:
    """Returns the kind of the block that starts at a line, and the number of the line after it."""
    end = start + 1
    if fence := FENCE.match(lines[start]):
        while end < len(lines) and not closes(fence[1], lines[end]):
            end += 1
        return "code", min(end + 1, len(lines))
    is_table = end < len(lines) and _TABLE_ROW.match(lines[start]) and _TABLE_RULE.match(lines[end])
    if not is_table:
        return "text", end
    while end < len(lines) and _TABLE_ROW.match(lines[end]):
        end += 1
    return "table", end


def _build(kind: BlockKind, lines: list[str]) -> Iterator[Block]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield Block(kind, text)
