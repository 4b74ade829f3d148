"""Converts answers to the values of a data table's row."""

import math
from collections.abc import Mapping
from typing import Any

from app.domain.data.tables.api import Column, Table
from app.domain.forms.definition.api import FormDefinition, InputField


def build(
    table: Table, form: FormDefinition, mapping: Mapping[str, str], answers: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns values by the names of columns. Answers that are missing are left out, and so is a
    field that this version does not have.
    """
    values: dict[str, Any] = {}
    for field_id, name in mapping.items():
        field, value = form.by_id.get(field_id), answers.get(field_id)
        if field is not None and value is not None:
            column = table.find_column(name)
            values[name] = value if column is None else _convert(column, field, value)
    return values


def _convert(column: Column, field: InputField[Any], value: Any) -> Any:
    """A text takes any answer; a number or a date takes a text that is one. The table refuses what
    does not fit.
    """
    if column.holds_text and not isinstance(value, str):
        return field.type.format(field, value)
    if column.holds_number and isinstance(value, str):
        return _read_number(value)
    return value


def _read_number(text: str) -> Any:
    """Returns the text itself when it is no number."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return int(number) if number.is_integer() else number
