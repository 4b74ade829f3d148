"""Says in plain words what msgspec finds wrong with a value, as the end of a sentence about it."""

import re
from collections.abc import Callable
from typing import Final

_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a date and time in ISO 8601",
    "date": "a date in ISO 8601",
    "bytes": "a string in Base64",
}
_UNITS = {"str": "character", "array": "item", "object": "key", "bytes": "byte"}
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
# The messages have at most this many characters where they do not repeat the value.
_MAX_CHARS = 500


def describe(message: str) -> str:
    """`message` is that of a `msgspec.ValidationError`, without its path."""
    for pattern, build in _MESSAGES:
        match = pattern.match(message[:_MAX_CHARS])
        if match is not None:
            return build(match)
    return "is not valid"


def _describe_type(match: re.Match[str]) -> str:
    kinds = [_TYPES.get(kind.strip(), kind.strip()) for kind in match[1].split("|")]
    return f"must be {' or '.join(kinds)}"


def _describe_length(match: re.Match[str]) -> str:
    kind, sign, number = match[1].split("|")[0].strip(), match[2], match[3]
    if (sign, number) == (">=", "1"):
        return "must not be empty"
    unit = _UNITS.get(kind, "item")
    return f"must have {_BOUNDS[sign]} {_format(number)} {unit}{'' if number == '1' else 's'}"


def _format(number: str) -> str:
    number = number.removesuffix(".0")
    return f"{int(number):,}" if number.lstrip("-").isdigit() else number


_MESSAGES: Final[list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]] = [
    (re.compile(r"Expected `([^`]+)` of length (<=|>=) (\d+)"), _describe_length),
    (
        re.compile(r"Expected `[^`]+` (<=|>=|<|>) (\S+)"),
        lambda match: f"must be {_BOUNDS[match[1]]} {_format(match[2])}",
    ),
    (
        re.compile(r"Expected `[^`]+` that's a multiple of (\S+)"),
        lambda match: f"must be a multiple of {match[1]}",
    ),
    (
        re.compile(r"Expected `[^`]+` matching regex (.+)"),
        lambda match: f"must match the pattern {match[1]}",
    ),
    (re.compile(r"Expected `[^`]+` with (a|no) timezone"), lambda _: "must name a time zone"),
    (re.compile(r"Expected `([^`]+)`"), _describe_type),
    (re.compile(r"Object missing required field `([^`]+)`"), lambda match: f"needs {match[1]}"),
    (re.compile(r"Object contains unknown field"), lambda _: "has a field that is not known here"),
    (re.compile(r"Invalid enum value"), lambda _: "has a value that is not allowed"),
    (re.compile(r"Invalid value"), lambda _: "has a value that is not allowed"),
    (re.compile(r"Invalid RFC3339"), lambda _: "must be a date and time in ISO 8601"),
    (re.compile(r"Invalid base64"), lambda _: f"must be {_TYPES['bytes']}"),
    (re.compile(r"(Integer|Number) .*out of range"), lambda _: "is too large a number"),
]
