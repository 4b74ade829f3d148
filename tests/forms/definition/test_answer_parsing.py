"""Values in messages of people, and values as people and models read them."""

import time
from contextlib import suppress
from typing import Any

import jsonschema_rs
import pytest

from app.domain.forms.definition.fields.protocol import join_words
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.kit.value_checks import WrongValue
from tests.forms.definition.field_builders import build_field
from tests.forms.definition.fields.protocol import REFUSED
from tests.forms.definition.fields.registry import GOOD, MESSAGES
from tests.forms.definition.fields.samples import OPTIONS, SIGNATURE, TABLE


def test_a_message_stands_for_one_value_or_is_refused(subtests: pytest.Subtests) -> None:
    assert {kind for kind, *_ in MESSAGES} == FIELD_TYPES.keys()
    for kind, validation, messages in MESSAGES:
        field = build_field(kind, validation)
        for message, expected in messages.items():
            with subtests.test(kind, message=message[:60]):
                if expected is REFUSED:
                    with pytest.raises(WrongValue):
                        field.type.parse(field, message)
                else:
                    value = field.type.parse(field, message)
                    assert (value, type(value)) == (expected, type(expected))


def test_a_required_box_is_not_confirmed_by_a_no() -> None:
    field = build_field("checkbox", required=True)
    assert field.type.parse(field, "yes") is True
    with pytest.raises(WrongValue, match="must be checked"):
        field.type.parse(field, "no")


def test_options_by_their_names(subtests: pytest.Subtests) -> None:
    for options, message, expected in [
        # Numbers that are options are not numbers of options.
        ([("10", "10"), ("20", "20")], "2", None),
        ([("a", "1 to 9"), ("b", "10 or more")], "2", None),
        ([("10", "10"), ("2", "2")], "2", "2"),
        ([("1", "One"), ("5", "Five")], "5", "5"),
        # People see the labels.
        ([("a", "b"), ("b", "a")], "a", "b"),
        ([("x", "Yes!"), ("y", "No.")], "Yes!", "x"),
        ([("x", "Yes!"), ("y", "No.")], "no", "y"),
        ([("x", "A"), ("y", "a")], "a", "y"),
        ([("x", "!!!"), ("y", "???")], "...", None),
        ([("x", "!!!"), ("y", "???")], "???", "y"),
        ([("x", "Not sure"), ("y", "Sure")], "I am not sure", "x"),
        ([("x", "Support"), ("y", "Support Plus")], "I want support plus, please", "y"),
        ([("x", "C++"), ("y", "C")], "c++", "x"),
        ([("x", "(.*)"), ("y", "[a]")], "(.*)", "x"),
        ([("x", "Stra\u00dfe"), ("y", "Weg")], "die STRASSE bitte", "x"),
    ]:
        with subtests.test(options=options, message=message, expected=expected):
            items = [{"value": value, "label": label} for value, label in options]
            field = build_field("select", options=items)
            if expected is None:
                with pytest.raises(WrongValue, match="one of the options"):
                    field.type.parse(field, message)
            else:
                assert field.type.parse(field, message) == expected


def test_both_stands_for_two_options() -> None:
    field = build_field("multi_select", options=OPTIONS[:2])
    assert field.type.parse(field, "Both.") == ["sales", "support"]


def test_a_message_about_a_data_table_is_left_to_a_lookup() -> None:
    field = build_field("select", data_source=TABLE)
    assert field.type.parse(field, " Berlin ") == "Berlin"
    field = build_field("multi_select", data_source=TABLE)
    assert field.type.parse(field, "Berlin, Paris and Rome") == ["Berlin", "Paris", "Rome"]


def test_a_message_without_a_value_is_refused(subtests: pytest.Subtests) -> None:
    for kind in FIELD_TYPES:
        field = build_field(kind)
        for message in ("", " \n\t", "\0", "\ud800"):
            with subtests.test(kind, message=ascii(message)), pytest.raises(WrongValue):
                field.type.parse(field, message)


def test_a_hostile_message_takes_no_time(subtests: pytest.Subtests) -> None:
    options = [{"value": f"v{n}", "label": f"Option number {n}"} for n in range(500)]
    pieces = ("1", "a@", "https://a.", "(", "1 of ", "Option number 1 and ", "31 May ", "no ", "# ")
    for kind, type_ in FIELD_TYPES.items():
        field = build_field(kind, options=options) if type_.has_options else build_field(kind)
        for piece in pieces:
            for length in (2000, 1024 * 1024):
                with subtests.test(kind, piece=piece, length=length):
                    message = (piece * length)[:length]
                    started = time.process_time()
                    with suppress(WrongValue):
                        value = field.type.parse(field, message)
                        assert field.type.check(field, value) == value
                    assert time.process_time() - started < 0.1


def test_a_stored_value_is_read_back_from_what_people_read(subtests: pytest.Subtests) -> None:
    for kind, validation, cases in GOOD:
        if kind in {"signature", "hidden", "text", "textarea"}:
            continue
        field = build_field(kind, validation)
        for _, stored in cases:
            with subtests.test(kind, stored=stored):
                assert field.type.parse(field, field.type.format(field, stored)) == stored


