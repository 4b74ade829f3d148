"""Which fields are shown, and what that means for their answers."""

from typing import Any

import msgspec
import pytest

from app.domain.forms.definition import conditions
from app.domain.forms.definition.fields.definition import Conditional, Operator
from app.domain.forms.submissions.answers import check_answers
from tests.forms.definition.field_builders import build_form
from tests.forms.definition.fields.samples import OPTIONS

_MISSING: Any = object()
# An operator with its operand, then answers that meet it and answers that do not.
_OPERATORS: list[tuple[Operator, Any, list[Any], list[Any]]] = [
    ("equals", "a", ["a"], ["A", "ab", "", " a", _MISSING, True, 1]),
    ("equals", 1, [1, 1.0], [2, "1", True, _MISSING]),
    ("equals", 0, [0, 0.0], [False, _MISSING, "0", ""]),
    ("equals", True, [True], [False, 1, "true", _MISSING]),
    # Pages may send an unchecked box or leave it out.
    ("equals", False, [False, _MISSING], [True, 0, "", "false"]),
    ("equals", ["a", "b"], [["a", "b"], ["b", "a"]], [["a"], ["a", "b", "c"], [], _MISSING]),
    ("equals", "a", [["a"]], [["a", "b"], []]),
    ("not_equals", "a", ["b", "A", _MISSING], ["a"]),
    ("not_equals", 1, [2, "1", _MISSING], [1, 1.0]),
    ("not_equals", True, [False, _MISSING], [True]),
    ("not_equals", False, [True], [False, _MISSING]),
    ("not_equals", ["a"], [["b"], ["a", "b"], _MISSING], [["a"]]),
    ("contains", "b", ["abc", "B", "b"], ["ac", _MISSING, 1, True]),
    ("contains", "STRASSE", ["Lange Straße 1"], ["Weg"]),
    ("contains", "a", [["a", "b"]], [["ab"], [], ["A"]]),
    ("gt", 5, [6, 5.1], [5, 4, "6", True, _MISSING]),
    ("lt", 5, [4, 4.9, -6], [5, 6, "4", False, _MISSING]),
    (
        "gt",
        "2026-01-31",
        ["2026-02-01", "2027-01-01"],
        ["2026-01-31", "2026-01-30", _MISSING, 3000],
    ),
    ("lt", "2026-01-31", ["2026-01-30", "0999-01-01"], ["2026-01-31", "2026-02-01", _MISSING]),
    ("gt", "2026-01-31T09:30:00Z", ["2026-01-31T09:30:01Z"], ["2026-01-31T09:30:00Z"]),
    ("lt", "2026-01-31T09:30:00Z", ["2026-01-31T09:29:59Z"], ["2026-01-31T09:30:00Z"]),
    ("is_empty", None, [_MISSING, "", [], False], ["a", 0, True, ["a"]]),
    ("is_not_empty", None, ["a", 0, True, ["a"]], [_MISSING, "", [], False]),
    ("in", ["a", "b"], ["a", "b"], ["c", "ab", "", _MISSING]),
    ("in", [1, 2], [1, 2.0], [3, "1", True, _MISSING]),
    ("in", [True], [True], [1, False, _MISSING]),
    ("in", ["a", "b"], [["b"], ["a", "c"]], [["c"], []]),
]


def _name(value: Any) -> str:
    return "no answer" if value is _MISSING else repr(value)


def test_every_operator(subtests: pytest.Subtests) -> None:
    for operator, value, met_by, not_met_by in _OPERATORS:
        conditional = Conditional(field="a", operator=operator, value=value)
        for answers, expected in ((met_by, True), (not_met_by, False)):
            for answer in answers:
                with subtests.test(operator, value=repr(value), answer=_name(answer)):
                    values = {"b": "a"} if answer is _MISSING else {"a": answer, "b": "x"}
                    assert conditions.is_met(conditional, values) is expected


def _show_if(field: str, operator: str, value: Any = None) -> dict[str, Any]:
    return {"conditional": {"field": field, "operator": operator, "value": value}}


