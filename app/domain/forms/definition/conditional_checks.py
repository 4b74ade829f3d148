"""Checks the conditionals of a form's fields."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from app.kit.errors import Problem

from . import conditions
from .fields.definition import Conditional, Field
from .fields.registry import FIELD_TYPES

MAX_DEPTH: Final = 3
MAX_CONDITIONS: Final = 20
_MAX_OPERAND_CHARS = 1000
_MAX_OPERANDS = 100
_WITHOUT_VALUE = frozenset({"is_empty", "is_not_empty"})
_ORDERED = frozenset({"gt", "lt"})
_EQUALITY = frozenset({"equals", "not_equals"})


def find_problems(fields: Sequence[Field]) -> Iterator[Problem]:
    shapes = [_list_shape_problems(field, f"fields.{n}") for n, field in enumerate(fields)]
    for problems in shapes:
        yield from problems
    well_formed = [field for field, wrong in zip(fields, shapes, strict=True) if not wrong]
    reached = _find_reached(well_formed)
    by_id = {field.id: field for field in fields}
    for number, field in enumerate(fields):
        if field.conditional is None or shapes[number]:
            continue
        for path, single in _list_paths(field.conditional, f"fields.{number}.conditional"):
            other = by_id.get(single.source)
            if other is None or not FIELD_TYPES[other.type].has_value:
                yield f"{path}.field", "must be another field that is answered"
            elif other.id == field.id or field.id in reached.get(other.id, ()):
                yield f"{path}.field", "depends on this field itself"
            else:
                yield from _find_operand_problems(single, other, path)


def _list_shape_problems(field: Field, path: str) -> list[Problem]:
    if field.conditional is None:
        return []
    path = f"{path}.conditional"
    problems = list(_find_shape_problems(field.conditional, path, depth=0))
    if not problems and conditions.count(field) > MAX_CONDITIONS:
        return [(path, f"must have at most {MAX_CONDITIONS} conditions")]
    return problems


def _find_shape_problems(conditional: Conditional, path: str, depth: int) -> Iterator[Problem]:
    groups = [name for name in ("all", "any") if getattr(conditional, name) is not UNSET]
    single = (conditional.field, conditional.operator, conditional.value)
    if not groups:
        for name in ("field", "operator"):
            if getattr(conditional, name) is UNSET:
                yield f"{path}.{name}", "is required"
    elif len(groups) > 1 or any(item is not UNSET for item in single):
        yield path, "must have either field and operator, or all, or any"
    elif not conditional.parts:
        yield f"{path}.{groups[0]}", "must have at least one condition"
    elif depth == MAX_DEPTH:
        yield f"{path}.{groups[0]}", f"must be nested at most {MAX_DEPTH} deep"
    else:
        for number, part in enumerate(conditional.parts):
            yield from _find_shape_problems(part, f"{path}.{groups[0]}.{number}", depth + 1)


def _list_paths(conditional: Conditional, path: str) -> Iterator[tuple[str, Conditional]]:
    """Yields each single condition with its place in the body."""
    if not conditional.parts:
        yield path, conditional
    name = "all" if conditional.all else "any"
    for number, part in enumerate(conditional.parts):
        yield from _list_paths(part, f"{path}.{name}.{number}")


def _find_reached(fields: Sequence[Field]) -> Mapping[str, set[str]]:
    """Returns the fields that each field depends on, also through others."""
    reached = {field.id: set(conditions.list_sources(field)) for field in fields}
    for middle, sources in reached.items():
        for others in reached.values():
            if middle in others:
                others.update(sources)
    return reached


def _find_operand_problems(conditional: Conditional, other: Field, path: str) -> Iterator[Problem]:
    kind, operator, value = FIELD_TYPES[other.type], conditional.operator, conditional.value
    may_be_list = operator == "in" or (operator in _EQUALITY and kind.has_several)
    items = value if isinstance(value, list) and may_be_list else [value]
    if operator in _WITHOUT_VALUE:
        if value is not None:
            yield f"{path}.value", f"{operator} takes no value"
    elif operator in _ORDERED and not kind.is_ordered:
        yield f"{path}.operator", f"{operator} needs a field with a number or a date"
    elif operator == "in" and not isinstance(value, list):
        yield f"{path}.value", "in needs a list of values"
    elif operator == "contains" and not isinstance(value, str):
        yield f"{path}.value", "contains needs a string"
    elif not 1 <= len(items) <= _MAX_OPERANDS:
        yield f"{path}.value", f"must have 1 to {_MAX_OPERANDS} values"
    elif any(isinstance(item, str) and len(item) > _MAX_OPERAND_CHARS for item in items):
        yield f"{path}.value", f"must have at most {_MAX_OPERAND_CHARS:,} characters"
    elif not all(map(kind.is_operand, items)):
        yield f"{path}.value", f"must be a value that a {other.type} stores"
