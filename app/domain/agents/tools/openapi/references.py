"""Follows references inside a document, and turns its schemas into the JSON Schemas of tools."""

import re
from typing import Any, Final
from urllib.parse import unquote

from .loading import Refused

_MAX_REFERENCES: Final = 20
_MAX_DEPTH: Final = 12
_MAX_TEXT: Final = 300
_MAX_CHOICES: Final = 100
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_OF_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LIMITS: Final = (*_OF_NUMBERS, "minLength", "maxLength", "minItems", "maxItems")
_MAX_LIMIT: Final = 10**15
_LISTS: Final = ("oneOf", "anyOf", "allOf")
_SPACE: Final = re.compile(r"\s+")


class Document:
    """A parsed document. References to others are refused: nothing is fetched."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root

    def follow(self, value: Any) -> Any:
        """Returns what a reference stands for; other values as they are."""
        for _ in range(_MAX_REFERENCES):
            if not (isinstance(value, dict) and isinstance(value.get("$ref"), str)):
                return value
            value = self._find(value["$ref"])
        raise Refused("has a reference that leads to itself")

    def _find(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise Refused("refers to another document, which is not fetched")
        value: Any = self.root
        for part in reference[1:].split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and name.isdecimal() and int(name[:9]) < len(value):
                value = value[int(name[:9])]
            elif isinstance(value, dict) and name in value:
                value = value[name]
            else:
                raise Refused(f"has a reference to nothing: {reference[:100]}")
        return value


def text_of(value: Any, max_chars: int = _MAX_TEXT) -> str:
    """Returns a text of one line."""
    text = _SPACE.sub(" ", value).strip() if isinstance(value, str) else ""
    text = "".join(char for char in text if char.isprintable())
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


class SchemaWriter:
    """Writes schemas without references. One that is deeper than the bound, refers to itself, or
    comes when the budget of parts is used up, allows any value.
    """

    def __init__(self, document: Document, budget: int) -> None:
        self._document = document
        self.left = budget
        self.is_cut = False

    def write(self, schema: Any, depth: int = 0, open_references: tuple[str, ...] = ()) -> Any:
        self.left -= 1
        if self.left < 0 or depth > _MAX_DEPTH:
            self.is_cut = True
            return {}
        if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            reference = schema["$ref"]
            if reference in open_references or len(open_references) > _MAX_REFERENCES:
                self.is_cut = True
                return {}
            followed = self._document.follow({"$ref": reference})
            return self.write(followed, depth, (*open_references, reference))
        if not isinstance(schema, dict):
            return {}
        return self._write_object(schema, depth + 1, open_references)

    def _write_object(self, schema: dict[str, Any], depth: int, opened: tuple[str, ...]) -> Any:
        written: dict[str, Any] = {}
        kinds = _types_of(schema)
        if kinds:
            written["type"] = kinds[0] if len(kinds) == 1 else kinds
        if text := text_of(schema.get("description") or schema.get("title")):
            written["description"] = text
        _write_limits(schema, written)
        for name in _LISTS:
            items = schema.get(name)
            if isinstance(items, list) and items:
                written[name] = [self.write(item, depth, opened) for item in items[:_MAX_CHOICES]]
        if "items" in schema:
            written["items"] = self.write(schema["items"], depth, opened)
        self._write_properties(schema, written, depth, opened)
        return written

    def _write_properties(
        self, schema: dict[str, Any], written: dict[str, Any], depth: int, opened: tuple[str, ...]
    ) -> None:
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return
        shown = {
            name: item
            for name, item in properties.items()
            if not (isinstance(item, dict) and item.get("readOnly") is True)
        }
        written["properties"] = {
            name: self.write(item, depth, opened) for name, item in shown.items()
        }
        required = schema.get("required")
        if isinstance(required, list):
            names = [name for name in required if isinstance(name, str) and name in shown]
            if names:
                written["required"] = list(dict.fromkeys(names))
        if schema.get("additionalProperties") is False:
            written["additionalProperties"] = False


def _write_limits(schema: dict[str, Any], written: dict[str, Any]) -> None:
    if isinstance(schema.get("enum"), list):
        choices = [item for item in schema["enum"] if not isinstance(item, (dict, list))]
        if choices and len(choices) <= _MAX_CHOICES:
            written["enum"] = choices
    if isinstance(schema.get("const"), (str, int, float)):
        written["const"] = schema["const"]
    for name in _LIMITS:
        limit = schema.get(name)
        if not isinstance(limit, (int, float)) or isinstance(limit, bool):
            continue
        if abs(limit) < _MAX_LIMIT:
            counts = name not in _OF_NUMBERS
            written[name] = max(0, int(limit)) if counts else limit


def _types_of(schema: dict[str, Any]) -> list[str]:
    value = schema.get("type")
    kinds = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    known = [kind for kind in dict.fromkeys(map(str, kinds)) if kind in _TYPES]
    if known and schema.get("nullable") is True and "null" not in known:
        known.append("null")
    return known
