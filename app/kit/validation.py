"""Reading request bodies strictly, with every wrong field told at once."""

import re
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from app.kit.errors import Invalid
from app.kit.texts import nests_deeper

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_JSON = "is not valid JSON"
_MOST_SHOWN = 100
_MOST_LEVELS = 600
# Patterns for texts in bodies; people are told what is meant, not the pattern.
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
    """What people are told where a text does not match a pattern of some area."""
    _MEANINGS[f"matching regex {pattern!r}"] = meaning


_AT = re.compile(r" - at `\$?(.*)`\Z")


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(body: bytes, kind: Any) -> Any:
    if nests_deeper(body, _MOST_LEVELS):
        raise Invalid.field("body", "is nested too deeply")
    try:
        value = _decoder(kind).decode(body)
        has_nul = b"\\u0000" in body and _has_nul(msgspec.to_builtins(value))
    except msgspec.ValidationError as error:
        raise Invalid.fields(_problems(body, kind, error)) from None
    except _UNREADABLE:
        raise Invalid.field("body", _NOT_JSON) from None
    if has_nul:
        raise Invalid.field("body", "must not contain NUL characters")
    return value


def _problems(body: bytes, kind: Any, error: msgspec.ValidationError) -> dict[str, str]:
    try:
        value = msgspec.json.decode(body)
    except _UNREADABLE:
        return {"body": _NOT_JSON}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not isinstance(value, dict):
        return {"body": "must be a JSON object"}
    return _wrong(kind, value, "") or {"body": _split(error)[1]}


def set_fields(data: msgspec.Struct) -> dict[str, Any]:
    """The fields that a partial update names."""
    fields = msgspec.structs.asdict(data)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def convert_field(kind: Any, value: dict[str, Any], name: str) -> Any:
    """A map within a body as what it must be; every wrong key is named, no value repeated."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Invalid.fields(_wrong(kind, value, name) or {name: _split(error)[1]}) from None


def _wrong(kind: Any, value: Any, path: str) -> dict[str, str]:
    """What is wrong with a value, by where it is wrong, as deep as one can tell."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        bare = _bare(kind)
        found: dict[str, str] = {}
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct) and isinstance(value, dict):
            found = _wrong_fields(bare, value, path)
        elif get_origin(bare) is dict and isinstance(value, dict):
            keys, items = get_args(bare)
            for key, item in value.items():
                found |= _wrong(keys, key, _at(path, key)) | _wrong(items, item, _at(path, key))
        elif get_origin(bare) is list and isinstance(value, list):
            for index, item in enumerate(value[:_MOST_SHOWN]):
                found |= _wrong(get_args(bare)[0], item, _at(path, index))
        elif get_origin(bare) is Literal:
            found[path or "body"] = f"must be one of {', '.join(map(str, get_args(bare)))}"
        return found or {path or "body": _split(error)[1]}
    except RecursionError:
        return {path or "body": "is nested too deeply"}
    return {}


def _wrong_fields(kind: type[msgspec.Struct], value: dict[str, Any], path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    if kind.__struct_config__.forbid_unknown_fields:
        for key in value.keys() - fields.keys():
            found[_at(path, key)] = f"is not known here; there are {', '.join(fields)}"
    for key, field in fields.items():
        if key in value:
            found |= _wrong(field.type, value[key], _at(path, key))
        elif field.required:
            found[_at(path, key)] = "is required"
    return found


def _at(path: str, key: object) -> str:
    return (f"{path}.{key}" if path else str(key))[:200]


def _bare(kind: Any) -> Any:
    """Without what is said about a type, and without the nothing that may stand in its place."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, UnionType}:
        real = [one for one in get_args(kind) if one not in {NoneType, msgspec.UnsetType}]
        if len(real) == 1:
            return _bare(real[0])
    return kind


def _split(error: msgspec.ValidationError) -> tuple[str, str]:
    text = str(error)
    found = _AT.search(text)
    path = found.group(1).replace("[", ".").replace("]", "") if found else ""
    message = text[: found.start()] if found else text
    meant = (said for known, said in _MEANINGS.items() if message.endswith(known))
    return path, next(meant, message)


def _has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case list():
            return any(map(_has_nul, value))
        case dict():
            return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return False
