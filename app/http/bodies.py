"""Reading request bodies strictly, with every wrong field told at once."""

import re
from functools import lru_cache
from typing import Any

import msgspec
from litestar import Request

from app.http.errors import Invalid

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_JSON = "is not valid JSON"
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


def explain(pattern: str, meaning: str) -> None:
    """What people are told where a text does not match a pattern of some area."""
    _MEANINGS[f"matching regex {pattern!r}"] = meaning


_AT = re.compile(r" - at `\$?(.*)`\Z")


# What a handler takes unless it is made for uploads and says otherwise.
MAX_BYTES = 1024 * 1024


class StrictRequest(Request[Any, Any, Any]):
    """Decodes a JSON body right into the handler's struct: no coercion of wrong types."""

    async def json(self) -> Any:  # the handler's own body type
        field = self.route_handler.parsed_data_field
        return decode(await self.body(), field.annotation if field else Any)


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(body: bytes, kind: Any) -> Any:
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
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {"body": _split(error)[1]}
    try:
        # Only what the struct declares is decoded any further.
        raw = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return {"body": "must be a JSON object"}
    except _UNREADABLE:
        return {"body": _NOT_JSON}
    problems: dict[str, str] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in raw:
            if field.required:
                problems[field.encode_name] = "is required"
            continue
        try:
            msgspec.json.decode(raw[field.encode_name], type=field.type)
        except msgspec.ValidationError as wrong:
            path, message = _split(wrong)
            problems[field.encode_name + path] = message
        except _UNREADABLE:
            problems[field.encode_name] = _NOT_JSON
    return problems or {"body": _split(error)[1]}


def given(data: msgspec.Struct) -> dict[str, Any]:
    """The fields that a partial update names."""
    fields = msgspec.structs.asdict(data)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def converted(kind: Any, value: dict[str, Any], name: str) -> Any:
    """A map within a body as the struct that it must be; every wrong key is named, none shown."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Invalid.fields(_problems_within(kind, value, name, error)) from None


def _problems_within(
    kind: Any, value: dict[str, Any], name: str, error: msgspec.ValidationError
) -> dict[str, str]:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {name: _split(error)[1]}
    found: dict[str, str] = {}
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    if kind.__struct_config__.forbid_unknown_fields:
        for key in value.keys() - fields.keys():
            found[f"{name}.{key}"[:200]] = f"is not known here; there are {', '.join(fields)}"
    for key, field in fields.items():
        if key not in value:
            if field.required:
                found[f"{name}.{key}"] = "is required"
            continue
        try:
            msgspec.convert(value[key], field.type)
        except msgspec.ValidationError as wrong:
            path, message = _split(wrong)
            found[f"{name}.{key}{path}"] = message
    return found or {name: _split(error)[1]}


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
