"""Which definitions of fields are accepted, and what is said about the others."""

import time
from typing import Any

import msgspec
import pytest

from app.domain.forms.definition.definitions import MAX_FIELDS, FormDefinition, check_fields
from app.domain.forms.definition.fields.definition import Field
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.kit.errors import Invalid
from app.kit.validation import decode
from tests.forms.definition.field_builders import build_field, build_form, decode_fields
from tests.forms.definition.fields.registry import GOOD, WRONG_RULES
from tests.forms.definition.fields.samples import OPTIONS, TABLE

_TEXT = {"type": "text"}
_SELECT = {"type": "select", "options": OPTIONS}


def _refuse(*fields: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as refusal:
        check_fields(decode_fields(*fields))
    details = refusal.value.details
    assert details
    return {key: str(message) for key, message in details.items()}


def _conditional(operator: str, value: Any = None, field: str = "f0") -> dict[str, Any]:
    return {"conditional": {"field": field, "operator": operator, "value": value}}


def test_every_definition_with_good_values_is_accepted() -> None:
    for kind, validation, _ in GOOD:
        build_field(kind, validation)


def test_wrong_validation_options_are_refused_by_name(subtests: pytest.Subtests) -> None:
    for kind, validation, key, fragment in WRONG_RULES:
        with subtests.test(kind, validation=str(validation)[:80]):
            options = {"options": OPTIONS} if FIELD_TYPES[kind].has_options else {}
            field = {"type": kind, "validation": validation, **options}
            details = _refuse(_TEXT, field)
            assert list(details) == [f"fields.1.validation.{key}"]
            assert fragment in details[f"fields.1.validation.{key}"]


# Definitions of a form, then the path that is wrong, and a part of the message.
_WRONG_FIELDS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "no field": ([], "fields", "at least one field"),
    "no field that is answered": (
        [{"type": "section"}, {"type": "paragraph"}],
        "fields",
        "at least one field that is answered",
    ),
    "too many fields": ([_TEXT] * (MAX_FIELDS + 1), "fields", "at most 200"),
    "too many bytes": (
        [{"type": "text", "label": "x" * 2000, "help_text": "x" * 1000}] * 90,
        "fields",
        "256 KiB",
    ),
    "two fields of one id": ([{"id": "a", **_TEXT}, {"id": "a", **_TEXT}], "fields.1.id", "two"),
    "a section that is required": (
        [_TEXT, {"type": "section", "required": True}],
        "fields.1.required",
        "a section is not answered",
    ),
    "a paragraph that is required": (
        [_TEXT, {"type": "paragraph", "required": True}],
        "fields.1.required",
        "a paragraph is not answered",
    ),
    "a select without options": ([{"type": "select"}], "fields.0.options", "either"),
    "a radio without options": ([{"type": "radio"}], "fields.0.options", "either"),
    "a multi_select without options": ([{"type": "multi_select"}], "fields.0.options", "either"),
    "a group without options": ([{"type": "checkbox_group"}], "fields.0.options", "either"),
    "options and a data source": (
        [{**_SELECT, "data_source": TABLE}],
        "fields.0.options",
        "either",
    ),
    "one value twice": (
        [{**_SELECT, "options": [*OPTIONS, {"value": "sales", "label": "More"}]}],
        "fields.0.options",
        "each value once",
    ),
}


def test_wrong_fields_are_refused_by_their_path(subtests: pytest.Subtests) -> None:
    for name, case in _WRONG_FIELDS.items():
        with subtests.test(name=name):
            fields, path, fragment = case
            details = _refuse(*fields)
            assert list(details) == [path]
            assert fragment in details[path]


def test_only_choices_have_options(subtests: pytest.Subtests) -> None:
    for kind, type_ in FIELD_TYPES.items():
        with subtests.test(kind):
            if type_.has_options:
                build_form({"type": kind, "options": OPTIONS})
                build_form({"type": kind, "data_source": TABLE})
                continue
            for key, value in (("options", OPTIONS), ("data_source", TABLE)):
                details = _refuse(_TEXT, {"type": kind, key: value})
                assert details == {f"fields.1.{key}": f"a {kind} has no options"}


def test_all_problems_are_reported_at_once() -> None:
    details = _refuse(
        {"type": "number", "validation": {"min": 2, "max": 1}},
        {"type": "select"},
        {"type": "text", "validation": {"x": 1}, **_conditional("equals", "a", "nowhere")},
    )
    assert details.keys() == {
        "fields.0.validation.min",
        "fields.1.options",
        "fields.2.validation.x",
        "fields.2.conditional.field",
    }


