"""Bodies of the largest size that are wrong in many places."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from app.http.bodies import MAX_BYTES
from tests.lengths import IS_LONG, rounds
from tests.matrix.routes import Route

# Some bytes less than the limit of bodies, for what surrounds a value.
_SIZE = MAX_BYTES - 10_000
_DEPTH = 50
_TURNS = rounds(1, 2)


def _maps(size: int) -> list[Any]:
    return [{}] * (size // 3)


def _nested(size: int) -> list[Any]:
    item: Any = {"a": 1}
    for number in range(_DEPTH):
        item = {"a": item} if number % 2 else {"a": [item]}
    return [item] * (size // len(msgspec.json.encode(item)))


def _keys(size: int) -> dict[str, Any]:
    return {f"key{number:06}": number for number in range(size // 19)}


def _maps_by_key(size: int) -> dict[str, Any]:
    return {f"key{number:06}": {"type": "x", "a": [1]} for number in range(size // 37)}


# Many examples have as many fields, so that their values have the same size.
@cache
def _list_shapes(size: int) -> list[msgspec.Raw]:
    shapes = (
        [1] * (size // 2),
        ["x"] * (size // 4),
        _maps(size),
        _nested(size),
        _keys(size),
        _maps_by_key(size),
        "a" * size,
        " " * size,
        "@." * (size // 2),
        "{{" * (size // 2),
    )
    return [msgspec.Raw(msgspec.json.encode(shape)) for shape in shapes]


def list_bodies(route: Route) -> Iterator[tuple[str, bytes]]:
    """Yields bodies with names. In the first ones, each field has a shape that does not fit; in the
    last one, which is valid otherwise, the lists and maps are large.
    """
    example: dict[str, Any] = route.body
    shapes = _list_shapes(_SIZE // len(example))
    for turn in range(_TURNS):
        # Other shapes each time, and on each route.
        first = turn * len(shapes) // _TURNS + len(route.path)
        fields = {
            name: shapes[(first + number) % len(shapes)] for number, name in enumerate(example)
        }
        yield f"wrong fields, from shape {first % len(shapes)}", msgspec.json.encode(fields)
    if IS_LONG:
        yield "unknown keys", msgspec.json.encode(_keys(_SIZE))
    containers = {name: value for name, value in example.items() if isinstance(value, dict | list)}
    if containers:
        size = _SIZE // len(containers)
        large = {name: _enlarge(value, size) for name, value in containers.items()}
        yield "large lists and maps", msgspec.json.encode({**example, **large})


def _enlarge(value: Any, size: int) -> Any:
    if isinstance(value, dict):
        return {**value, **_maps_by_key(size)}
    return value * (size // len(msgspec.json.encode(value)))
