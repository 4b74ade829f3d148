"""The largest values of a type that its schema allows: most fields and items, longest texts,
deepest nesting.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import inspect

# Candidates for texts with a pattern, each of a length.
_TEXTS: tuple[Callable[[int], str], ...] = (
    lambda length: "a " * (length // 2) + "a" * (length % 2),
    lambda length: "a" * length,
    lambda length: "https://example.com/" + "a" * (length - 20),
    lambda _length: "a" * 64,
    lambda _length: "#1a73e8",
    lambda _length: "/a",
)
_NO_LIMIT = 1_000_000_000
_LONGEST_INTEGER = 2**31 - 1


class Limits(msgspec.Struct, frozen=True):
    """Apply where the schema has none, or larger ones."""

    text_chars: int
    items: int
    depth: int
    json_bytes: int


class Unfit(Exception):
    """No value is known for this type."""


def build_body(
    kind: Any, max_bytes: int, *, many_items: bool, ids: Mapping[str, str], depth: int
) -> dict[str, Any]:
    """Returns the fields of a body with at most `max_bytes` in all. It has as many items as
    possible, or else texts as long as possible.
    """
    info: Any = inspect.type_info(kind)
    # Each field gets a share, so that nested lists do not begin with gigabytes.
    share = max_bytes // max(1, len(info.fields))
    limits = Limits(share, share if many_items else 10, depth, share)
    while True:
        body: dict[str, Any] = _Builder(limits, ids).build(info)
        if len(msgspec.json.encode(body)) <= max_bytes:
            return body
        limits = _reduce(limits, many_items=many_items)


def _reduce(limits: Limits, *, many_items: bool) -> Limits:
    text_chars, items = limits.text_chars, limits.items
    if (many_items and text_chars > 1) or items == 1:
        text_chars //= 2
    else:
        items = max(1, items // 2)
    return msgspec.structs.replace(
        limits, text_chars=max(1, text_chars), items=items, json_bytes=limits.json_bytes // 2
    )


class _Builder:
    def __init__(self, limits: Limits, ids: Mapping[str, str]) -> None:
        self._limits = limits
        self._ids = ids
        self._open: list[type] = []

    def build(self, kind: inspect.Type, name: str = "") -> Any:
        """Raises Unfit."""
        match kind:
            case inspect.Metadata():
                return self.build(kind.type, name)
            case inspect.StructType():
                return self._build_struct(kind)
            case inspect.StrType():
                return self._build_text(kind, name)
            case inspect.ListType() | inspect.SetType() | inspect.VarTupleType():
                item = self.build(kind.item_type, name.removesuffix("s"))
                return [item] * self._count(kind, item)
            case inspect.DictType():
                return self._build_map(kind)
            case inspect.UnionType():
                return self._build_union(kind, name)
            case inspect.AnyType() | inspect.RawType():
                return build_json(self._limits)
        return _build_scalar(kind)

    def _build_struct(self, kind: inspect.StructType) -> dict[str, Any]:
        if kind.cls in self._open:
            raise Unfit(kind.cls.__name__)
        self._open.append(kind.cls)
        body: dict[str, Any] = {}
        if kind.tag_field is not None:
            body[kind.tag_field] = kind.tag
        for field in kind.fields:
            try:
                body[field.encode_name] = self.build(field.type, field.name)
            except Unfit:
                if field.required:
                    self._open.pop()
                    raise
        self._open.pop()
        return body

    def _build_text(self, kind: inspect.StrType, name: str) -> str:
        if name in self._ids:
            return self._ids[name]
        longest = min(kind.max_length or self._limits.text_chars, self._limits.text_chars)
        length = max(longest, kind.min_length or 1)
        for build in _TEXTS:
            text = build(length)
            if (kind.max_length or _NO_LIMIT) < len(text) or len(text) < (kind.min_length or 0):
                continue
            if kind.pattern is None or re.search(kind.pattern, text):
                return text
        raise Unfit(name)

    def _count(self, kind: Any, item: Any) -> int:
        allowed = self._limits.json_bytes // (len(msgspec.json.encode(item)) + 1)
        most = min(kind.max_length or _NO_LIMIT, self._limits.items, max(1, allowed))
        return max(most, kind.min_length or 0)

    def _build_map(self, kind: inspect.DictType) -> Any:
        if isinstance(kind.value_type, inspect.AnyType):
            return build_json(self._limits)
        value = self.build(kind.value_type)
        count = self._count(kind, ["key000000", value])
        return {f"key{number:06}": value for number in range(count)}

    def _build_union(self, kind: inspect.UnionType, name: str) -> Any:
        values = []
        for item in kind.types:
            if not isinstance(item, inspect.NoneType):
                try:
                    values.append(self.build(item, name))
                except Unfit:
                    continue
        if not values:
            raise Unfit(name)
        return max(values, key=lambda value: len(msgspec.json.encode(value)))


def build_json(limits: Limits) -> dict[str, Any]:
    """Returns an object with many keys, a deep value and a long text."""
    deep: Any = 1
    for number in range(limits.depth - 2):
        deep = {"a": deep} if number % 2 else [deep]
    count = min(limits.items, limits.json_bytes // 60)
    long_text = "a " * (min(limits.text_chars, limits.json_bytes // 3) // 2)
    return {
        "deep": deep,
        "text": long_text,
        **{f"key{number:06}": {"type": "x", "a": [number]} for number in range(count)},
    }


def _build_scalar(kind: inspect.Type) -> Any:
    match kind:
        case inspect.BoolType():
            return True
        case inspect.IntType() | inspect.FloatType():
            if kind.le is not None:
                return kind.le
            return kind.lt - 1 if kind.lt is not None else _LONGEST_INTEGER
        case inspect.LiteralType():
            return max(kind.values, key=lambda value: len(str(value)))
        case inspect.EnumType():
            return max((item.value for item in kind.cls), key=lambda value: len(str(value)))
        case inspect.DateTimeType():
            return "2090-12-31T23:59:59.999999+00:00"
        case inspect.DateType():
            return "2090-12-31"
    raise Unfit(type(kind).__name__)