# Keys of a field as a body has them.
_WRONG_BODIES: list[tuple[dict[str, Any], str]] = [
    ({"id": "1a"}, "0.id"),
    ({"id": "a b"}, "0.id"),
    ({"id": "a\n"}, "0.id"),
    ({"id": ""}, "0.id"),
    ({"id": "a" * 65}, "0.id"),
    ({"id": "__proto__"}, "0.id"),
    ({"type": "none"}, "0.type"),
    ({"type": "Text"}, "0.type"),
    ({"label": ""}, "0.label"),
    ({"label": " \n"}, "0.label"),
    ({"label": "x" * 2001}, "0.label"),
    ({"placeholder": "x" * 201}, "0.placeholder"),
    ({"help_text": "x" * 1001}, "0.help_text"),
    ({"required": "yes"}, "0.required"),
    ({"validation": []}, "0.validation"),
    ({"options": [{"value": "a"}]}, "0.options.0.label"),
    ({"options": [{"value": "", "label": "A"}]}, "0.options.0.value"),
    ({"options": [{"value": " ", "label": "A"}]}, "0.options.0.value"),
    ({"options": [{"value": "a\nb", "label": "A"}]}, "0.options.0.value"),
    ({"options": [{"value": "a" * 201, "label": "A"}]}, "0.options.0.value"),
    ({"options": [{"value": 1, "label": "A"}]}, "0.options.0.value"),
    ({"options": ["a"]}, "0.options.0"),
    ({"options": [{"value": f"{n}", "label": "A"} for n in range(501)]}, "0.options"),
    ({"data_source": {"table_id": "t"}}, "0.data_source.value_column"),
    ({"data_source": {**TABLE, "type": "url"}}, "0.data_source.type"),
    ({"conditional": {"all": {"field": "a"}}}, "0.conditional.all"),
    ({"conditional": {"any": [{"field": "a b"}]}}, "0.conditional.any.0.field"),
    ({"conditional": {"none": []}}, "0.conditional.none"),
    ({"conditional": {"field": "a", "operator": "matches"}}, "0.conditional.operator"),
    ({"conditional": {"field": "a b", "operator": "is_empty"}}, "0.conditional.field"),
    ({"max_length": 3}, "0.max_length"),
]


def test_wrong_keys_of_a_body_are_refused_by_their_path(subtests: pytest.Subtests) -> None:
    for keys, path in _WRONG_BODIES:
        with subtests.test(str(keys)[:80]):
            body = msgspec.json.encode([{"id": "a", "type": "text", "label": "L", **keys}])
            with pytest.raises(Invalid) as refusal:
                decode(body, list[Field])
            assert path in (refusal.value.details or {})


def test_a_body_without_an_id_a_type_or_a_label_is_refused(subtests: pytest.Subtests) -> None:
    for key in ("id", "type", "label"):
        with subtests.test(key):
            field = {"id": "a", "type": "text", "label": "L"}
            del field[key]
            with pytest.raises(Invalid) as refusal:
                decode(msgspec.json.encode([field]), list[Field])
            assert refusal.value.details == {f"0.{key}": "is required"}


# Conditionals


def test_a_conditional_names_another_field_that_is_answered(subtests: pytest.Subtests) -> None:
    for kind in ("section", "paragraph"):
        with subtests.test(kind):
            details = _refuse({"type": kind}, {**_TEXT, **_conditional("is_empty")})
            assert details == {
                "fields.1.conditional.field": "must be another field that is answered"
            }
    details = _refuse({**_TEXT, **_conditional("is_empty", field="nowhere")})
    assert details == {"fields.0.conditional.field": "must be another field that is answered"}


_SINGLE = {"field": "f0", "operator": "is_empty"}


def _nest(depth: int) -> dict[str, Any]:
    return {"all": [_nest(depth - 1)]} if depth else _SINGLE


# Conditionals, then the paths of what is wrong with them.
_GROUPS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"all": [_SINGLE, {"any": [_SINGLE, _SINGLE]}]}, {}),
    ({"any": [_SINGLE] * 20}, {}),
    (_nest(3), {}),
    (_nest(4), {"all.0.all.0.all.0.all": "must be nested at most 3 deep"}),
    (_nest(40), {"all.0.all.0.all.0.all": "must be nested at most 3 deep"}),
    ({"any": [_SINGLE] * 21}, {"": "must have at most 20 conditions"}),
    ({"any": [{"all": [_SINGLE] * 11}] * 2}, {"": "must have at most 20 conditions"}),
    ({"all": []}, {"all": "must have at least one condition"}),
    ({}, {"field": "is required", "operator": "is required"}),
    ({"field": "f0"}, {"operator": "is required"}),
    ({"all": [{"operator": "is_empty"}]}, {"all.0.field": "is required"}),
    ({"all": [_SINGLE], "any": [_SINGLE]}, {"": "must have either field and operator, or all"}),
    ({"all": [_SINGLE], "value": None}, {"": "must have either field and operator, or all"}),
    ({"any": [_SINGLE, {**_SINGLE, "field": "x"}]}, {"any.1.field": "must be another field"}),
    ({"any": [_SINGLE, {**_SINGLE, "field": "f1"}]}, {"any.1.field": "depends on this field"}),
    ({"any": [{**_SINGLE, "value": 1}, _SINGLE]}, {"any.0.value": "is_empty takes no value"}),
]


