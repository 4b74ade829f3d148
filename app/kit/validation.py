"""Decodes request bodies strictly and reports all invalid fields at once."""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from app.kit import wording
from app.kit.errors import Invalid, Problem
from app.kit.texts import has_nul, is_deeper, nests_deeper
from app.kit.unknown_fields import (
    describe_unknown,
    find_unknown,
    is_struct,
    join_path,
    strip_optional,
)
from app.kit.value_checks import WrongValue, parse_time

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NOT_JSON = "is not valid JSON"
# The number of values that are searched for problems.
_MAX_VALUES = 10_000
_MAX_DEPTH = 600
_TOO_DEEP = "is nested too deeply"
_JSON_SPACES = b" \t\r\n"
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


@lru_cache(maxsize=1024)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(
    body: bytes, kind: Any, *, is_open: bool = False, also_known: Collection[str] = ()
) -> Any:
    """Refuses keys that the type does not have, unless the body `is_open`; those in `also_known`
    are ignored.
    """
    if nests_deeper(body, _MAX_DEPTH):
        raise Invalid.field("body", "is nested too deeply")
    try:
        value = _decoder(kind).decode(body)
        contains_nul = b"\\u0000" in body and has_nul(msgspec.to_builtins(value))
    except msgspec.ValidationError as error:
        search = _Search(is_open=is_open, also_known=also_known)
        raise _build_body_error(body, kind, error, search) from None
    except _UNREADABLE:
        raise Invalid.field("body", _NOT_JSON) from None
    if contains_nul:
        raise Invalid.field("body", "must not contain NUL characters")
    if not is_open:
        Invalid.check(find_unknown(kind, body, "", also_known))
    return value


def _build_body_error(
    body: bytes, kind: Any, error: msgspec.ValidationError, search: "_Search"
) -> Invalid:
    try:
        if not is_struct(kind):
            return Invalid.fields(search.run(kind, msgspec.json.decode(body), "", error))
        if not body.lstrip(_JSON_SPACES).startswith(b"{"):
            return Invalid.field("body", "must be a JSON object")
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        return Invalid.fields(search.run_raw(kind, fields, error))
    except _UNREADABLE:
        return Invalid.field("body", _NOT_JSON)


def set_fields(data: msgspec.Struct) -> dict[str, Any]:
    """Returns the fields that a partial update sets."""
    fields = msgspec.structs.asdict(data)
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def convert_field(kind: Any, value: dict[str, Any], name: str, *, is_open: bool = False) -> Any:
    """Converts a map within a body. Raises Invalid with all invalid keys, without their values.
    Keys that the type does not have are refused, unless the map `is_open`.
    """
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        search = _Search(is_open=is_open)
        raise Invalid.fields(search.run(kind, value, name, error)) from None
    if not is_open:
        Invalid.check(find_unknown(kind, msgspec.json.encode(value), name))
    return converted


def check_size(name: str, value: Any, max_levels: int, max_bytes: int) -> None:
    """Raises Invalid for a value that is too large as JSON."""
    # The size first: of a large value, it takes a tenth of the time.
    try:
        size = len(msgspec.json.encode(value))
    except RecursionError:
        raise Invalid.field(name, _TOO_DEEP) from None
    if size > max_bytes:
        raise Invalid.field(name, f"must be at most {max_bytes // 1024} KiB")
    if is_deeper(value, max_levels):
        raise Invalid.field(name, _TOO_DEEP)


def parse_time_field(name: str, text: str) -> datetime:
    """Parses a date, or a date and time; in UTC unless it names a zone. Raises Invalid."""
    try:
        return parse_time(text)
    except WrongValue:
        raise Invalid.field(name, "must be an ISO 8601 date or date and time") from None


_Find = Callable[[Any, Any, str], Iterator[Problem]]


