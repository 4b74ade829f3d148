"""JSON Schemas that tenants wrote: checked when they are stored, cheap when they are used.

Nothing is fetched, patterns run in linear time, and what would take long is refused: schemas that
refer to themselves, and those that unfold to too much for the input at hand.
"""

from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs
import msgspec

from app.http.errors import Invalid
from app.kit.texts import is_deeper

_CHARS = 65_536
_DEEPEST = 32
_MOST_NODES = 5_000
_MOST_STEPS = 20_000_000
_SHOWN = 10
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 20)


class _Unfolds(Exception):
    pass


def check(name: str, schema: dict[str, Any]) -> None:
    """Refuse what is no usable schema of an object's shape."""
    if is_deeper(schema, _DEEPEST):
        raise Invalid.field(name, f"is nested deeper than {_DEEPEST} levels")
    packed = msgspec.json.encode(schema, order="sorted")
    if len(packed) > _CHARS:
        raise Invalid.field(name, f"must have at most {_CHARS} bytes")
    try:
        _nodes(packed)
        _validator(packed)
    except _Unfolds as error:
        raise Invalid.field(name, str(error)) from None
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = getattr(error, "message", None) or str(error).partition("\n")[0]
        raise Invalid.field(name, f"is no valid JSON Schema: {said[:200]}") from None


def problems(schema: dict[str, Any], value: Any, name: str) -> dict[str, str]:
    """What is wrong with a value, by where it is wrong; nothing when it conforms."""
    packed = msgspec.json.encode(schema, order="sorted")
    if _nodes(packed) * _size(value) > _MOST_STEPS:
        return {name: "is too large to be checked against the schema"}
    found: dict[str, str] = {}
    for error in _validator(packed).iter_errors(value):
        where = ".".join(map(str, (name, *error.instance_path)))
        # What was given is not repeated: it may be long, or nobody's business.
        masked = getattr(error, "message", "does not conform to the schema")
        found.setdefault(where[:200], masked[:300])
        if len(found) >= _SHOWN:
            break
    return found


@lru_cache(maxsize=512)
def _validator(packed: bytes) -> Any:
    return jsonschema_rs.validator_for(
        msgspec.json.decode(packed),
        offline=True,
        pattern_options=_PATTERNS,
        mask="it",
    )


@lru_cache(maxsize=512)
def _nodes(packed: bytes) -> int:
    """How much a schema is once every reference in it is followed."""
    return _Unfolding(msgspec.json.decode(packed)).size()


class _Unfolding:
    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._anchors: dict[str, Any] = {}
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def size(self) -> int:
        self._find_anchors(self._schema)
        return self._of(self._schema)

    def _find_anchors(self, value: Any) -> None:
        if isinstance(value, dict):
            for key in ("$id", "id", "$anchor", "$dynamicAnchor"):
                if isinstance(value.get(key), str) and value is not self._schema:
                    self._anchors[value[key]] = value
                    self._anchors[f"#{value[key]}"] = value
            for item in value.values():
                self._find_anchors(item)
        elif isinstance(value, list):
            for item in value:
                self._find_anchors(item)

    def _of(self, value: Any) -> int:
        if not isinstance(value, dict | list):
            return 1
        if id(value) in self._open:
            raise _Unfolds("must not refer to itself")
        if id(value) in self._sizes:
            return self._sizes[id(value)]
        self._open.add(id(value))
        total = 1
        if isinstance(value, list):
            total += sum(map(self._of, value))
        else:
            for key, item in value.items():
                if key in {"$ref", "$dynamicRef", "$recursiveRef"} and isinstance(item, str):
                    total += self._of(self._target(item))
                else:
                    total += self._of(item)
        if total > _MOST_NODES:
            raise _Unfolds(f"unfolds to more than {_MOST_NODES} parts")
        self._open.discard(id(value))
        self._sizes[id(value)] = total
        return total

    def _target(self, reference: str) -> Any:
        if reference in {"#", ""}:
            return self._schema
        if reference in self._anchors:
            return self._anchors[reference]
        if not reference.startswith("#/"):
            raise _Unfolds(f"refers to {reference[:80]}, which is not part of it")
        found = self._schema
        for part in reference[2:].split("/"):
            key = _unescaped(part)
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise _Unfolds(f"refers to {reference[:80]}, which is not part of it")
        return found


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _size(value: Any) -> int:
    count, left = 0, [value]
    while left:
        one = left.pop()
        count += 1
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one
    return count
