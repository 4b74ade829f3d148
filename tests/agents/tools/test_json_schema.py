"""JSON Schemas of tenants: which are refused, and that validation takes a bounded time."""

import random
import socket
import time
from typing import Any

import pytest

from app.domain.agents.tools import json_schema
from app.kit.errors import Invalid
from tests.agents.tools.tool_requests import FUNCTION_TOOL, PATH
from tests.assertions import refused
from tests.world import Client

MAX_SECONDS = 0.1


def _get_rejection_reason(schema: dict[str, Any]) -> str:
    """Returns the reason why a schema is refused."""
    with pytest.raises(Invalid) as raised:
        json_schema.validate_schema("input_schema", schema)
    details = raised.value.details or {}
    assert set(details) == {"input_schema"}
    return str(details["input_schema"])


def _find_problems(schema: dict[str, Any], value: Any) -> dict[str, str]:
    """Returns the problems of a value. Fails when the validation takes long, also when it is
    repeated: a busy machine may slow down a single one.
    """
    json_schema.validate_schema("input_schema", schema)
    for _ in range(3):
        started = time.thread_time()
        problems = dict(json_schema.find_problems(schema, value, "input"))
        if time.thread_time() - started < MAX_SECONDS:
            return problems
    pytest.fail(f"the validation took more than {MAX_SECONDS} s, three times")


# Rejected schemas


_INVALID_SCHEMAS: list[dict[str, Any]] = [
    {"type": "nonsense"},
    {"type": 5},
    {"properties": []},
    {"required": "a"},
    {"minimum": "1"},
    {"pattern": "("},
    {"items": {"type": "object", "properties": {"a": {"enum": 5}}}},
    {"$schema": "https://example.com/my-own-schema"},
]


async def test_an_invalid_json_schema_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for schema in _INVALID_SCHEMAS:
        for field in ("input_schema", "output_schema"):
            with subtests.test(schema=schema, field=field):
                answer = await developer.post(PATH, {**FUNCTION_TOOL, field: schema})
                assert set(refused(answer, 422, "validation_error")["details"]) == {field}


_EXTERNAL_REFERENCES: list[str] = [
    "http://127.0.0.1:9/schema.json",
    "https://json-schema.org/draft/2020-12/schema",
    "file:///etc/passwd",
    "other.json",
    "//evil.example/x",
    "#missing",
    "#/$defs/missing",
]


def test_an_external_reference_is_refused_without_network(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    def fail(*_args: object, **_more: object) -> Any:
        pytest.fail("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)
    for reference in _EXTERNAL_REFERENCES:
        with subtests.test(reference=reference):
            reason = _get_rejection_reason({"properties": {"a": {"$ref": reference}}})
            assert "not part of it" in reason


_RECURSIVE_SCHEMAS: list[dict[str, Any]] = [
    {"$ref": "#"},
    {"properties": {"a": {"$ref": "#"}}},
    {"properties": {"a": {"$ref": "#/properties/a"}}},
    {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"$defs": {"a": {"$anchor": "me", "items": {"$ref": "#me"}}}},
    {"$defs": {"a": {"$dynamicAnchor": "me", "items": {"$dynamicRef": "#me"}}}},
    {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "items": {"$recursiveRef": "#"},
    },
    {"$defs": {"a~b": {"items": {"$ref": "#/$defs/a~0b"}}}},
    {"$defs": {"a": {"items": {"$ref": "#/$defs/%61"}}}},
    {"$defs": {"a": {"b": {"items": {"$ref": "#/$defs/a%2Fb"}}}, "a/b": {}}},
]


def test_a_schema_that_refers_to_itself_is_refused(subtests: pytest.Subtests) -> None:
    for schema in _RECURSIVE_SCHEMAS:
        with subtests.test(schema=schema):
            assert _get_rejection_reason(schema) == "must not refer to itself"


_SCHEMAS_WITH_INNER_IDS: list[dict[str, Any]] = [
    {
        "$defs": {"a": {}},
        "properties": {
            "x": {
                "$id": "https://example.com/inner",
                "$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a"}}}},
                "$ref": "#/$defs/a",
            }
        },
    },
    {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "definitions": {"a": {"id": "https://example.com/inner"}},
    },
]


