"""Generates forms with all types of fields, and answers that are right, wrong or strange."""

from typing import Any

from hypothesis import strategies as st

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from tests.forms.definition.fields.registry import OPERANDS, RULES, VALUES
from tests.forms.definition.fields.samples import OPTIONS
from tests.forms.definition.fields.strategies import LINES, SCALARS, TEXTS, generate_optional

Json = dict[str, Any]

JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=6,
)
_OPERATORS = st.sampled_from(
    ["equals", "not_equals", "contains", "gt", "lt", "is_empty", "is_not_empty", "in"]
)
_ORDERED = {name for name, kind in FIELD_TYPES.items() if kind.is_ordered}


@st.composite
def _conditionals(draw: st.DrawFn, others: list[Json]) -> Json:
    other = draw(st.sampled_from(others))
    kind, operator = other["type"], draw(_OPERATORS)
    if operator in {"gt", "lt"} and kind not in _ORDERED:
        operator = "is_not_empty"
    if operator == "contains" and kind in {"checkbox", *_ORDERED}:
        operator = "not_equals"
    operands = OPERANDS.get(kind, LINES)
    if operator == "in":
        operands = st.lists(operands, min_size=1, max_size=3)
    value = None if operator.endswith("_empty") else draw(operands)
    return {"field": other["id"], "operator": operator, "value": value}


@st.composite
def forms(draw: st.DrawFn) -> list[Json]:
    """Definitions that are right. Conditionals name fields before and after them."""
    fields: list[Json] = []
    for kind in draw(st.lists(st.sampled_from(sorted(FIELD_TYPES)), min_size=1, max_size=6)):
        type_ = FIELD_TYPES[kind]
        field: Json = {
            "id": f"f{len(fields)}",
            "type": kind,
            "label": "L",
            "required": type_.has_value and draw(st.booleans()),
            "validation": draw(RULES.get(kind, st.just({}))),
            "options": OPTIONS if type_.has_options else [],
        }
        others = [other for other in fields if FIELD_TYPES[other["type"]].has_value]
        has_conditional = draw(st.booleans())
        if others and has_conditional:
            single = _conditionals(others)
            groups = st.sampled_from(["all", "any"]), st.lists(single, min_size=1, max_size=3)
            field["conditional"] = draw(
                single | st.tuples(*groups).map(lambda pair: {pair[0]: pair[1]})
            )
        fields.append(field)
    if not any(FIELD_TYPES[field["type"]].has_value for field in fields):
        fields.append({**fields[0], "id": "last", "type": "text", "validation": {}})
    return draw(st.permutations(fields))


@st.composite
def forms_with_answers(draw: st.DrawFn) -> tuple[list[Json], Json]:
    fields = draw(forms())
    answers = {
        field["id"]: draw(VALUES.get(field["type"], st.none()) | JSON_VALUES)
        for field in fields
        if draw(st.integers(0, 4))
    }
    return fields, answers | draw(generate_optional("unknown", JSON_VALUES))
