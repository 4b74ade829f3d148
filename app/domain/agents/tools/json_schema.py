"""JSON Schemas that tenants write: validated when they are stored, with a bounded cost in use.

References are never fetched, and patterns run in linear time. Rejected are schemas that refer to
themselves, and schemas that expand to more parts than can be evaluated for the input.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs
import msgspec

from app.kit.errors import Invalid, Problem
from app.kit.texts import is_deeper

from .errors import SchemaRejected

_MAX_BYTES = 65_536
_MAX_DEPTH = 32
_MAX_NODES = 5_000
_MAX_STEPS = 20_000_000
# The library collects all errors before it returns the first: above this cost none are listed.
_MAX_STEPS_WITH_DETAILS = 20_000
# The library holds up all other threads while it matches.
_MAX_PATTERN_NANOSECONDS = 80_000_000
_MAX_PATTERNS = 50
# Of all patterns together, which are compiled one after the other.
_MAX_PATTERN_BYTES = 12 << 20
# `multipleOf` divides numbers of any length, which costs as much as this many nodes.
_MULTIPLE_OF_NODES = 1_000
# The size limits of a compiled pattern in bytes, each with the nanoseconds per character that the
# slowest such pattern takes.
_PATTERN_SIZES = {
    1 << 10: 10,
    1 << 12: 1_250,
    1 << 14: 2_600,
    1 << 16: 15_000,
    1 << 18: 33_000,
    1 << 20: 80_000,
}
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


class _SchemaCost(NamedTuple):
    """The number of nodes and patterns of a schema after every reference is expanded."""

    nodes: int
    patterns: int


class _Validator(NamedTuple):
    """With the size limit of its largest pattern, and the time per character of such a pattern."""

    validator: Any
    pattern_bytes: int
    nanoseconds: int


def validate_schema(name: str, schema: dict[str, Any]) -> None:
    """Raises Invalid for the field `name` when the schema is invalid or too expensive."""
    try:
        # Sorting and searching a megabyte would hold up other requests.
        size = len(msgspec.json.encode(schema))
    except RecursionError:
        size = 0
    if size > _MAX_BYTES:
        raise Invalid.field(name, f"must have at most {_MAX_BYTES} bytes")
    if is_deeper(schema, _MAX_DEPTH):
        raise Invalid.field(name, f"is nested deeper than {_MAX_DEPTH} levels")
    encoded = msgspec.json.encode(schema, order="sorted")
    try:
        cost, _ = _measure_cost(encoded)
        _check_pattern_sizes(cost, _build_validator(encoded))
    except SchemaRejected as error:
        raise Invalid.field(name, str(error)) from None
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = getattr(error, "message", None) or str(error).partition("\n")[0]
        raise Invalid.field(name, f"is not a valid JSON Schema: {reason[:200]}") from None


def _check_pattern_sizes(cost: _SchemaCost, validator: _Validator) -> None:
    if cost.patterns * validator.pattern_bytes > _MAX_PATTERN_BYTES:
        raise SchemaRejected("has too many patterns of this size")


def find_problems(schema: dict[str, Any], value: Any, name: str) -> Iterator[Problem]:
    """Yields the path of each value that does not conform, with a message."""
    encoded = msgspec.json.encode(schema, order="sorted")
    (cost, patterns), (items, _) = _measure_cost(encoded), _measure_value(value)
    validator, _, nanoseconds = _build_validator(encoded)
    steps = cost.nodes * items
    pattern_time = _count_matched(cost, patterns, value) * nanoseconds
    if steps > _MAX_STEPS or pattern_time > _MAX_PATTERN_NANOSECONDS:
        yield name, "is too large to be checked against the schema"
    elif validator.is_valid(value):
        return
    elif steps + pattern_time // 1000 > _MAX_STEPS_WITH_DETAILS:
        yield name, "does not conform to the schema"
    else:
        for error in validator.iter_errors(value):
            path = ".".join(map(str, (name, *error.instance_path)))
            # The validator masks the value: it can be long or secret.
            yield path, getattr(error, "message", "does not conform to the schema")


@lru_cache(maxsize=64)
def _build_validator(encoded: bytes) -> _Validator:
    *smaller, largest = _PATTERN_SIZES
    for size in smaller:
        try:
            return _Validator(_compile(encoded, size), size, _PATTERN_SIZES[size])
        except jsonschema_rs.ValidationError:
            continue
    return _Validator(_compile(encoded, largest), largest, _PATTERN_SIZES[largest])


def _compile(encoded: bytes, pattern_size: int) -> Any:
    return jsonschema_rs.validator_for(
        msgspec.json.decode(encoded),
        offline=True,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=pattern_size),
        mask="it",
    )


@lru_cache(maxsize=512)
def _measure_cost(encoded: bytes) -> tuple[_SchemaCost, dict[str, int]]:
    """Returns the cost of a schema, and the number of patterns of each of its properties."""
    return _CostMeter(msgspec.json.decode(encoded)).measure()


def _count_matched(cost: _SchemaCost, patterns: dict[str, int], value: Any) -> int:
    """Returns how many characters are matched, once for each pattern that may match them."""
    if cost.patterns == 0:
        return 0
    if not isinstance(value, dict) or sum(patterns.values()) < cost.patterns:
        return cost.patterns * _measure_value(value)[1]
    # All patterns are in properties, and so match nothing else.
    return sum(patterns.get(key, 0) * _measure_value(item)[1] for key, item in value.items())


class _CostMeter:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._id_key = "id" if "draft-04" in str(schema.get("$schema")) else "$id"
        self._anchors: dict[str, Any] = {}
        self._costs: dict[int, _SchemaCost] = {}
        self._in_progress: set[int] = set()

    def measure(self) -> tuple[_SchemaCost, dict[str, int]]:
        self._collect_anchors(self._schema)
        cost, properties = self._measure_part(self._schema), self._schema.get("properties")
        parts = properties.items() if isinstance(properties, dict) else ()
        return cost, {key: self._measure_part(part).patterns for key, part in parts}

    def _collect_anchors(self, value: Any) -> None:
        if isinstance(value, dict):
            if value is not self._schema:
                self._add_anchors_of(value)
            for item in value.values():
                self._collect_anchors(item)
        elif isinstance(value, list):
            for item in value:
                self._collect_anchors(item)

    def _add_anchors_of(self, value: dict[str, Any]) -> None:
        schema_id = value.get(self._id_key)
        if isinstance(schema_id, str):
            if not schema_id.startswith("#"):
                # A part with a URI of its own changes the base of every reference in it.
                raise SchemaRejected(f"must have no {self._id_key} in its parts")
            self._add_anchor(schema_id.removeprefix("#"), value)
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(value.get(key), str):
                self._add_anchor(value[key], value)

    def _add_anchor(self, name: str, value: Any) -> None:
        if self._anchors.get(f"#{name}", value) is not value:
            raise SchemaRejected(f"has two parts with the anchor {name[:80]}")
        self._anchors[f"#{name}"] = value

    def _measure_part(self, value: Any) -> _SchemaCost:
        if not isinstance(value, dict | list):
            return _SchemaCost(1, 0)
        if id(value) in self._in_progress:
            raise SchemaRejected("must not refer to itself")
        if id(value) in self._costs:
            return self._costs[id(value)]
        self._in_progress.add(id(value))
        nodes, patterns = 1, 0
        for part in value if isinstance(value, list) else self._expand_parts(value):
            cost = self._measure_part(part)
            nodes, patterns = nodes + cost.nodes, patterns + cost.patterns
        if isinstance(value, dict):
            # The library evaluates all parts again to know which properties were evaluated.
            nodes *= 3 if _UNEVALUATED & value.keys() else 1
            patterns += _count_patterns(value)
            nodes += _MULTIPLE_OF_NODES if "multipleOf" in value else 0
        if patterns > _MAX_PATTERNS:
            raise SchemaRejected(f"has more than {_MAX_PATTERNS} patterns")
        if nodes > _MAX_NODES:
            raise SchemaRejected(f"expands to more than {_MAX_NODES} parts")
        self._in_progress.discard(id(value))
        self._costs[id(value)] = _SchemaCost(nodes, patterns)
        return self._costs[id(value)]

    def _expand_parts(self, value: dict[str, Any]) -> Iterator[Any]:
        for key, item in value.items():
            is_reference = key in _REFERENCES and isinstance(item, str)
            yield self._resolve(item) if is_reference else item

    def _resolve(self, reference: str) -> Any:
        if reference in {"#", ""}:
            return self._schema
        if reference in self._anchors:
            return self._anchors[reference]
        if not reference.startswith("#/"):
            raise SchemaRejected(f"refers to {reference[:80]}, which is not part of it")
        target: Any = self._schema
        for part in unquote(reference[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and key in target:
                target = target[key]
            elif isinstance(target, list) and key.isdigit() and int(key) < len(target):
                target = target[int(key)]
            else:
                raise SchemaRejected(f"refers to {reference[:80]}, which is not part of it")
        return target


def _count_patterns(value: dict[str, Any]) -> int:
    properties = value.get("patternProperties")
    count = len(properties) if isinstance(properties, dict) else 0
    return count + isinstance(value.get("pattern"), str) + isinstance(value.get("format"), str)


def _measure_value(value: Any) -> tuple[int, int]:
    """Returns the number of values in a JSON value and the number of characters of its texts."""
    # Much faster than to go through the values.
    text = msgspec.json.encode(value).decode()
    # Every second part is a text.
    parts = text.replace(r"\\", "_").replace(r"\"", "_").split('"')
    marks = '"'.join(parts[::2])
    not_empty = sum(marks.count(mark) for mark in "[{") - marks.count("[]") - marks.count("{}")
    return 1 + marks.count(",") + not_empty, sum(map(len, parts[1::2]))