def test_an_inner_schema_with_an_id_is_refused(subtests: pytest.Subtests) -> None:
    """References inside it would be resolved against its own id."""
    for schema in _SCHEMAS_WITH_INNER_IDS:
        with subtests.test(schema=schema):
            assert "in its parts" in _get_rejection_reason(schema)


def test_two_anchors_of_one_name_are_refused() -> None:
    schema = {"$defs": {"a": {"$anchor": "n"}, "b": {"$anchor": "n", "items": {"$ref": "#n"}}}}
    assert "two parts" in _get_rejection_reason(schema)


def test_a_schema_that_expands_exponentially_is_refused(subtests: pytest.Subtests) -> None:
    for keyword in ("allOf", "anyOf", "oneOf"):
        with subtests.test(keyword=keyword):
            defs: dict[str, Any] = {"a0": {"type": "string"}}
            for number in range(30):
                defs[f"a{number + 1}"] = {keyword: [{"$ref": f"#/$defs/a{number}"}] * 2}
            assert "expands to more than" in _get_rejection_reason(
                {"$defs": defs, "$ref": "#/$defs/a30"}
            )


def test_nested_unevaluated_keywords_are_refused(subtests: pytest.Subtests) -> None:
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        for around in ("if", "anyOf"):
            with subtests.test(keyword=keyword, around=around):
                schema: dict[str, Any] = {"properties": {"x": {"type": "integer"}}}
                for _ in range(12):
                    schema = {around: schema if around == "if" else [schema], keyword: False}
                assert "expands to more than" in _get_rejection_reason(schema)


def test_a_deep_schema_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(40):
        schema = {"not": schema}
    assert "nested deeper" in _get_rejection_reason(schema)


def test_a_large_schema_is_refused() -> None:
    assert "at most" in _get_rejection_reason({"description": "x" * 70_000})


def test_a_pattern_that_needs_backtracking_is_refused() -> None:
    assert "not a valid JSON Schema" in _get_rejection_reason({"pattern": r"(?=a)\1"})


_ORDINARY_SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "object", "properties": {"id": {"type": "string"}, "$id": {}, "$ref": {}}},
    {"$id": "https://example.com/s", "$defs": {"a": {}}, "items": {"$ref": "#/$defs/a"}},
    {"$defs": {"a": {"$anchor": "n"}}, "items": {"$ref": "#n"}},
    {"properties": {"a": {"examples": [{"id": "1"}, {"id": "1"}]}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$id": "#n"}}},
    {"$defs": {"a/b": {}}, "items": {"$ref": "#/$defs/a~1b"}},
    {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}},
    {
        "properties": {"a": {"type": "object", "unevaluatedProperties": False}},
        "unevaluatedProperties": False,
    },
]


def test_an_ordinary_schema_is_accepted(subtests: pytest.Subtests) -> None:
    for schema in _ORDINARY_SCHEMAS:
        with subtests.test(schema=schema):
            json_schema.validate_schema("input_schema", schema)


# Validation within limits


def test_a_valid_value_has_no_problems() -> None:
    assert _find_problems({"properties": {"a": {"type": "integer"}}}, {"a": 1}) == {}


def test_each_problem_is_reported_by_its_path() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"items": {"properties": {"c": False}}}},
        "required": ["d"],
    }
    problems = _find_problems(schema, {"a": 1, "b": [{}, {"c": 1}]})
    assert set(problems) == {"input", "input.a", "input.b.1.c"}
    assert '"d" is a required property' in problems["input"]


def test_problems_do_not_repeat_the_value() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"enum": [1]}, "c": {"pattern": "^x"}}}
    problems = _find_problems(schema, {"a": "hunter2", "b": "hunter2", "c": "hunter2"})
    assert len(problems) == 3
    assert "hunter2" not in str(problems)


def test_at_most_100_problems_are_reported() -> None:
    schema: dict[str, Any] = {"additionalProperties": {"type": "integer"}}
    value = {f"k{number}": "x" for number in range(150)}
    error = Invalid.fields(json_schema.find_problems(schema, value, "input"))
    assert len(error.details or {}) == 100


def test_a_catastrophic_pattern_is_harmless(subtests: pytest.Subtests) -> None:
    for pattern in ("^(a+)+$", "^(a|a)*$", "(.*)*b$", "^(([a-z])+.)+[A-Z]$"):
        with subtests.test(pattern=pattern):
            problems = _find_problems(
                {"properties": {"a": {"pattern": pattern}}}, {"a": "a" * 50_000 + "!"}
            )
            assert set(problems) in ({"input"}, {"input.a"})