def test_groups_of_conditions(subtests: pytest.Subtests) -> None:
    for conditional, problems in _GROUPS:
        with subtests.test(str(conditional)[:80]):
            fields: list[dict[str, Any]] = [_TEXT, {**_TEXT, "conditional": conditional}]
            if not problems:
                build_form(*fields)
                continue
            details = _refuse(*fields)
            paths = [f"fields.1.conditional.{path}".rstrip(".") for path in problems]
            assert list(details) == paths
            for message, part in zip(details.values(), problems.values(), strict=True):
                assert part in message


def test_groups_must_not_lead_back_to_their_field() -> None:
    """f0 needs f2, which needs f1 or f0."""
    details = _refuse(
        {**_TEXT, **_conditional("is_empty", field="f2")},
        _TEXT,
        {**_TEXT, "conditional": {"any": [{**_SINGLE, "field": "f1"}, _SINGLE]}},
    )
    assert details == {
        "fields.0.conditional.field": "depends on this field itself",
        "fields.2.conditional.any.1.field": "depends on this field itself",
    }


def test_a_single_condition_is_returned_as_the_specification_has_it() -> None:
    (field,) = decode_fields({**_TEXT, "conditional": _SINGLE})
    encoded = msgspec.json.decode(msgspec.json.encode(field.conditional))
    assert encoded == {"field": "f0", "operator": "is_empty", "value": None}
    (field,) = decode_fields({**_TEXT, "conditional": {"any": [_SINGLE]}})
    assert msgspec.json.decode(msgspec.json.encode(field.conditional)) == {"any": [encoded]}


def test_fields_must_not_depend_on_themselves(subtests: pytest.Subtests) -> None:
    for names, wrong in [
        # Each field with the one that it depends on.
        ("a:a", "a"),
        ("a:b b:a", "a b"),
        ("a:b b:c c:a", "a b c"),
        ("a:b b:c c:b", "b c"),
        ("a:b b:a c:d d:c e:a f", "a b c d"),
        ("a:c b:c c", ""),
        ("a:b b:c c:d d", ""),
        ("d c:d b:c a:b", ""),
    ]:
        with subtests.test(names=names, wrong=wrong):
            fields = []
            for part in names.split():
                name, _, other = part.partition(":")
                rest = _conditional("is_not_empty", field=other) if other else {}
                fields.append({"id": name, "type": "text", **rest})
            if not wrong:
                form = build_form(*fields)
                order = [field.id for field in form.evaluation_order]
                assert sorted(order) == sorted(form.by_id)
                for part in names.split():
                    name, _, other = part.partition(":")
                    assert not other or order.index(other) < order.index(name)
                return
            paths = [
                f"fields.{number}.conditional.field" for number, part in enumerate(names.split())
            ]
            by_name = dict(zip((part[0] for part in names.split()), paths, strict=True))
            details = _refuse(*fields)
            assert details == {
                by_name[name]: "depends on this field itself" for name in wrong.split()
            }


def test_a_chain_of_all_fields_is_put_in_order_at_once() -> None:
    fields = [
        {"id": f"f{n}", "type": "text", **_conditional("is_empty", field=f"f{n + 1}")}
        for n in range(MAX_FIELDS - 1)
    ]
    started = time.process_time()
    form = build_form(*fields, {"id": f"f{MAX_FIELDS - 1}", "type": "text"})
    assert [field.id for field in form.evaluation_order] == [f"f{n}" for n in range(200)][::-1]
    assert time.process_time() - started < 0.5


