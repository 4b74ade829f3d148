"""Texts on their way into Postgres, which holds no NUL character, not even an escaped one."""

import re
from itertools import accumulate
from typing import Any

import msgspec


def as_json(value: Any) -> str:
    """JSON that can be stored, whatever a model or a tool put into it."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text:
        text = msgspec.json.encode(without_nul(msgspec.to_builtins(value))).decode()
    return text


def storable(text: str) -> str:
    """Without NUL, and without halves of characters, which some decoders of JSON let through."""
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


# A string, or the beginning of one that does not end: read once, whatever is in it.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _STEPS)


def nests_deeper(raw: bytes, levels: int) -> bool:
    """Whether JSON text is nested further than this. Every Python ends a decoder elsewhere."""
    if raw.count(b"[") + raw.count(b"{") <= levels:
        return False
    brackets = _JSON_STRING.sub(b"", raw).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > levels


def is_deeper(value: Any, levels: int) -> bool:
    """Nothing that people mean is nested so far; what decodes may still be too deep to encode."""
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