def test_a_large_pattern_is_not_tried_on_a_long_text() -> None:
    schema = {"properties": {"a": {"pattern": "^([01]*1[01]{900})+$"}}}
    problems = _find_problems(schema, {"a": "01" * 400_000})
    assert problems == {"input": "is too large to be checked against the schema"}


def test_many_patterns_are_not_tried_on_a_long_text() -> None:
    schema: dict[str, Any] = {
        "allOf": [{"patternProperties": {f"^([01]*1[01]{{{n}}})+$": {}}} for n in range(49)]
    }
    problems = _find_problems(schema, {"01" * 100_000: 1})
    assert problems == {"input": "is too large to be checked against the schema"}


def test_patterns_of_any_size_are_tried_in_time(subtests: pytest.Subtests) -> None:
    """Each character makes the engine build a new state."""
    longest = "".join(random.Random(1).choices("ab", k=625_000))
    for count in (8, 14, 20, 60, 200, 300, 800, 2000):
        schema = {"properties": {"a": {"pattern": f"^[ab]*a[ab]{{{count}}}$"}}}
        for chars in (1000, 5_000, 25_000, 125_000, 625_000):
            with subtests.test(count=count, chars=chars):
                _find_problems(schema, {"a": longest[:chars]})


def test_a_pattern_of_one_property_allows_long_texts_in_others() -> None:
    schema = {"properties": {"mail": {"pattern": "^[^@ ]+@[^@ ]+$"}, "text": {"type": "string"}}}
    value = {"mail": "ada@example.com", "text": "x" * 500_000}
    assert _find_problems(schema, value) == {}
    assert _find_problems({**schema, "allOf": [{"pattern": "^x"}]}, value) != {}


def test_many_large_patterns_are_refused() -> None:
    many = {"allOf": [{"pattern": f"^.{{1,{500 + n}}}x$"} for n in range(20)]}
    assert "too many patterns of this size" in _get_rejection_reason(many)


def test_an_ordinary_pattern_is_tried_on_a_long_text() -> None:
    schema = {"properties": {"mail": {"pattern": "^[^@ ]+@[^@ ]+$"}}}
    assert _find_problems(schema, {"mail": "a@b.example", "text": "x" * 300_000}) == {}


_ITEM_SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer"},
    {"anyOf": [{"type": "integer"}] * 20},
    {"allOf": [{"type": "integer"}] * 10},
    {"required": [f"k{number}" for number in range(60)], "type": ["object", "string"]},
]


def test_a_large_input_with_many_errors_is_refused_quickly(subtests: pytest.Subtests) -> None:
    """A list of all errors would not fit into memory."""
    for items in _ITEM_SCHEMAS:
        with subtests.test(items=items):
            problems = _find_problems(
                {"properties": {"a": {"items": items}}}, {"a": [{"x": "y"}] * 100_000}
            )
            assert set(problems) == {"input"}


def test_a_large_valid_input_is_accepted() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}, "uniqueItems": True}}}
    assert _find_problems(schema, {"a": [f"n{number}" for number in range(100_000)]}) == {}


def test_an_input_too_large_for_its_schema_is_not_checked_at_all() -> None:
    schema = {"items": {"enum": [f"n{number}" for number in range(4000)]}}
    problems = _find_problems(schema, ["x"] * 100_000)
    assert problems == {"input": "is too large to be checked against the schema"}


def test_marks_within_texts_are_not_counted_as_values() -> None:
    schema = {"items": {"enum": [f"n{number}" for number in range(4000)]}}
    problems = _find_problems(schema, ['[],{}:"\\' * 10_000])
    assert problems == {"input.0": 'it is not one of "n0", "n1" or 3998 other candidates'}


def test_a_schema_of_many_patterns_is_refused() -> None:
    """Each pattern is compiled and takes memory for as long as its tool is used."""
    many = {"allOf": [{"pattern": f"^[ab]{{{n}}}$"} for n in range(51)]}
    assert "more than 50 patterns" in _get_rejection_reason(many)


def test_many_divisions_of_huge_numbers_are_not_tried() -> None:
    schema = {"properties": {"n": {"items": {"multipleOf": 1e-300}}}}
    problems = _find_problems(schema, {"n": [1e300] * 50_000})
    assert problems == {"input": "is too large to be checked against the schema"}
