"""Ranges and conditions of requests for a file's content (RFC 9110)."""

import re

import msgspec

# Of one range; a list of several is answered with the whole file.
_RANGE = re.compile(r"bytes[ \t]*=[ \t]*([0-9]*)[ \t]*-[ \t]*([0-9]*)[ \t]*\Z", re.IGNORECASE)
_ENTITY_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')
# Longer numbers are positions after the end of every file.
_MAX_DIGITS = 18


class ByteRange(msgspec.Struct, frozen=True):
    """The positions of the first byte and of the one after the last."""

    start: int
    end: int


class Unsatisfiable(ValueError):
    """The file has no byte of the range."""


def parse_range(header: str, size: int) -> ByteRange | None:
    """Returns the range that a header asks for; None when it is to be ignored, because it is
    another unit, several ranges, or not valid. Raises Unsatisfiable.
    """
    match = _RANGE.match(header.strip(" \t"))
    if match is None or match[1] == match[2] == "":
        return None
    if not match[1]:
        length = min(_parse_number(match[2]), size)
        if length == 0:
            raise Unsatisfiable(header)
        return ByteRange(size - length, size)
    start, last = _parse_number(match[1]), size - 1
    if match[2]:
        last = _parse_number(match[2])
        if last < start:
            return None
    if start >= size:
        raise Unsatisfiable(header)
    return ByteRange(start, min(last + 1, size))


def _parse_number(digits: str) -> int:
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= _MAX_DIGITS else 10**_MAX_DIGITS


def matches_any(header: str, entity_tag: str) -> bool:
    """The weak comparison of If-None-Match."""
    if header.strip(" \t") == "*":
        return True
    return any(tag == entity_tag for _, tag in _ENTITY_TAG.findall(header))


def may_use_range(if_range: str | None, entity_tag: str) -> bool:
    """The strong comparison of If-Range. A date never matches: there is no Last-Modified."""
    return if_range is None or if_range.strip(" \t") == entity_tag
