"""Conditionals: whether a field is shown, given the answers to others."""

from collections.abc import Mapping
from typing import Any

from .fields.definition import Conditional, Field


def list_sources(field: Field) -> list[str]:
    """Returns the ids of the fields whose answers decide whether this one is shown."""
    conditional = field.conditional
    return [] if conditional is None else [item.source for item in conditional.list_single()]


def count(field: Field) -> int:
    return len(list_sources(field))


def is_met(
    conditional: Conditional, answers: Mapping[str, Any], folded: dict[str, str] | None = None
) -> bool:
    """`answers` are stored values of fields that are shown. The conditional was checked by
    `check_fields`. `folded` keeps case-folded answers for the other conditionals of a form.
    """
    if conditional.all:
        return all(is_met(part, answers, folded) for part in conditional.all)
    if conditional.any:
        return any(is_met(part, answers, folded) for part in conditional.any)
    return _is_single_met(conditional, answers, folded)


def _is_single_met(
    conditional: Conditional, answers: Mapping[str, Any], folded: dict[str, str] | None
) -> bool:
    answer, value = answers.get(conditional.source), conditional.value
    match conditional.operator:
        case "equals":
            return _is_equal(answer, value)
        case "not_equals":
            return not _is_equal(answer, value)
        case "contains":
            return _contains(answer, value, conditional.source, {} if folded is None else folded)
        case "gt":
            return _compare(answer, value) > 0
        case "lt":
            return _compare(answer, value) < 0
        case "is_empty":
            return _is_empty(answer)
        case "is_not_empty":
            return not _is_empty(answer)
        case "in":
            if isinstance(answer, list):
                # A list has texts alone.
                return not set(answer).isdisjoint(item for item in value if isinstance(item, str))
            return any(_is_equal(answer, wanted) for wanted in value)
        case _:
            raise ValueError("a condition without an operator")


def _is_empty(answer: Any) -> bool:
    """True for an unchecked box, too: pages may send it or leave it out."""
    return answer is None or answer is False or answer in ("", [])


def _is_equal(answer: Any, value: Any) -> bool:
    """True and 1 differ. An unchecked box and no answer are equal. The order of several options
    does not matter.
    """
    if isinstance(value, bool) or isinstance(answer, bool):
        return (False if answer is None else answer) is value
    if isinstance(answer, list):
        return set(answer) == set(value if isinstance(value, list) else [value])
    return bool(answer == value)


def _contains(answer: Any, value: Any, field_id: str, folded: dict[str, str]) -> bool:
    if isinstance(answer, list):
        return value in answer
    if not isinstance(answer, str):
        return False
    if field_id not in folded:
        folded[field_id] = answer.casefold()
    return value.casefold() in folded[field_id]


def _compare(answer: Any, value: Any) -> int:
    """Returns -1, 0 or 1; 0 for values that have no order. Dates and times are texts in ISO 8601,
    whose order is that of time.
    """
    is_number = all(
        isinstance(item, int | float) and not isinstance(item, bool) for item in (answer, value)
    )
    is_text = isinstance(answer, str) and isinstance(value, str)
    if not is_number and not is_text:
        return 0
    return int(answer > value) - int(answer < value)
