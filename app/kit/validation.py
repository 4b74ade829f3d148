"""Decodes request bodies strictly and reports all invalid fields at once."""

import re
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from app.kit.errors import Invalid
from app.kit.texts import nests_deeper

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_JSON = "is not valid JSON"
_MAX_LIST_ITEMS = 100
_MAX_DEPTH = 600
# Patterns for texts in bodies; error messages state the meaning instead of the pattern.
NOT_BLANK = r"\S"
ONE_LINE = r"^(?![\s\S]*\n)[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
WORD = r"^(?![\s\S]*\n)[a-z0-9][a-z0-9_.-]{0,63}$"
VISIBLE = r"^(?![\s\S]*\n)[\x21-\x7e]+$"
_MEANINGS = {
    f"matching regex {WORD!r}": "must be up to 64 small letters, digits, dots, dashes, underscores",
    f"matching regex {VISIBLE!r}": "must be printable ASCII without spaces",
    f"matching regex {NOT_BLANK!r}": "must not be blank",
    f"matching regex {ONE_LINE!r}": "must be one line of text that is not blank",
}


def describe_pattern(pattern: str, meaning: str) -> None:
    """Sets the error message for texts that do not match a pattern."""
    _MEANINGS[f"matching regex {pattern!r}"] = meaning


_PATH = re.compile(r" - at `\$?(.*)`\Z")


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(body: bytes, kind: Any) -> Any:
    if nests_deeper(body, _MAX_DEPTH):
        raise Invalid.field("body", "is nested too deeply")
    try:
        value = _decoder(kind).decode(body)
        has_nul = b"\\u0000" in body and _has_nul(msgspec.to_builtins(value))
    except msgspec.ValidationError as error:
        raise Invalid.fields(_find_body_problems(body, kind, error)) from None
    except _UNREADABLE:
        raise Invalid.field("body", _NOT_JSON) from None
    if has_nul:
        raise Invalid.field("body", "must not contain NUL characters")
    return value


def _find_body_problems(body: bytes, kind: Any, error: msgspec.ValidationError) -> dict[str, str]:
    try:
        value = msgspec.json.decode(body)
    except _UNREADABLE:
        return {"body": _NOT_JSON}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not isinstance(value, dict):
        return {"body": "must be a JSON object"}
    return _find_problems(kind, value, "") or {"body": _split_error(error)[1]}


def set_fields(data: msgspec.Struct) -> dict[str, Any]:
    """Returns the fields that a partial update sets."""
    fields = msgspec.structs.asdict(data)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def convert_field(kind: Any, value: dict[str, Any], name: str) -> Any:
    """Converts a map within a body. Raises Invalid with all invalid keys, without their values."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Invalid.fields(
            _find_problems(kind, value, name) or {name: _split_error(error)[1]}
        ) from None


def _find_problems(kind: Any, value: Any, path: str) -> dict[str, str]:
    """Returns the problems of a value by their path."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        bare = _strip_optional(kind)
        problems: dict[str, str] = {}
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct) and isinstance(value, dict):
            problems = _find_field_problems(bare, value, path)
        elif get_origin(bare) is dict and isinstance(value, dict):
            keys, items = get_args(bare)
            for key, item in value.items():
                problems |= _find_problems(keys, key, _join_path(path, key)) | _find_problems(
                    items, item, _join_path(path, key)
                )
        elif get_origin(bare) is list and isinstance(value, list):
            for index, item in enumerate(value[:_MAX_LIST_ITEMS]):
                problems |= _find_problems(get_args(bare)[0], item, _join_path(path, index))
        elif get_origin(bare) is Literal:
            problems[path or "body"] = f"must be one of {', '.join(map(str, get_args(bare)))}"
        return problems or {path or "body": _split_error(error)[1]}
    except RecursionError:
        return {path or "body": "is nested too deeply"}
    return {}


def _find_field_problems(
    kind: type[msgspec.Struct], value: dict[str, Any], path: str
) -> dict[str, str]:
    problems: dict[str, str] = {}
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    if kind.__struct_config__.forbid_unknown_fields:
        for key in value.keys() - fields.keys():
            problems[_join_path(path, key)] = f"is not known here; there are {', '.join(fields)}"
    for key, field in fields.items():
        if key in value:
            problems |= _find_problems(field.type, value[key], _join_path(path, key))
        elif field.required:
            problems[_join_path(path, key)] = "is required"
    return problems


def _join_path(path: str, key: object) -> str:
    return (f"{path}.{key}" if path else str(key))[:200]


def _strip_optional(kind: Any) -> Any:
    """Strips Annotated, Optional and UNSET from a type."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        members = [arg for arg in get_args(kind) if arg not in {NoneType, msgspec.UnsetType}]
        if len(members) == 1:
            return _strip_optional(members[0])
    return kind


def _split_error(error: msgspec.ValidationError) -> tuple[str, str]:
    text = str(error)
    match = _PATH.search(text)
    path = match.group(1).replace("[", ".").replace("]", "") if match else ""
    message = text[: match.start()] if match else text
    meanings = (meaning for suffix, meaning in _MEANINGS.items() if message.endswith(suffix))
    return path, next(meanings, message)


def _has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case list():
            return any(map(_has_nul, value))
        case dict():
            return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return False
