"""Prepares texts and JSON for Postgres, which stores no NUL character, not even an escaped one."""

import re
from itertools import accumulate
from typing import Any

import msgspec


def as_json(value: Any) -> str:
    """Returns a value as JSON without NUL characters."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text:
        text = msgspec.json.encode(without_nul(msgspec.to_builtins(value))).decode()
    return text


def storable(text: str) -> str:
    """Removes NUL and replaces lone surrogates, which some JSON decoders accept, by `?`."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def without_nul(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\0", "")
        case list():
            return [without_nul(item) for item in value]
        case dict():
            return {without_nul(key): without_nul(item) for key, item in value.items()}
    return value


def has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case list():
            return any(map(has_nul, value))
        case dict():
            return any(has_nul(key) or has_nul(item) for key, item in value.items())
    return False


# Strings, from which escapes were removed; also one without an end.
_JSON_STRING = re.compile(rb'"[^"]*+"?')
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS_OR_QUOTES = bytes(byte for byte in range(256) if byte not in b'[]{}"')
# Brackets that are counted at once.
_BLOCK = 256


def nests_deeper(raw: bytes, levels: int) -> bool:
    """True when JSON text nests deeper; decoders differ in their own limit between Pythons.

    Takes milliseconds for a megabyte of brackets: everything is done by functions of `bytes`.
    """
    if raw.count(b"[") + raw.count(b"{") <= levels:
        return False
    if b"\\" in raw:
        raw = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    text = raw.translate(_BRACKETS, _NO_BRACKETS_OR_QUOTES).replace(b'""', b"")
    brackets = _JSON_STRING.sub(b"", text)
    depth = 0
    for start in range(0, len(brackets), _BLOCK):
        block = brackets[start : start + _BLOCK]
        opened = block.count(b"[")
        if depth + opened > levels and depth + _find_deepest(block) > levels:
            return True
        depth += 2 * opened - len(block)
    return False


def _find_deepest(brackets: bytes) -> int:
    return max(accumulate(1 if byte == ord("[") else -1 for byte in brackets))


def is_deeper(value: Any, levels: int) -> bool:
    """True when a decoded value nests deeper; it may be too deep to encode again."""
    layer = [value]
    for _ in range(levels):
        layer = [
            item
            for outer in layer
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return False
    return True
