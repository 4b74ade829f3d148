"""Finds the templates in a JSON value."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

_MARKS = ("{{", "{%", "{#")
_MAX_PATH = 200


class Source(msgspec.Struct, frozen=True):
    """The text of a template or condition, and its place for error messages."""

    kind: Literal["template", "condition"]
    text: str
    path: str


def has_templates(value: Any) -> bool:
    """False when a rendering returns the value unchanged."""
    return next(_find(value, ""), None) is not None


def list_sources(value: Any, path: str) -> list[Source]:
    """Returns the templates in the order of the value."""
    return [Source("template", text, place) for text, place in _find(value, path)]


def _find(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yields texts with their paths. A stack of its own: values may nest deeper than Python's."""
    waiting = [(value, path)]
    while waiting:
        item, place = waiting.pop()
        match item:
            case str() if any(mark in item for mark in _MARKS):
                yield item, place
            case dict():
                children = [(child, _join(place, key)) for key, child in item.items()]
                waiting += reversed(children)
            case list():
                children = [(child, _join(place, index)) for index, child in enumerate(item)]
                waiting += reversed(children)


def _join(path: str, key: object) -> str:
    return (f"{path}.{key}" if path else str(key))[:_MAX_PATH]
