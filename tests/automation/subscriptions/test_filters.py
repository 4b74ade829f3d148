"""Filters: conditions on dotted paths in an event's data, compared as JSON."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.domain.automation.subscriptions.filters import MAX_FILTERS, match, validate
from app.kit.errors import Invalid
from tests.lengths import rounds

DATA: dict[str, Any] = {
    "agent_id": "agt_1",
    "count": 3,
    "ratio": 1.5,
    "zero": 0,
    "yes": True,
    "no": False,
    "nothing": None,
    "text": "",
    "tags": ["a", "b", {"deep": 7}],
    "values": {"email": "ada@example.com", "address": {"city": "Paris", "zip.code": "75001"}},
    "dotted.key": "whole",
    "dotted": {"key": "in parts"},
    "ünïcode 🙂": {"schlüssel": "wert"},
    "at": "2026-01-01T12:00:00Z",
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(min_size=1).filter(lambda name: "." not in name and name.strip() != "")
PLAIN = JSON.filter(lambda value: not isinstance(value, dict))
_EXAMPLES = rounds(25, 100)


def _find_problems(filters: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as refusal:
        validate(filters)
    details: dict[str, str] = refusal.value.details or {}
    return details


# Equality


_MATCHING_FILTERS: list[dict[str, Any] | None] = [
    None,
    {},
    {"agent_id": "agt_1"},
    {"count": 3},
    {"count": 3.0},
    {"ratio": 1.5},
    {"zero": 0},
    {"zero": 0.0},
    {"zero": -0.0},
    {"yes": True},
    {"no": False},
    {"nothing": None},
    {"text": ""},
    {"values.email": "ada@example.com"},
    {"values.address.city": "Paris"},
    {"tags": ["a", "b", {"deep": 7}]},
    {"tags.0": "a"},
    {"tags.2.deep": 7},
    {"dotted.key": "whole"},
    {"ünïcode 🙂.schlüssel": "wert"},
    {"agent_id": "agt_1", "count": 3, "values.address.city": "Paris"},
]


def test_filters_that_hold_match(subtests: pytest.Subtests) -> None:
    for filters in _MATCHING_FILTERS:
        with subtests.test(filters=filters):
            assert match(filters, DATA)


_OTHER_FILTERS: list[dict[str, Any]] = [
    {"agent_id": "agt_2"},
    {"agent_id": "AGT_1"},
    {"agent_id": ["agt_1"]},
    {"count": "3"},
    {"count": True},
    {"yes": 1},
    {"yes": 1.0},
    {"yes": "true"},
    {"no": 0},
    {"no": None},
    {"no": ""},
    {"zero": False},
    {"zero": None},
    {"text": None},
    {"nothing": False},
    {"nothing": 0},
    {"nothing": ""},
    {"nothing": "null"},
    {"missing": None},
    {"missing": ""},
    {"values.missing": None},
    {"values.email.deeper": None},
    {"agent_id.0": "a"},
    {"tags": ["a", "b"]},
    {"tags": ["b", "a", {"deep": 7}]},
    {"tags": ["a", "b", {"deep": True}]},
    {"tags.3": "a"},
    {"tags.-1": {"deep": 7}},
    {"tags.1.0": "b"},
    {"tags.first": "a"},
    {"values.address.zip": "75001"},
    {"agent_id": "agt_1", "count": 4},
    {"count": 3, "missing": 1},
]


def test_filters_that_do_not_hold_do_not_match(subtests: pytest.Subtests) -> None:
    for filters in _OTHER_FILTERS:
        with subtests.test(filters=filters):
            assert not match(filters, DATA)


def test_values_within_lists_are_compared_as_json(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [{"a": [1, True]}, {"a": [1.0, True]}]
    for data in cases:
        with subtests.test(data=data):
            assert match({"a": [1, True]}, data)
            assert not match({"a": [1, 1]}, data)
            assert not match({"a": [True, True]}, data)


def test_an_index_is_ascii_and_short() -> None:
    data = {"list": ["zero", "one"]}
    assert match({"list.1": "one"}, data)
    assert not match({"list.1000000000000000000000": "one"}, data)
    assert not match({"list.00000000000000000001": "zero"}, data)
    assert not match({"list.\u0661": "one"}, data)


def test_a_number_may_also_be_the_name_of_a_field() -> None:
    assert match({"rows.0": "named"}, {"rows": {"0": "named"}})


def test_data_that_is_no_object_has_no_paths(subtests: pytest.Subtests) -> None:
    cases: list[Any] = [None, [], "text", 7, True]
    for data in cases:
        with subtests.test(data=data):
            assert not match({"a": 1}, data)
            assert match({"a": {"exists": False}}, data)
            assert match(None, data)


# Operators


_MATCHING_OPERATORS: list[dict[str, Any]] = [
    {"count": {"in": [1, 2, 3]}},
    {"count": {"in": [3.0]}},
    {"nothing": {"in": [None]}},
    {"tags": {"in": [["a", "b", {"deep": 7}]]}},
    {"values.address": {"in": [{"city": "Paris", "zip.code": "75001"}]}},
    {"yes": {"in": [True]}},
    {"count": {"gt": 2}},
    {"count": {"gt": 2.9}},
    {"count": {"lt": 4}},
    {"count": {"gt": 2, "lt": 4}},
    {"count": {"gt": 2, "lt": 4, "in": [3], "exists": True}},
    {"ratio": {"lt": 2}},
    {"zero": {"gt": -1, "lt": 1}},
    {"agent_id": {"gt": "agt_0"}},
    {"at": {"gt": "2025-12-31", "lt": "2026-01-02"}},
    {"count": {"exists": True}},
    {"nothing": {"exists": True}},
    {"values.address.city": {"exists": True}},
    {"missing": {"exists": False}},
    {"values.missing": {"exists": False}},
    {"agent_id.deeper": {"exists": False}},
]


def test_an_operator_that_holds_matches(subtests: pytest.Subtests) -> None:
    for filters in _MATCHING_OPERATORS:
        with subtests.test(filters=filters):
            validate(filters)
            assert match(filters, DATA)


_OTHER_OPERATORS: list[dict[str, Any]] = [
    {"count": {"in": []}},
    {"count": {"in": [1, 2, "3"]}},
    {"count": {"in": [[3]]}},
    {"yes": {"in": [1]}},
    {"zero": {"in": [False]}},
    {"missing": {"in": [None]}},
    {"count": {"gt": 3}},
    {"count": {"lt": 3}},
    {"count": {"gt": 2, "lt": 3}},
    {"count": {"gt": "2"}},
    {"count": {"lt": "4"}},
    {"agent_id": {"gt": 0}},
    {"yes": {"gt": 0}},
    {"yes": {"lt": 2}},
    {"nothing": {"gt": 0}},
    {"nothing": {"lt": 1}},
    {"tags": {"gt": 0}},
    {"missing": {"gt": 0}},
    {"missing": {"lt": 0}},
    {"missing": {"exists": True}},
    {"nothing": {"exists": False}},
    {"missing": {"exists": False, "gt": 1}},
    {"count": {"exists": True, "gt": 5}},
]


def test_an_operator_that_does_not_hold_does_not_match(subtests: pytest.Subtests) -> None:
    for filters in _OTHER_OPERATORS:
        with subtests.test(filters=filters):
            validate(filters)
            assert not match(filters, DATA)


def test_large_numbers_are_compared_exactly() -> None:
    big = 2**63
    assert match({"n": big}, {"n": big})
    assert not match({"n": big + 1}, {"n": big})
    assert match({"n": {"gt": big}}, {"n": big + 1})


# Properties


@given(data=st.dictionaries(NAMES, JSON, max_size=5))
@settings(deadline=None, max_examples=_EXAMPLES)
def test_an_event_passes_a_filter_made_of_its_own_values(data: dict[str, Any]) -> None:
    own = {name: value for name, value in data.items() if not isinstance(value, dict)}
    assert match(own, data)
    assert match({name: {"in": [value]} for name, value in data.items()}, data)
    assert match({name: {"exists": True} for name in data}, data)


@given(data=st.dictionaries(NAMES, JSON, min_size=1, max_size=5), name=NAMES, value=PLAIN)
@settings(deadline=None, max_examples=_EXAMPLES)
def test_a_missing_value_equals_nothing(data: dict[str, Any], name: str, value: Any) -> None:
    data.pop(name, None)
    assert not match({name: value}, data)
    assert not match({name: {"in": [value]}}, data)
    assert match({name: {"exists": False}}, data)


@given(left=PLAIN, right=PLAIN)
@example(left=1, right=True)
@example(left=0, right=False)
@example(left=1, right=1.0)
@example(left=[1], right=[True])
@example(left=None, right=False)
@settings(deadline=None, max_examples=_EXAMPLES)
def test_equality_is_symmetric(left: Any, right: Any) -> None:
    assert match({"a": left}, {"a": right}) == match({"a": right}, {"a": left})


@given(path=st.lists(NAMES, min_size=1, max_size=6), value=PLAIN)
@settings(deadline=None, max_examples=_EXAMPLES)
def test_a_path_finds_a_nested_value(path: list[str], value: Any) -> None:
    data: Any = value
    for name in reversed(path):
        data = {name: data}
    assert match({".".join(path): value}, data)
    assert match({".".join(path): {"exists": True}}, data)
    assert match({".".join([*path, "deeper"]): {"exists": False}}, {"else": 1})


@given(number=st.integers() | st.floats(allow_nan=False, allow_infinity=False), bound=st.integers())
@settings(deadline=None, max_examples=_EXAMPLES)
def test_a_number_is_either_above_below_or_equal(number: float, bound: int) -> None:
    holds = [match({"n": condition}, {"n": number}) for condition in ({"gt": bound}, {"lt": bound})]
    assert holds.count(True) + match({"n": bound}, {"n": number}) == 1


@given(value=JSON)
@settings(deadline=None, max_examples=_EXAMPLES)
def test_a_value_equals_its_json_round_trip(value: Any) -> None:
    again = json.loads(json.dumps(value))
    assert match({"a": {"in": [value]}}, {"a": again})


@given(filters=st.dictionaries(st.text(max_size=20), JSON, max_size=5), data=JSON)
@settings(deadline=None, max_examples=_EXAMPLES)
def test_valid_filters_can_be_applied_to_any_data(filters: dict[str, Any], data: Any) -> None:
    with suppress(Invalid):
        validate(filters)
        assert match(filters, data) in {True, False}


# Validation


_INVALID_CONDITIONS: list[tuple[Any, str]] = [
    ({}, "must be a value, or an object with in, gt, lt, exists"),
    ({"eq": 1}, "must be a value, or an object with in, gt, lt, exists"),
    ({"gt": 1, "gte": 1}, "must be a value, or an object with in, gt, lt, exists"),
    ({"city": "Paris"}, "must be a value, or an object with in, gt, lt, exists"),
    ({"in": "abc"}, "in must be a list"),
    ({"in": {"a": 1}}, "in must be a list"),
    ({"in": None}, "in must be a list"),
    ({"exists": "yes"}, "exists must be true or false"),
    ({"exists": 1}, "exists must be true or false"),
    ({"exists": None}, "exists must be true or false"),
    ({"gt": True}, "gt must be a number or a string"),
    ({"gt": None}, "gt must be a number or a string"),
    ({"gt": [1]}, "gt must be a number or a string"),
    ({"lt": {}}, "lt must be a number or a string"),
    ({"gt": 1, "lt": False}, "lt must be a number or a string"),
]


def test_an_invalid_condition_is_named(subtests: pytest.Subtests) -> None:
    for condition, problem in _INVALID_CONDITIONS:
        with subtests.test(condition=condition, problem=problem):
            assert _find_problems({"a.b": condition}) == {"filters.a.b": problem}


def test_an_invalid_path_is_named(subtests: pytest.Subtests) -> None:
    for path in ("", ".", "a.", ".a", "a..b", " ", "a. .b", "a.\t", "x" * 201):
        with subtests.test(path=path):
            assert list(_find_problems({path: 1})) == [f"filters.{path}"[:200]]


def test_the_longest_path_is_accepted() -> None:
    validate({"x" * 200: 1})


def test_every_wrong_condition_is_named_at_once() -> None:
    assert set(_find_problems({"good": 1, "a": {}, "b": {"in": 1}, "": 2})) == {
        "filters.a",
        "filters.b",
        "filters.",
    }


def test_there_are_at_most_twenty_conditions() -> None:
    validate({f"p{number}": number for number in range(MAX_FILTERS)})
    assert set(_find_problems({f"p{number}": number for number in range(MAX_FILTERS + 1)})) == {
        "filters"
    }


def test_a_value_that_is_nested_too_deeply_is_named() -> None:
    value: Any = 1
    for _ in range(7):
        value = [value]
    validate({"a": value})
    assert _find_problems({"a": [[value]]}) == {"filters.a": "is nested too deeply"}
