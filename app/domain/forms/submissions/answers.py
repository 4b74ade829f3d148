"""Checks the answers to a form. This is the only way by which answers are stored: submissions of
all kinds, drafts and conversations use it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from app.domain.forms.definition.api import FormDefinition, MissingAnswer, conditions, say
from app.kit.errors import Problem
from app.kit.value_checks import WrongValue

_UNKNOWN = "is not a field of this form"


class CheckedAnswers(msgspec.Struct):
    """Stored values by the ids of fields, and what is wrong. Values of fields that are not shown
    are left out. What only a lookup can tell is not checked yet: options of data tables and files.
    """

    values: dict[str, Any]
    problems: list[Problem]
    visible: set[str]


def check_answers(
    form: FormDefinition, data: Mapping[str, Any], *, is_complete: bool = True
) -> CheckedAnswers:
    """Without `is_complete`, required answers may be missing."""
    problems: dict[str, str] = {}
    values: dict[str, Any] = {}
    visible: set[str] = set()
    folded: dict[str, str] = {}
    for field in form.evaluation_order:
        conditional, value = field.definition.conditional, data.get(field.id)
        # Values of fields that are not shown are not in `values`, so that they count as empty.
        if conditional is not None and not conditions.is_met(conditional, values, folded):
            continue
        visible.add(field.id)
        if field.type.is_empty(value):
            if field.definition.required and is_complete:
                problems[field.id] = say("required")
            continue
        try:
            values[field.id] = field.type.check(field, value)
        except MissingAnswer as error:
            if is_complete:
                problems[field.id] = str(error)
        except WrongValue as error:
            problems[field.id] = str(error)
    unknown = [(key[:200], _UNKNOWN) for key in data if key not in form.by_id]
    in_order = [field.id for field in form.fields]
    return CheckedAnswers(
        {key: values[key] for key in in_order if key in values},
        [(key, problems[key]) for key in in_order if key in problems] + unknown,
        visible,
    )
