"""JSON Schemas that tenants wrote: checked when they are stored, cheap when they are used.

Nothing is fetched, patterns run in linear time, and what would take long is refused: schemas that
refer to themselves, and those that unfold to too much for the input at hand.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs
import msgspec

from app.kit.errors import Invalid
from app.kit.texts import is_deeper

_CHARS = 65_536
_DEEPEST = 32
_MOST_NODES = 5_000
_MOST_STEPS = 20_000_000
# The library gathers all errors before it gives the first: so many that it may not be asked.
_MOST_TOLD = 20_000
_MOST_MATCHING = 500_000
_MOST_PATTERNS = 50
_DIVIDING = 1_000
_SHOWN = 10
# How large a pattern may become, in bytes, and about how much longer one of that size takes.
_PATTERN_SIZES = {1 << 14: 1, 1 << 16: 6, 1 << 18: 12, 1 << 20: 24}
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


class _Unfolds(Exception):
    pass


class _Extent(NamedTuple):
    """How much a schema is once every reference in it is followed."""

    nodes: int
    patterns: int


def check(name: str, schema: dict[str, Any]) -> None:
    """Refuse what is no usable schema of an object's shape."""
    if is_deeper(schema, _DEEPEST):
        raise Invalid.field(name, f"is nested deeper than {_DEEPEST} levels")
    packed = msgspec.json.encode(schema, order="sorted")
    if len(packed) > _CHARS:
        raise Invalid.field(name, f"must have at most {_CHARS} bytes")
    try:
        _extent(packed)
        _validator(packed)
    except _Unfolds as error:
        raise Invalid.field(name, str(error)) from None
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = getattr(error, "message", None) or str(error).partition("\n")[0]
        raise Invalid.field(name, f"is no valid JSON Schema: {said[:200]}") from None


def problems(schema: dict[str, Any], value: Any, name: str) -> dict[str, str]:
    """What is wrong with a value, by where it is wrong; nothing when it conforms."""
    packed = msgspec.json.encode(schema, order="sorted")
    extent, (items, chars) = _extent(packed), _size(value)
    validator, weight = _validator(packed)
    steps, matching = extent.nodes * items, extent.patterns * weight * chars
    if steps > _MOST_STEPS or matching > _MOST_MATCHING:
        return {name: "is too large to be checked against the schema"}
    if validator.is_valid(value):
        return {}
    if steps + matching > _MOST_TOLD:
        return {name: "does not conform to the schema"}
    found: dict[str, str] = {}
    for error in validator.iter_errors(value):
        where = ".".join(map(str, (name, *error.instance_path)))
        # What was given is not repeated: it may be long, or nobody's business.
        masked = getattr(error, "message", "does not conform to the schema")
        found.setdefault(where[:200], masked[:300])
        if len(found) >= _SHOWN:
            break
    return found


@lru_cache(maxsize=64)
def _validator(packed: bytes) -> tuple[Any, int]:
    """With how long its largest pattern may take."""
    *smaller, (largest, most) = _PATTERN_SIZES.items()
    for size, weight in smaller:
        try:
            return _compiled(packed, size), weight
        except jsonschema_rs.ValidationError:
            continue
    return _compiled(packed, largest), most


def _compiled(packed: bytes, size: int) -> Any:
    return jsonschema_rs.validator_for(
        msgspec.json.decode(packed),
        offline=True,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=size),
        mask="it",
    )


@lru_cache(maxsize=512)
def _extent(packed: bytes) -> _Extent:
    return _Unfolding(msgspec.json.decode(packed)).extent()


class _Unfolding:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._id = "id" if "draft-04" in str(schema.get("$schema")) else "$id"
        self._anchors: dict[str, Any] = {}
        self._extents: dict[int, _Extent] = {}
        self._open: set[int] = set()

    def extent(self) -> _Extent:
        self._find_anchors(self._schema)
        return self._of(self._schema)

    def _find_anchors(self, value: Any) -> None:
        if isinstance(value, dict):
            if value is not self._schema:
                self._note_names(value)
            for item in value.values():
                self._find_anchors(item)
        elif isinstance(value, list):
            for item in value:
                self._find_anchors(item)

    def _note_names(self, value: dict[str, Any]) -> None:
        own = value.get(self._id)
        if isinstance(own, str):
            if not own.startswith("#"):
                # Within a part that has an address, every reference means something else.
                raise _Unfolds(f"must have no {self._id} within")
            self._add_anchor(own.removeprefix("#"), value)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(value.get(key), str):
                self._add_anchor(value[key], value)

    def _add_anchor(self, name: str, value: Any) -> None:
        if self._anchors.get(f"#{name}", value) is not value:
            raise _Unfolds(f"has two parts of the name {name[:80]}")
        self._anchors[f"#{name}"] = value

    def _of(self, value: Any) -> _Extent:
        if not isinstance(value, dict | list):
            return _Extent(1, 0)
        if id(value) in self._open:
            raise _Unfolds("must not refer to itself")
        if id(value) in self._extents:
            return self._extents[id(value)]
        self._open.add(id(value))
        nodes, patterns = 1, 0
        for part in value if isinstance(value, list) else self._parts(value):
            within = self._of(part)
            nodes, patterns = nodes + within.nodes, patterns + within.patterns
        if isinstance(value, dict):
            # Whether something was evaluated is found by evaluating all of it again, and again.
            nodes *= 3 if _UNEVALUATED & value.keys() else 1
            patterns += _patterns_in(value)
            # Such a division is done with numbers of any length.
            nodes += _DIVIDING if "multipleOf" in value else 0
        if patterns > _MOST_PATTERNS:
            raise _Unfolds(f"has more than {_MOST_PATTERNS} patterns")
        if nodes > _MOST_NODES:
            raise _Unfolds(f"unfolds to more than {_MOST_NODES} parts")
        self._open.discard(id(value))
        self._extents[id(value)] = _Extent(nodes, patterns)
        return self._extents[id(value)]

    def _parts(self, value: dict[str, Any]) -> Iterator[Any]:
        for key, item in value.items():
            follows = key in _REFERENCES and isinstance(item, str)
            yield self._target(item) if follows else item

    def _target(self, reference: str) -> Any:
        if reference in {"#", ""}:
            return self._schema
        if reference in self._anchors:
            return self._anchors[reference]
        if not reference.startswith("#/"):
            raise _Unfolds(f"refers to {reference[:80]}, which is not part of it")
        found: Any = self._schema
        for part in unquote(reference[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise _Unfolds(f"refers to {reference[:80]}, which is not part of it")
        return found


def _patterns_in(value: dict[str, Any]) -> int:
    by_name = value.get("patternProperties")
    own = len(by_name) if isinstance(by_name, dict) else 0
    return own + isinstance(value.get("pattern"), str) + isinstance(value.get("format"), str)


def _size(value: Any) -> tuple[int, int]:
    """How many values there are in it, and how many characters of text."""
    count, chars, left = 0, 0, [value]
    while left:
        one = left.pop()
        count += 1
        if isinstance(one, str):
            chars += len(one)
        elif isinstance(one, dict):
            left += one.values()
            chars += sum(map(len, one))
        elif isinstance(one, list):
            left += one
    return count, chars
