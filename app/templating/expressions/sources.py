"""Finds the templates in a JSON value, and the expressions in a template."""

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

_MARKS = ("{{", "{%", "{#")
_MAX_PATH = 200
_PART_COUNT = 50
_PART_LENGTH = 8_000
_START = re.compile(r"\{[{%#]")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*-?%\}")
_END_OF_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
# A text is one token, also one without an end; possessive, so that it takes linear time.
_TOKEN = re.compile(
    r""" "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | '(?:[^'\\]|\\.)*+(?:'|\\?\Z) | %\} | [{}] """,
    re.VERBOSE | re.DOTALL,
)


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


def replace_templates(value: Any, results: Iterator[Any]) -> Any:
    """Returns the value with the results, which have the order of `list_sources`."""
    match value:
        case str() if _is_template(value):
            return next(results)
        case dict():
            return {key: replace_templates(item, results) for key, item in value.items()}
        case list():
            return [replace_templates(item, results) for item in value]
    return value


def split_sources(sources: list[Source]) -> Iterator[list[Source]]:
    """Yields parts of which each is compiled in some tenths of a second."""
    part: list[Source] = []
    length = 0
    for source in sources:
        if part and (len(part) == _PART_COUNT or length + len(source.text) > _PART_LENGTH):
            yield part
            part, length = [], 0
        part.append(source)
        length += len(source.text)
    if part:
        yield part


def list_expressions(template: str) -> Iterator[str]:
    """Yields what stands within {{ }} and {% %}; neither comments nor raw blocks."""
    position = 0
    while start := _START.search(template, position):
        if start[0] == "{#":
            end = template.find("#}", start.end())
            position = len(template) if end < 0 else end + 2
        elif raw := _RAW.match(template, start.start()):
            end_of_raw = _END_OF_RAW.search(template, raw.end())
            position = end_of_raw.end() if end_of_raw else len(template)
        else:
            end = _find_end(template, start.end(), start[0])
            yield template[start.end() : end]
            position = end + 2


def _find_end(template: str, position: int, start: str) -> int:
    """Returns where an expression ends; its objects may have braces, too."""
    depth = 0
    for token in _TOKEN.finditer(template, position):
        match token[0]:
            case "{":
                depth += 1
            case "}" if depth:
                depth -= 1
            case "}" if start == "{{" and template.startswith("}}", token.start()):
                return token.start()
            case "%}" if start == "{%" and not depth:
                return token.start()
    return len(template)


def _find(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yields texts with their paths. A stack of its own: values may nest deeper than Python's."""
    stack = [(value, path)]
    while stack:
        item, place = stack.pop()
        match item:
            case str() if _is_template(item):
                yield item, place
            case dict():
                children = [(child, _join(place, key)) for key, child in item.items()]
                stack += reversed(children)
            case list():
                children = [(child, _join(place, index)) for index, child in enumerate(item)]
                stack += reversed(children)


def _is_template(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


def _join(path: str, key: object) -> str:
    return (f"{path}.{key}" if path else str(key))[:_MAX_PATH]