_A, _B, _C = (
    {"field": name, "operator": "equals", "value": value}
    for name, value in zip("abc", "xyz", strict=True)
)
# Conditionals, then the answers that meet them and those that do not.
_GROUPS: list[tuple[dict[str, Any], list[str], list[str]]] = [
    ({"all": [_A, _B]}, ["xy", "xyz"], ["x", " y", ""]),
    ({"any": [_A, _B]}, ["x", " y", "xy"], ["", "  z", "yx"]),
    ({"all": [_A]}, ["x"], [""]),
    ({"any": [{"all": [_A, _B]}, _C]}, ["xy", "  z"], ["x", " y", ""]),
    ({"all": [{"any": [_A, _B]}, _C]}, ["x z", " yz"], ["xy", "  z"]),
    ({"all": [{"any": [{"all": [_A, _B]}, _C]}]}, ["xy", "  z"], ["x", " y"]),
]


def test_groups_of_conditions(subtests: pytest.Subtests) -> None:
    for body, met_by, not_met_by in _GROUPS:
        conditional = msgspec.convert(body, Conditional)
        for texts, expected in ((met_by, True), (not_met_by, False)):
            for text in texts:
                with subtests.test(str(body), answers=text):
                    values = dict(zip("abc", text, strict=False))
                    assert conditions.is_met(conditional, values) is expected


def test_a_group_sees_only_answers_of_fields_that_are_shown() -> None:
    both = {"all": [_show_if("topic", "equals", "rd")["conditional"], _BUDGET_IS_SET]}
    note = {"id": "note", "type": "text", "conditional": both}
    either = {"id": "either", "type": "text", "conditional": {"any": both["all"]}}
    form = build_form(note, either, _BUDGET, _TOPIC)
    answers = {"topic": "rd", "budget": 5, "note": "a", "either": "b"}
    assert check_answers(form, answers).visible == {"topic", "either"}
    assert check_answers(form, {**answers, "topic": "sales"}).visible == {
        *("topic", "budget", "either")
    }


_TOPIC = {"id": "topic", "type": "select", "options": OPTIONS}
_BUDGET = {
    "id": "budget",
    "type": "number",
    "required": True,
    **_show_if("topic", "equals", "sales"),
}
_REASON = {"id": "reason", "type": "text", "required": True, **_show_if("budget", "gt", 1000)}
# The order of the fields is not that of the evaluation.
_CHAIN = [_REASON, _BUDGET, _TOPIC]
_BUDGET_IS_SET = {"field": "budget", "operator": "is_not_empty"}
_BUDGET_IS_MISSING = ("budget", "is required")

# Answers, then what is stored, what is wrong, and what is shown.
_CHAINS: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]], str]] = {
    "nothing": ({}, {}, [], "topic"),
    "a condition that does not hold": ({"topic": "rd"}, {"topic": "rd"}, [], "topic"),
    "a condition that holds": (
        {"topic": "sales"},
        {"topic": "sales"},
        [_BUDGET_IS_MISSING],
        "topic budget",
    ),
    "the value of a hidden field is dropped": (
        {"topic": "rd", "budget": 5000, "reason": "x"},
        {"topic": "rd"},
        [],
        "topic",
    ),
    "a wrong value of a hidden field is dropped": (
        {"topic": "rd", "budget": "much", "reason": ["x"]},
        {"topic": "rd"},
        [],
        "topic",
    ),
    "a field that depends on a hidden one is hidden": (
        {"budget": 5000, "reason": "x"},
        {},
        [],
        "topic",
    ),
    "the second link does not hold": (
        {"topic": "sales", "budget": 1000, "reason": "x"},
        {"budget": 1000, "topic": "sales"},
        [],
        "topic budget",
    ),
    "the whole chain": (
        {"topic": "sales", "budget": 1001, "reason": "x"},
        {"reason": "x", "budget": 1001, "topic": "sales"},
        [],
        "topic budget reason",
    ),
    "the end of the chain is required": (
        {"topic": "sales", "budget": 1001, "reason": " "},
        {"budget": 1001, "topic": "sales"},
        [("reason", "is required")],
        "topic budget reason",
    ),
    "a wrong value in the middle hides what follows": (
        {"topic": "sales", "budget": "5000", "reason": "x"},
        {"topic": "sales"},
        [("budget", "must be a number")],
        "topic budget",
    ),
}


