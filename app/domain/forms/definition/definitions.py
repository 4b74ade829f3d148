"""The fields of one version of a form: checks their definitions, and prepares them for answers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import msgspec

from app.kit import validation
from app.kit.errors import Invalid, Problem

from . import conditional_checks, conditions
from .fields.definition import Field
from .fields.options import OptionIndex
from .fields.protocol import InputField
from .fields.registry import FIELD_TYPES

MAX_FIELDS: Final = 200
_MAX_BYTES: Final = 256 * 1024
# Each is a list of up to 1,000 options that a message may name.
MAX_DATA_SOURCES: Final = 20
# How long the patterns of a form take for the longest texts: a quarter of a second.
_MAX_STEPS = 20_000_000
# Answers to forms beyond these are checked in a thread.
_SMALL_FIELDS: Final = 50
_SMALL_OPTIONS: Final = 500
_SMALL_CONDITIONS: Final = 50


class FormDefinition:
    """The fields in their order. The order of evaluation has each field after those that its
    conditional names.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        """The definitions were checked by `check_fields`."""
        # Fields whose options come from the same rows have the same list.
        indexes = {id(field.options): OptionIndex(field.options) for field in fields}
        self.fields = [_prepare(field, indexes[id(field.options)]) for field in fields]

    @cached_property
    def by_id(self) -> dict[str, InputField[Any]]:
        return {field.id: field for field in self.fields}

    @cached_property
    def inputs(self) -> list[InputField[Any]]:
        """Those that are answered."""
        return [field for field in self.fields if field.type.has_value]

    @cached_property
    def is_large(self) -> bool:
        """True when it may take long to check the answers."""
        return (
            len(self.fields) > _SMALL_FIELDS
            or sum(len(field.definition.options) for field in self.fields) > _SMALL_OPTIONS
            or sum(conditions.count(field.definition) for field in self.fields) > _SMALL_CONDITIONS
            or has_patterns(field.definition for field in self.fields)
        )

    @cached_property
    def evaluation_order(self) -> list[InputField[Any]]:
        ordered: dict[str, InputField[Any]] = {}

        def add(field: InputField[Any]) -> None:
            if field.id not in ordered:
                for field_id in conditions.list_sources(field.definition):
                    add(self.by_id[field_id])
                ordered[field.id] = field

        for field in self.fields:
            add(field)
        return list(ordered.values())


def _prepare(field: Field, options: OptionIndex) -> InputField[Any]:
    kind = FIELD_TYPES[field.type]
    return InputField(field, kind, msgspec.convert(field.validation, kind.rules), options)


# Checking


def has_patterns(fields: Iterable[Field]) -> bool:
    return any(field.validation.get("pattern") is not None for field in fields)


def check_fields(fields: Sequence[Field]) -> None:
    """Raises Invalid."""
    Invalid.check(_find_problems(fields))


def _find_problems(fields: Sequence[Field]) -> Iterator[Problem]:
    if not fields:
        yield "fields", "must have at least one field"
    if len(fields) > MAX_FIELDS:
        yield "fields", f"must have at most {MAX_FIELDS} fields"
        return
    seen: set[str] = set()
    for number, field in enumerate(fields):
        path = f"fields.{number}"
        if field.id in seen:
            yield f"{path}.id", f"there are two fields {field.id}"
        seen.add(field.id)
        yield from _find_field_problems(field, path)
    yield from _find_cost_problems(fields)
    if len({field.data_source for field in fields} - {None}) > MAX_DATA_SOURCES:
        yield "fields", f"must have at most {MAX_DATA_SOURCES} different data sources"
    if not any(FIELD_TYPES[field.type].has_value for field in fields):
        yield "fields", "must have at least one field that is answered"
    yield from conditional_checks.find_problems(fields)
    if len(msgspec.json.encode(fields)) > _MAX_BYTES:
        yield "fields", f"must be at most {_MAX_BYTES // 1024} KiB as JSON"


def _find_field_problems(field: Field, path: str) -> Iterator[Problem]:
    kind = FIELD_TYPES[field.type]
    try:
        rules = validation.convert_field(kind.rules, field.validation, f"{path}.validation")
    except Invalid as error:
        yield from (error.details or {}).items()
    else:
        for name, message in kind.find_problems(rules, field.options):
            yield f"{path}.validation.{name}", message
    if field.required and not kind.has_value:
        yield f"{path}.required", f"a {field.type} is not answered"
    yield from _find_option_problems(field, path)


def _find_cost_problems(fields: Sequence[Field]) -> Iterator[Problem]:
    steps = 0
    for field in fields:
        # Other problems of the validation options are reported elsewhere.
        with suppress(msgspec.ValidationError, ValueError):
            kind = FIELD_TYPES[field.type]
            steps += kind.estimate_steps(msgspec.convert(field.validation, kind.rules))
    if steps > _MAX_STEPS:
        yield "fields", "has patterns that take too long for such long texts: lower max_length"


def _find_option_problems(field: Field, path: str) -> Iterator[Problem]:
    has_options = FIELD_TYPES[field.type].has_options
    if not has_options and field.options:
        yield f"{path}.options", f"a {field.type} has no options"
    if not has_options and field.data_source is not None:
        yield f"{path}.data_source", f"a {field.type} has no options"
    if has_options and bool(field.options) == (field.data_source is not None):
        yield f"{path}.options", "needs either options or data_source"
    values = [option.value for option in field.options]
    if len(set(values)) < len(values):
        yield f"{path}.options", "must have each value once"