class _Search:
    """Searches a value for problems, each a path and a message. It looks at a limited number of
    values, and at none after its iterator is no longer read.
    """

    def __init__(self, *, is_open: bool = False, also_known: Collection[str] = ()) -> None:
        self._remaining = _MAX_VALUES
        self._is_open = is_open
        self._also_known = also_known

    def run(
        self, kind: Any, value: Any, name: str, error: msgspec.ValidationError
    ) -> Iterator[Problem]:
        """Yields the problem of `error` when the search finds none."""
        yield from _or_error(self._find(kind, value, name), name, error)
        if self._remaining <= 0:
            yield name or "body", "has too many values to check them all"

    def run_raw(
        self,
        kind: type[msgspec.Struct],
        fields: dict[str, msgspec.Raw],
        error: msgspec.ValidationError,
    ) -> Iterator[Problem]:
        """Like `run`, for fields that are not decoded: a large one of a wrong type never is."""
        yield from _or_error(self._find_in_fields(kind, fields, "", self._find_raw), "", error)
        if self._remaining <= 0:
            yield "body", "has too many values to check them all"

    def _find_raw(self, kind: Any, raw: msgspec.Raw, path: str) -> Iterator[Problem]:
        self._remaining -= 1
        try:
            msgspec.json.decode(raw, type=kind)
        except msgspec.ValidationError as error:
            inner = strip_optional(kind)
            is_map = is_struct(inner) and bytes(raw)[:1] == b"{"
            value = msgspec.json.decode(raw) if is_map or _is_inside(error) else None
            yield from _or_error(self._find_inside(inner, value, path, error), path, error)
        except RecursionError:
            yield path, "is nested too deeply"

    def _find(self, kind: Any, value: Any, path: str) -> Iterator[Problem]:
        self._remaining -= 1
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            problems = self._find_inside(strip_optional(kind), value, path, error)
            yield from _or_error(problems, path, error)
        except RecursionError:
            yield path or "body", "is nested too deeply"

    def _find_inside(
        self, kind: Any, value: Any, path: str, error: msgspec.ValidationError
    ) -> Iterator[Problem]:
        if is_struct(kind) and isinstance(value, dict):
            yield from self._find_in_fields(kind, value, path, self._find)
        elif get_origin(kind) is Literal:
            yield path or "body", f"must be one of {', '.join(map(str, get_args(kind)))}"
        elif not _is_inside(error):
            # A list or map that is wrong itself, like one that is too long.
            return
        elif get_origin(kind) is dict and isinstance(value, dict):
            keys, items = get_args(kind)
            for key, item in self._take(value.items()):
                yield from self._find(keys, key, join_path(path, key))
                yield from self._find(items, item, join_path(path, key))
        elif get_origin(kind) is list and isinstance(value, list):
            for index, item in self._take(enumerate(value)):
                yield from self._find(get_args(kind)[0], item, join_path(path, index))

    def _take(self, items: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yields items until the search has looked at its number of values."""
        for item in items:
            if self._remaining <= 0:
                return
            yield item

    def _find_in_fields(
        self, kind: type[msgspec.Struct], value: dict[str, Any], path: str, find: _Find
    ) -> Iterator[Problem]:
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        if not self._is_open:
            for key in value:
                if key not in fields and (path or key not in self._also_known):
                    yield describe_unknown(key, fields, path)
        for key, field in fields.items():
            if key in value:
                yield from find(field.type, value[key], join_path(path, key))
            elif field.required:
                yield join_path(path, key), "is required"


def _or_error(
    problems: Iterator[Problem], path: str, error: msgspec.ValidationError
) -> Iterator[Problem]:
    """Yields the problems, or the one of `error` when there are none."""
    yield next(problems, None) or (path or "body", _read_message(error))
    yield from problems


def _split_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """Returns the message and the path that follows it, empty for the value itself.

    The message may repeat a text of the caller, of any length and content; the path does not. So
    the last separator is the right one, and it is found in linear time.
    """
    text = str(error)
    message, separator, path = text.rpartition(" - at `")
    return (message, path) if separator and path.endswith("`") else (text, "")


def _is_inside(error: msgspec.ValidationError) -> bool:
    """True when the error is about a value inside of the one that was converted."""
    return bool(_split_error(error)[1])


def _read_message(error: msgspec.ValidationError) -> str:
    return describe(_split_error(error)[0])


def describe(message: str) -> str:
    """Returns a message of msgspec, without its path, in plain words."""
    meanings = (meaning for suffix, meaning in _MEANINGS.items() if message.endswith(suffix))
    return next(meanings, None) or wording.describe(message)