# A field, then operators with operands that fit and with those that do not.
_BOX, _GROUP = {"type": "checkbox"}, {"type": "checkbox_group", "options": OPTIONS}
_NUMBER, _DATE = {"type": "number"}, {"type": "date"}
_TIME, _HIDDEN = {"type": "datetime"}, {"type": "hidden"}
_OPERANDS: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [
    (_TEXT, "equals", ["a", " ", "x" * 1000], [None, "", 1, True, ["a"], {"a": 1}, "x" * 1001]),
    (_TEXT, "not_equals", ["a"], [None, 1.5, [], {}]),
    (_TEXT, "contains", ["a"], [None, "", 1, ["a"], True]),
    (_TEXT, "in", [["a"], ["a"] * 100], [None, "a", [], [None], [1], [["a"]], [[]], [{}]]),
    (_TEXT, "in", [], [["a"] * 101, ["x" * 1001], {"a": 1}]),
    (_TEXT, "is_empty", [None], ["", "a", False, 0, []]),
    (_TEXT, "is_not_empty", [None], ["a", True]),
    (_TEXT, "gt", [], ["a", 1]),
    (_SELECT, "equals", ["sales"], [1, ["sales"]]),
    (_SELECT, "lt", [], ["sales"]),
    (_NUMBER, "equals", [1, 0.5, -3], ["1", True, None, [1], 10**400, 2**53]),
    (_NUMBER, "gt", [0, 1.5], ["1", True, None, [1]]),
    (_NUMBER, "lt", [0], [False, "2026-01-31"]),
    (_NUMBER, "in", [[1, 2.5]], [["1"], [True], 1]),
    (_NUMBER, "contains", [], [1, "1"]),
    ({"type": "rating"}, "gt", [3], ["3"]),
    ({"type": "slider"}, "lt", [3], ["3"]),
    (_BOX, "equals", [True, False], ["true", 1, 0, None, "yes"]),
    (_BOX, "in", [[True]], [True, ["true"]]),
    (_BOX, "gt", [], [True, 1]),
    (_BOX, "contains", [], ["a", True]),
    (_DATE, "gt", ["2026-01-31"], ["tomorrow", 2026, "2026-01-31T00:00:00Z", "2026-02-30"]),
    (_DATE, "equals", ["2026-01-31"], ["31.01.2026"]),
    (_TIME, "lt", ["2026-01-31T09:30:00Z"], ["2026-01-31", "2026-01-31T09:30:00+02:00"]),
    (_TIME, "gt", [], ["2026-01-31T09:30", "09:30", 1]),
    (_GROUP, "contains", ["sales"], [["sales"], 1]),
    (_GROUP, "equals", ["sales", ["sales", "rd"]], [[], [1], None]),
    (_GROUP, "in", [["sales"]], ["sales"]),
    (_GROUP, "gt", [], ["sales", 1]),
    (_HIDDEN, "equals", ["a", 1, True], [None, ["a"], {}, 10**400]),
    (_HIDDEN, "gt", [1, "a"], [["a"], None]),
]


def test_operands_have_the_type_that_the_field_stores(subtests: pytest.Subtests) -> None:
    for other, operator, good, bad in _OPERANDS:
        for value in good:
            with subtests.test(other["type"], operator=operator, good=str(value)[:40]):
                build_form(other, {**_TEXT, **_conditional(operator, value)})
        for value in bad:
            with subtests.test(other["type"], operator=operator, bad=str(value)[:40]):
                (path,) = _refuse(other, {**_TEXT, **_conditional(operator, value)})
                assert path in {"fields.1.conditional.value", "fields.1.conditional.operator"}


def test_a_deep_operand_is_refused() -> None:
    value: Any = "a"
    for _ in range(500):
        value = [value]
    for operator in ("equals", "in", "contains"):
        assert list(_refuse(_TEXT, {**_TEXT, **_conditional(operator, value)})) == [
            "fields.1.conditional.value"
        ]
    details = _refuse({"type": "text", "validation": {"x": value}})
    assert list(details) == ["fields.0.validation.x"]


# Patterns take time in proportion to their size and to the length of the text.

_SLOW = "[ab]*a[ab]{900}c"


def test_the_patterns_of_a_form_have_a_common_limit() -> None:
    def field(pattern: str, max_length: int) -> dict[str, Any]:
        return {"type": "text", "validation": {"pattern": pattern, "max_length": max_length}}

    build_form(*[field("[A-Z]{2}[0-9]{4}", 1000)] * MAX_FIELDS)
    build_form(*[field(_SLOW, 10_000)] * 2)
    details = _refuse(*[field(_SLOW, 10_000)] * 3)
    assert list(details) == ["fields"]
    assert "lower max_length" in details["fields"]


def test_the_slowest_patterns_of_a_form_take_less_than_a_second() -> None:
    validation = {"pattern": _SLOW, "max_length": 10_000}
    form = build_form(*[{"type": "text", "validation": validation}] * 2)
    started = time.process_time()
    for field in form.inputs:
        with pytest.raises(ValueError, match="required format"):
            field.type.check(field, "a" * 10_000)
    assert time.process_time() - started < 1


def test_a_checked_definition_is_prepared_after_it_was_stored() -> None:
    """Versions of forms are stored as JSON and read back."""
    for kind, validation, _ in GOOD:
        field = build_field(kind, validation)
        stored = msgspec.json.encode([field.definition])
        (prepared,) = FormDefinition(msgspec.json.decode(stored, type=list[Field])).fields
        assert (prepared.definition, prepared.rules) == (field.definition, field.rules)