def test_a_chain_of_conditionals(subtests: pytest.Subtests) -> None:
    for name, case in _CHAINS.items():
        with subtests.test(name=name):
            answers, values, problems, visible = case
            form = build_form(*_CHAIN)
            checked = check_answers(form, answers)
            assert checked.values == values
            assert list(checked.values) == [
                key for key in ("reason", "budget", "topic") if key in values
            ]
            assert checked.problems == problems
            assert checked.visible == set(visible.split())


def test_a_hidden_field_counts_as_empty() -> None:
    note = {"id": "note", "type": "text", **_show_if("budget", "is_empty")}
    other = {"id": "other", "type": "text", **_show_if("budget", "not_equals", 5)}
    form = build_form(_TOPIC, _BUDGET, note, other)
    answers = {"topic": "rd", "budget": 5, "note": "a", "other": "b"}
    assert check_answers(form, answers).values == {"topic": "rd", "note": "a", "other": "b"}
    answers["topic"] = "sales"
    assert check_answers(form, answers).values == {"topic": "sales", "budget": 5}


def test_a_section_is_shown_by_its_conditional() -> None:
    section = {"id": "more", "type": "section", **_show_if("topic", "is_not_empty")}
    form = build_form(_TOPIC, section)
    assert check_answers(form, {"topic": "rd"}).visible == {"topic", "more"}
    assert check_answers(form, {}).visible == {"topic"}


def test_a_box_that_is_left_out_equals_an_unchecked_one(subtests: pytest.Subtests) -> None:
    for operator, value in (
        ("equals", False),
        ("not_equals", True),
        ("is_empty", None),
        ("in", [False]),
    ):
        with subtests.test(operator, value=value):
            rest = _show_if("box", operator, value)
            form = build_form(
                {"id": "box", "type": "checkbox"}, {"id": "b", "type": "text", **rest}
            )
            for answers, is_shown in (({}, True), ({"box": False}, True), ({"box": True}, False)):
                assert ("b" in check_answers(form, answers).visible) is is_shown


# Answers without conditionals


def test_required_answers_may_be_missing_in_a_draft() -> None:
    form = build_form(
        {"id": "name", "type": "text", "required": True},
        {"id": "terms", "type": "checkbox", "required": True},
        {"id": "age", "type": "number", "required": True},
    )
    complete = [("name", "is required"), ("terms", "must be checked"), ("age", "is required")]
    answers = {"name": " ", "terms": False}
    assert check_answers(form, answers).problems == complete
    draft = check_answers(form, answers, is_complete=False)
    assert (draft.values, draft.problems) == ({}, [])
    wrong = check_answers(form, {"age": "old", "terms": "yes"}, is_complete=False)
    assert wrong.problems == [("terms", "must be true or false"), ("age", "must be a number")]


def test_problems_come_in_the_order_of_the_fields_and_unknown_keys_last() -> None:
    form = build_form(*[{"id": name, "type": "number"} for name in "cab"])
    data = {"x": 1, "a": "?", "y" * 300: None, "b": "?", "c": "?"}
    wrong = "must be a number"
    assert check_answers(form, data).problems == [
        ("c", wrong),
        ("a", wrong),
        ("b", wrong),
        ("x", "is not a field of this form"),
        ("y" * 200, "is not a field of this form"),
    ]


def test_a_section_takes_no_answer() -> None:
    form = build_form(
        {"id": "s", "type": "section"}, {"id": "p", "type": "paragraph"}, {"type": "text"}
    )
    assert check_answers(form, {"s": None, "p": None}).problems == []
    assert check_answers(form, {"s": "", "p": "x"}).problems == [
        ("s", "takes no answer"),
        ("p", "takes no answer"),
    ]
