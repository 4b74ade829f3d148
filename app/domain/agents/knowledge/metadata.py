"""What documents say about themselves: tags, language, groups, validity, and fields of the
tenant's own.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from app.domain.agents.definition.api import trim_labels
from app.kit import validation
from app.kit.errors import Invalid, Problem

from .schemas import DocumentChange

_LABEL = re.compile(validation.ONE_LINE)
_MOMENTS = ("valid_from", "valid_until")


def list_columns(change: DocumentChange) -> dict[str, Any]:
    """Returns the columns that a change sets, as they are stored. Raises Invalid."""
    columns = validation.set_fields(change)
    for name in ("tags", "groups"):
        if name in columns:
            columns[name] = trim_labels(columns[name])
    for name in _MOMENTS:
        if columns.get(name) is not None:
            columns[name] = _to_utc(name, columns[name])
    Invalid.check(_list_problems(columns))
    if "language" in columns:
        columns["chosen_language"] = columns.pop("language")
    if "fields" in columns:
        columns["fields"] = columns["fields"] or None
    return columns


def _to_utc(name: str, moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise Invalid.field(name, "is too far away") from None


def _list_problems(columns: dict[str, Any]) -> Iterator[Problem]:
    for name in ("tags", "groups", "fields"):
        for label in columns.get(name, ()):
            if not _LABEL.match(label):
                yield name, "must have names of one line that are not blank"
                break
    start, end = (columns.get(name) for name in _MOMENTS)
    if start is not None and end is not None and end <= start:
        yield "valid_until", "must be after valid_from"


# Forms


def read_form(form: msgspec.Struct) -> DocumentChange:
    """Returns what the texts of a form set: a missing one nothing, an empty one the empty value.
    Raises Invalid.
    """
    values: dict[str, Any] = {}
    for name, value in msgspec.structs.asdict(form).items():
        if value is not None and name in DocumentChange.__struct_fields__:
            values[name] = _read_value(name, value)
    change: DocumentChange = validation.convert_field(DocumentChange, values, "")
    return change


def _read_value(name: str, value: Any) -> Any:
    match name:
        case "tags" | "groups":
            return [label for label in value if label]
        case "language":
            return value or None
        case "valid_from" | "valid_until":
            return validation.parse_time_field(name, value) if value else None
        case "fields":
            return _decode_object(name, value) if value else {}
    return value


def _decode_object(name: str, text: str) -> Any:
    try:
        values: dict[str, Any] = validation.decode(text.encode(), dict[str, Any])
    except Invalid:
        raise Invalid.field(name, "must be a JSON object") from None
    return values