def test_a_stored_value_as_people_read_it(subtests: pytest.Subtests) -> None:
    for kind, stored, expected in [
        ("text", "<b>", "<b>"),
        ("number", 3, "3"),
        ("number", 0.5, "0.5"),
        ("slider", 50, "50"),
        ("rating", 4, "4"),
        ("select", "rd", "Research and Development"),
        ("select", "gone", "gone"),
        ("multi_select", ["rd", "sales"], "Research and Development, Sales"),
        ("checkbox", True, "yes"),
        ("checkbox", False, "no"),
        ("date", "2026-01-31", "2026-01-31"),
        ("datetime", "2026-01-31T00:00:00Z", "2026-01-31 00:00 UTC"),
        ("datetime", "2026-01-31T09:30:05Z", "2026-01-31 09:30:05 UTC"),
        ("file", "fil_a", "fil_a"),
        ("hidden", True, "true"),
        ("hidden", 0.5, "0.5"),
        ("signature", SIGNATURE, "signed"),
    ]:
        with subtests.test(kind=kind, stored=stored, expected=expected):
            field = build_field(kind)
            assert field.type.format(field, stored) == expected


# Type, validation options, and the end of "Please enter …".
_DESCRIPTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("text", {}, "some text"),
    ("text", {"min_length": 3}, "text of at least 3 characters"),
    ("text", {"max_length": 5000}, "text of at most 5,000 characters"),
    ("text", {"min_length": 3, "max_length": 5}, "text of 3 to 5 characters"),
    ("textarea", {}, "some text, on one or more lines"),
    ("email", {}, "an e-mail address, like name@example.com"),
    ("phone", {}, "a phone number, like +44 20 7946 0958"),
    ("url", {}, "a web address, like https://example.com"),
    ("number", {}, "a number"),
    ("number", {"min": 1}, "a number of at least 1"),
    ("number", {"max": 1.5, "step": 0.5}, "a number of at most 1.5, in steps of 0.5"),
    ("slider", {}, "a number from 0 to 100"),
    ("rating", {"max": 3}, "a whole number from 1 to 3"),
    ("checkbox", {}, "yes or no"),
    ("multi_select", {}, "one or more of"),
    ("multi_select", {"max_selections": 2}, "1 to 2 of"),
    ("multi_select", {"max_selections": 1}, "one of"),
    ("multi_select", {"min_selections": 2}, "at least 2 of"),
    ("multi_select", {"min_selections": 2, "max_selections": 2}, "2 of"),
    ("date", {}, "a date, like 2026-01-31"),
    ("date", {"min_date": "2026-01-01"}, "a date from 2026-01-01 on, like 2026-01-31"),
    ("date", {"max_date": "2026-01-01"}, "a date until 2026-01-01, like 2026-01-31"),
    ("datetime", {}, "a date and a time, like 2026-01-31 09:30"),
    ("file", {}, "a file of at most 10 MB"),
    ("file", {"allowed_types": [".PDF", "txt"]}, "a file of at most 10 MB (pdf or txt)"),
    ("signature", {}, "your signature"),
    ("hidden", {}, "a text, a number, true or false"),
    ("section", {}, "nothing"),
]


def test_a_field_says_what_it_expects(subtests: pytest.Subtests) -> None:
    labels = "Sales, Support, Research and Development or Technical Support"
    for kind, validation, expected in _DESCRIPTIONS:
        with subtests.test(kind, validation=validation):
            field = build_field(kind, validation)
            text = f"{expected} {labels}" if field.type.has_several else expected
            assert field.type.describe(field) == text
    field = build_field("radio")
    assert field.type.describe(field) == f"one of {labels}"
    field = build_field("select", data_source=TABLE)
    assert field.type.describe(field) == "one of the options"
    field = build_field("checkbox", required=True)
    assert field.type.describe(field) == "yes to confirm"


def test_words_are_joined_with_or() -> None:
    assert [join_words(list(text)) for text in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a or b",
        "a, b or c",
    ]


def test_every_stored_value_meets_the_json_schema_of_its_field(subtests: pytest.Subtests) -> None:
    for kind, validation, cases in GOOD:
        with subtests.test(kind, validation=validation):
            field = build_field(kind, validation)
            schema = field.type.to_json_schema(field)
            jsonschema_rs.meta.validate(schema)
            validator = jsonschema_rs.validator_for(schema, validate_formats=True)
            for _, stored in cases:
                validator.validate(stored)
            assert not validator.is_valid({"a": 1})
            assert not validator.is_valid(None)


def test_the_json_schema_has_the_rules(subtests: pytest.Subtests) -> None:
    for kind, validation, value in [
        ("text", {"min_length": 2}, "a"),
        ("text", {"max_length": 2}, "abc"),
        ("text", {}, ""),
        ("number", {"min": 2}, 1),
        ("number", {"max": 2}, 3),
        ("slider", {}, 101),
        ("rating", {"max": 3}, 4),
        ("rating", {}, 1.5),
        ("select", {}, "other"),
        ("multi_select", {}, ["other"]),
        ("multi_select", {"min_selections": 2}, ["sales"]),
        ("multi_select", {"max_selections": 1}, ["sales", "rd"]),
        ("checkbox", {}, "true"),
        ("date", {}, "31 January 2026"),
        ("datetime", {}, "2026-01-31"),
    ]:
        with subtests.test(kind=kind, validation=validation, value=value):
            field = build_field(kind, validation)
            schema = field.type.to_json_schema(field)
            assert not jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)


def test_the_schema_of_a_field_that_is_not_answered_has_no_value() -> None:
    for kind in ("section", "paragraph"):
        field = build_field(kind)
        assert field.type.to_json_schema(field) == {"type": "null"}
