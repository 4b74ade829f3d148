"""Properties of generated forms, with answers of any kind."""

from contextlib import suppress
from typing import Any

import jsonschema_rs
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.forms.definition.definitions import FormDefinition
from app.domain.forms.submissions.answers import CheckedAnswers, check_answers
from app.domain.forms.submissions.errors import InvalidAnswers
from app.kit.value_checks import WrongValue
from tests.forms.definition.field_builders import build_form
from tests.forms.definition.field_oracle import is_shown
from tests.forms.definition.field_strategies import forms, forms_with_answers
from tests.forms.definition.fields.registry import IS_STORED, VALUES
from tests.forms.definition.fields.strategies import TEXTS
from tests.lengths import rounds

Json = dict[str, Any]

_BOUNDED = settings(
    max_examples=rounds(100, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# One test, as it takes longer to generate the cases than to check them.
@_BOUNDED
@given(forms_with_answers())
def test_answers_of_any_kind_are_stored_as_valid_json_or_reported_or_not_shown(
    case: tuple[list[Json], Json],
) -> None:
    fields, answers = case
    form = build_form(*fields)
    checked = check_answers(form, answers)
    _check_reports(form, answers, checked)
    _check_rules(fields, form, checked)
    _check_storing_again(form, answers, checked)


def _check_reports(form: FormDefinition, answers: Json, checked: CheckedAnswers) -> None:
    """An answer is stored or reported, or its field is not shown."""
    reported = dict(checked.problems)
    assert len(reported) == len(checked.problems)
    assert checked.values.keys() <= checked.visible
    assert not checked.values.keys() & reported.keys()
    for field in form.fields:
        if field.id not in checked.visible:
            assert field.id not in reported
        elif field.type.is_empty(answers.get(field.id)):
            is_missing = field.definition.required
            assert reported.get(field.id) == ("is required" if is_missing else None)
        else:
            assert (field.id in checked.values) != (field.id in reported)
    assert ("unknown" in reported) == ("unknown" in answers)
    InvalidAnswers.of(checked.problems)


def _check_rules(fields: list[Json], form: FormDefinition, checked: CheckedAnswers) -> None:
    """Stored answers obey the rules of their fields."""
    by_id = {field["id"]: field for field in fields}
    for key, value in checked.values.items():
        field = form.by_id[key]
        assert IS_STORED[field.type.name](by_id[key], value), (by_id[key], value)
        schema = field.type.to_json_schema(field)
        jsonschema_rs.validator_for(schema, validate_formats=True).validate(value)
        assert field.type.format(field, value)
    assert checked.visible == {key for key in by_id if is_shown(by_id, key, checked.values)}


def _check_storing_again(form: FormDefinition, answers: Json, checked: CheckedAnswers) -> None:
    """Stored answers are JSON, and are stored again unchanged."""
    stored = msgspec.json.encode(checked.values)
    assert b"\\u0000" not in stored
    again = check_answers(form, msgspec.json.decode(stored))
    assert repr(again.values) == repr(checked.values)
    assert again.visible == checked.visible
    assert {message for _, message in again.problems} <= {"is required"}
    draft = check_answers(form, answers, is_complete=False)
    assert (draft.values, draft.visible) == (checked.values, checked.visible)
    assert set(draft.problems) <= set(checked.problems)


_WORDS = (
    "yes no not 1 2 5. 1,5 one twenty two and or , out of / sales Support 31 January 2026 9:30 pm "
    "2026-01-31 +02:00 UTC a@b.example www.example.com https:// +44 20 7946 0958 ( ) \0 \u00b2"
)
_MESSAGES = st.lists(st.sampled_from(_WORDS.split(" ")), max_size=6).map(" ".join) | TEXTS


@_BOUNDED
@given(forms(), _MESSAGES)
def test_a_message_is_refused_or_stands_for_a_value_that_is_stored(
    fields: list[Json], message: str
) -> None:
    form = build_form(*fields)
    by_id = {field["id"]: field for field in fields}
    for field in form.inputs:
        with suppress(WrongValue):
            value = field.type.parse(field, message)
            assert not field.type.is_empty(value)
            assert field.type.check(field, value) == value
            assert IS_STORED[field.type.name](by_id[field.id], value)


def test_every_type_that_is_answered_has_generated_values_and_rules() -> None:
    assert VALUES.keys() == IS_STORED.keys()
