"""Finds keys of a JSON text that its type does not have: msgspec ignores them, people misspell
them. Maps of any keys stay open.

The types themselves ignore unknown keys, since they also read what a newer release has stored.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from app.kit.errors import Problem
from app.kit.spelling import suggest

_MAX_PATH_CHARS = 200
_JSON_SPACES = b" \t\r\n"
_Fields = dict[str, msgspec.Raw]


def find_unknown(
    kind: Any, raw: bytes | msgspec.Raw, path: str = "", also_known: Collection[str] = ()
) -> Iterator[Problem]:
    """Yields the unknown keys of a JSON text that was decoded as `kind` before. Those in
    `also_known` are known on the first level.
    """
    if not _has_structs(kind) or not _is_container(raw):
        return
    kind = strip_optional(kind)
    origin = get_origin(kind)
    if is_struct(kind):
        yield from _find_in_struct(kind, raw, path, also_known)
    elif origin is list:
        for number, item in enumerate(msgspec.json.decode(raw, type=list[msgspec.Raw])):
            yield from find_unknown(get_args(kind)[0], item, join_path(path, number))
    elif origin is dict:
        for key, item in msgspec.json.decode(raw, type=_Fields).items():
            yield from find_unknown(get_args(kind)[1], item, join_path(path, key))


def _find_in_struct(
    kind: type[msgspec.Struct], raw: bytes | msgspec.Raw, path: str, also_known: Collection[str]
) -> Iterator[Problem]:
    types = field_types(kind)
    for key, value in msgspec.json.decode(raw, type=_Fields).items():
        if key in types:
            if _has_structs(types[key]):
                yield from find_unknown(types[key], value, join_path(path, key))
        elif key not in also_known:
            yield describe_unknown(key, types, path)


def _is_container(raw: bytes | msgspec.Raw) -> bool:
    """False for null, and for a text that a type allows instead of an object."""
    text = raw.lstrip(_JSON_SPACES) if isinstance(raw, bytes) else raw
    return bytes(memoryview(text)[:1]) in {b"{", b"["}


def describe_unknown(key: str, names: Collection[str], path: str) -> Problem:
    return join_path(path, key), f"is not a known field; {suggest(key, names)}"


def join_path(path: str, key: object) -> str:
    return (f"{path}.{key}" if path else str(key))[:_MAX_PATH_CHARS]


def is_struct(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and issubclass(origin, msgspec.Struct)


@lru_cache(maxsize=1024)
def field_types(kind: Any) -> dict[str, Any]:
    """The types of a struct's fields by their names in JSON."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


@lru_cache(maxsize=1024)
def _has_structs(kind: Any) -> bool:
    kind = strip_optional(kind)
    if is_struct(kind):
        return True
    return get_origin(kind) in {list, dict} and _has_structs(get_args(kind)[-1])


@lru_cache(maxsize=1024)
def strip_optional(kind: Any) -> Any:
    """Strips Annotated, Optional and UNSET from a type, and what is no object beside a struct."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        members = [arg for arg in get_args(kind) if arg not in {NoneType, msgspec.UnsetType}]
        if len(members) == 1:
            return strip_optional(members[0])
        structs = [arg for arg in members if is_struct(strip_optional(arg))]
        if len(structs) == 1:
            return strip_optional(structs[0])
    return Any if isinstance(kind, TypeVar) else kind
