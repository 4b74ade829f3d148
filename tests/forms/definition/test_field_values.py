"""Which values each type of field stores, and which ones it refuses."""

import time
from typing import Any

import msgspec
import pytest

from app.domain.forms.definition.fields.files import CONTENT, FileRules
from app.domain.forms.definition.fields.protocol import MissingAnswer
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.domain.forms.submissions.answers import check_answers
from app.kit import content_types
from app.kit.value_checks import WrongValue
from tests.forms.definition.field_builders import build_field, build_form
from tests.forms.definition.fields.registry import BAD, GOOD
from tests.forms.definition.fields.samples import OPTIONS, TABLE

_MEGABYTE = 1024 * 1024
# JSON values that fit a few types or none.
_HOSTILE: dict[str, Any] = {
    "a map": {"$ne": 1},
    "a list of lists": [[["sales"]]],
    "a list of maps": [{"value": "sales"}],
    "a NUL character": "a\0b",
    "a NUL character in a list": ["a\0b"],
    "a lone surrogate": "a\ud800b",
    "a lone surrogate in a list": ["\udfff"],
    "a huge integer": 10**400,
    "a number that is none": float("nan"),
    "an infinite number": float("-inf"),
}
# Each as long as a body may be; in quadratic time, one of them takes minutes.
_LONG: dict[str, Any] = {
    "letters": "x" * _MEGABYTE,
    "digits": "1" * _MEGABYTE,
    "spaces in the middle": "a" + " " * _MEGABYTE + "b",
    "addresses": "a@" * (_MEGABYTE // 2),
    "dots": "." * _MEGABYTE,
    "a web address": "https://" + "a." * (_MEGABYTE // 2),
    "a signature": "data:image/png;base64," + "A" * _MEGABYTE,
    "dates": "2026-01-31" * (_MEGABYTE // 10),
    "wide characters": "🌍" * (_MEGABYTE // 4),
    "a list": ["sales"] * (_MEGABYTE // 8),
    "a list of a long text": ["x" * _MEGABYTE],
}


def test_every_type_and_every_validation_option_has_cases() -> None:
    assert {kind for kind, *_ in BAD} == FIELD_TYPES.keys()
    assert {kind for kind, *_ in GOOD} == {n for n, kind in FIELD_TYPES.items() if kind.has_value}
    options = {
        (name, field.name)
        for name, kind in FIELD_TYPES.items()
        for field in msgspec.structs.fields(kind.rules)
    }
    assert {(kind, key) for kind, rules, _ in [*GOOD, *BAD] for key in rules} == options


def test_a_good_value_is_stored_in_one_form(subtests: pytest.Subtests) -> None:
    for kind, validation, cases in GOOD:
        field = build_field(kind, validation)
        for value, expected in cases:
            with subtests.test(kind, validation=validation, value=str(value)[:60]):
                assert not field.type.is_empty(value)
                stored = field.type.check(field, value)
                assert (stored, type(stored)) == (expected, type(expected))
                assert field.type.check(field, stored) == stored


def test_a_bad_value_is_refused_with_its_reason(subtests: pytest.Subtests) -> None:
    for kind, validation, cases in BAD:
        field = build_field(kind, validation)
        for fragment, values in cases.items():
            for value in values:
                with subtests.test(kind, validation=validation, value=str(value)[:60]):
                    assert not field.type.is_empty(value)
                    with pytest.raises(WrongValue) as refusal:
                        field.type.check(field, value)
                    assert fragment in str(refusal.value)


def test_no_type_stores_a_hostile_value(subtests: pytest.Subtests) -> None:
    for kind in FIELD_TYPES:
        field = build_field(kind)
        for name, value in _HOSTILE.items():
            with subtests.test(kind, value=name), pytest.raises(WrongValue):
                field.type.check(field, value)


def test_a_value_of_another_json_type_is_refused(subtests: pytest.Subtests) -> None:
    accepted: dict[str, set[type]] = {
        "number": {int, float},
        "rating": {int},
        "slider": {int},
        "checkbox": {bool},
        "hidden": {str, int, float, bool},
        "multi_select": {list},
        "checkbox_group": {list},
    }
    values = ["sales", 3, 0.5, True, ["sales"], {"a": 1}]
    for kind in FIELD_TYPES:
        field = build_field(kind)
        for value in values:
            if type(value) in accepted.get(kind, {str}):
                continue
            with subtests.test(kind, value=value), pytest.raises(WrongValue):
                field.type.check(field, value)


def test_a_long_value_is_refused_at_once(subtests: pytest.Subtests) -> None:
    for kind in FIELD_TYPES:
        validation = {"pattern": "(x+x+)+y|(.*a.*)*b"} if kind in {"text", "phone"} else {}
        field = build_field(kind, validation)
        for name, value in _LONG.items():
            with subtests.test(kind, value=name):
                started = time.process_time()
                with pytest.raises(WrongValue):
                    field.type.check(field, value)
                assert time.process_time() - started < 0.1


def test_a_blank_value_is_no_answer(subtests: pytest.Subtests) -> None:
    for value in [None, "", " ", "\t\r\n", "\u3000\u00a0", " " * _MEGABYTE]:
        with subtests.test(value=value):
            for kind, type_ in FIELD_TYPES.items():
                if not type_.has_value:
                    continue
                with subtests.test(kind):
                    field = build_field(kind, required=True).definition
                    optional = msgspec.structs.replace(field, required=False)
                    for definition, problems in (
                        (field, [("answer", "is required")]),
                        (optional, []),
                    ):
                        form = build_form(msgspec.to_builtins(definition))
                        checked = check_answers(form, {"answer": value})
                        assert (checked.values, checked.problems) == ({}, problems)


def test_an_empty_list_is_no_answer_only_where_lists_are(subtests: pytest.Subtests) -> None:
    for kind in FIELD_TYPES:
        with subtests.test(kind):
            is_list = kind in {"multi_select", "checkbox_group"}
            assert FIELD_TYPES[kind].is_empty([]) is is_list


def test_a_required_box_must_be_checked() -> None:
    field = build_field("checkbox", required=True)
    assert field.type.check(field, value=True) is True
    with pytest.raises(MissingAnswer, match="must be checked"):
        field.type.check(field, value=False)


def test_the_options_of_a_data_table_are_left_to_a_lookup(subtests: pytest.Subtests) -> None:
    for kind in ("select", "radio"):
        with subtests.test(kind):
            field = build_field(kind, data_source=TABLE)
            assert field.type.check(field, "any") == "any"
            with pytest.raises(WrongValue, match="at most 200"):
                field.type.check(field, "x" * 201)
    for kind in ("multi_select", "checkbox_group"):
        with subtests.test(kind):
            field = build_field(kind, data_source=TABLE)
            assert field.type.check(field, ["any", "other"]) == ["any", "other"]
            with pytest.raises(WrongValue, match="at most 200"):
                field.type.check(field, ["x" * 201])


def test_a_refusal_lists_no_more_than_twenty_options() -> None:
    options = [{"value": f"v{number}", "label": f"Option {number}"} for number in range(25)]
    field = build_field("select", options=options)
    with pytest.raises(WrongValue, match="Option 19 and 5 more") as refusal:
        field.type.check(field, "x")
    assert "Option 20" not in str(refusal.value)


_TEXT, _PDF = content_types.TEXT, "application/pdf"
_ELF = "application/x-elf"


def test_which_files_a_field_allows(subtests: pytest.Subtests) -> None:
    for allowed_types, filename, mime_type, is_allowed in [
        (None, "a.pdf", _PDF, True),
        (None, "a", content_types.UNKNOWN, True),
        (None, "a.pdf", _ELF, False),
        (None, "a.exe", "application/vnd.microsoft.portable-executable", False),
        (["pdf"], "a.pdf", _PDF, True),
        ([" .PDF "], "a.exe", _PDF, True),
        (["pdf"], "a.pdf", _TEXT, False),
        (["pdf"], "a.pdf", _ELF, False),
        (["pdf"], "a.pdf", content_types.UNKNOWN, False),
        (["jpg"], "a.jpeg", "image/jpeg", True),
        (["csv"], "a.CSV", _TEXT, True),
        (["csv"], "a.txt", _TEXT, False),
        (["csv"], "a.csv.exe", _TEXT, False),
        (["csv"], "a", _TEXT, False),
        (["csv"], "", _TEXT, False),
        # The content is what the ending says, not what another allowed ending says.
        (["pdf", "txt"], "a.pdf", _TEXT, False),
        (["pdf", "txt"], "a.txt", _PDF, True),
        (["xml"], "a.xml", "application/xml", True),
        (["xml"], "a.xml", _TEXT, True),
        (["txt"], "a.txt", "text/html", False),
        (["doc"], "a.doc", "application/x-ole-storage", True),
        (["zip"], "a.zip", next(iter(CONTENT["docx"])), False),
    ]:
        with subtests.test(
            allowed_types=allowed_types,
            filename=filename,
            mime_type=mime_type,
            is_allowed=is_allowed,
        ):
            rules = FileRules(allowed_types=allowed_types)
            assert rules.allows(filename, mime_type) is is_allowed


def test_the_size_of_a_file_is_ten_megabytes_unless_it_is_set() -> None:
    assert FileRules().max_bytes == 10 * 1024 * 1024
    assert FileRules(max_size_mb=0.5).max_bytes == 512 * 1024


def test_options_are_compared_exactly() -> None:
    """A stored value is one of the options, whatever a person typed."""
    field = build_field("select")
    for option in OPTIONS:
        assert field.type.check(field, option["value"]) == option["value"]
        with pytest.raises(WrongValue):
            field.type.check(field, option["label"])
