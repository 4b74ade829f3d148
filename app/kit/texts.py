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


# A JSON string, also an unterminated one; possessive, so that it matches in linear time.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_DEPTH_CHANGES = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _DEPTH_CHANGES)


def nests_deeper(raw: bytes, levels: int) -> bool:
    """True when JSON text nests deeper; decoders differ in their own limit between Pythons."""
    if raw.count(b"[") + raw.count(b"{") <= levels:
        return False
    brackets = _JSON_STRING.sub(b"", raw).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_DEPTH_CHANGES.__getitem__, brackets)), default=0) > levels


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
