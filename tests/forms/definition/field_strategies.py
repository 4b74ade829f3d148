"""Generates forms with all types of fields, and answers that are right, wrong or strange."""

from datetime import UTC, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from app.domain.forms.definition.fields.registry import FIELD_TYPES
from tests.forms.definition.field_cases import OPTIONS, SIGNATURE

Json = dict[str, Any]

# With lone surrogates and NUL characters. The strategies of texts take seconds to start.
_STRANGE = st.sampled_from("\0\n\t \x7f\x85\u2028\u202e\ufeff\ud800\udfff<\"'\\\u00e9\U0001f30d")
TEXTS = st.lists(_STRANGE | st.integers(0, 0x10FFFF).map(chr), max_size=20).map("".join)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from([10**400, -(10**400), "\0", "\ud800", " ", "x" * 20_000, "0" * 300])
)
JSON_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=6,
)
_NUMBERS = st.integers(-20, 20) | st.floats(-1e15, 1e15) | st.decimals(-9, 9, places=2).map(float)
_DATES = st.dates().map(str)
_ZONES = st.sampled_from(
    [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=9))]
)
_TIMES = st.datetimes(timezones=_ZONES | st.none()).map(
    lambda time: time.isoformat(timespec="seconds")
)
_UTC_TIMES = st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "Z")
_CHOICES = st.sampled_from([option["value"] for option in OPTIONS])
_LINES = st.text("abcX019 \u00e9\U0001f30d", min_size=1, max_size=8)
_PATTERNS = st.sampled_from(["[a-c]+", "[0-9]{1,3}", ".*[0-9].*", "[^a]*"])
_ADDRESSES = st.sampled_from(
    ["https://example.com", "http://a.b/c?d", "https://u@a.b", "HTTPS://A.B", "a.b", "https://a"]
)
_PHONES = st.text("0123456789+() -", min_size=4, max_size=22)

# Values that the type stores, more often than not.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": _LINES,
    "textarea": _LINES | TEXTS,
    "email": st.text("aB1@.-+ \u00fc", max_size=10) | _LINES.map("a@b.{}".format),
    "phone": _PHONES,
    "number": _NUMBERS,
    "slider": _NUMBERS | st.integers(0, 100),
    "rating": st.integers(0, 7) | st.floats(0, 6),
    "select": _CHOICES,
    "radio": _CHOICES,
    "multi_select": st.lists(_CHOICES, max_size=5),
    "checkbox_group": st.lists(_CHOICES, max_size=5),
    "checkbox": st.booleans(),
    "date": _DATES,
    "datetime": _TIMES,
    "file": st.text("abc_0", max_size=4).map("fil_{}".format),
    "url": _ADDRESSES,
    "signature": st.sampled_from([SIGNATURE, SIGNATURE[:-1], "data:image/png;base64,AAAA"]),
    "hidden": _SCALARS,
}
_OPERATORS = st.sampled_from(
    ["equals", "not_equals", "contains", "gt", "lt", "is_empty", "is_not_empty", "in"]
)
_ORDERED = {name for name, kind in FIELD_TYPES.items() if kind.is_ordered}
# What the type can be compared with.
_OPERANDS: dict[str, st.SearchStrategy[Any]] = {
    "number": _NUMBERS,
    "slider": _NUMBERS,
    "rating": st.integers(0, 7),
    "checkbox": st.booleans(),
    "date": _DATES,
    "datetime": _UTC_TIMES,
    "hidden": st.booleans() | st.integers(-3, 3) | _LINES,
    **dict.fromkeys(("select", "radio", "multi_select", "checkbox_group"), _CHOICES),
}


def _range(values: st.SearchStrategy[Any], low: str, high: str) -> st.SearchStrategy[Json]:
    pairs = st.tuples(values, values).map(sorted).map(lambda pair: {low: pair[0], high: pair[1]})
    return pairs | values.map(lambda value: {high: value}) | st.just({})


def _join(*parts: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.tuples(*parts).map(lambda maps: {k: v for part in maps for k, v in part.items()})


def _maybe(key: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.just({}) | values.map(lambda value: {key: value})


_LENGTHS = _range(st.integers(1, 12), "min_length", "max_length")
_STEPS = _maybe("step", st.sampled_from([0.01, 0.1, 0.25, 1, 3, 1e-15, 5e-324, 1e15]))
_RULES: dict[str, st.SearchStrategy[Json]] = {
    "text": _join(_LENGTHS, _maybe("pattern", _PATTERNS)),
    "textarea": _LENGTHS,
    "phone": _maybe("pattern", st.sampled_from([".*[0-9]", r"\+.*"])),
    "number": _join(_range(_NUMBERS, "min", "max"), _STEPS),
    "slider": _join(st.sampled_from([{}, {"min": -1, "max": 1}, {"max": 0.5}]), _STEPS),
    "rating": _maybe("max", st.integers(1, 7)),
    "multi_select": _range(st.integers(1, 4), "min_selections", "max_selections"),
    "date": _range(_DATES, "min_date", "max_date"),
    "datetime": _range(_DATES, "min_date", "max_date") | _range(_UTC_TIMES, "min_date", "max_date"),
    "file": _maybe("allowed_types", st.just(["pdf"])),
}


@st.composite
def _conditionals(draw: st.DrawFn, others: list[Json]) -> Json:
    other = draw(st.sampled_from(others))
    kind, operator = other["type"], draw(_OPERATORS)
    if operator in {"gt", "lt"} and kind not in _ORDERED:
        operator = "is_not_empty"
    if operator == "contains" and kind in {"checkbox", *_ORDERED}:
        operator = "not_equals"
    operands = _OPERANDS.get(kind, _LINES)
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
            "validation": draw(_RULES.get(kind, st.just({}))),
            "options": OPTIONS if type_.has_options else [],
        }
        others = [other for other in fields if FIELD_TYPES[other["type"]].has_value]
        has_conditional = draw(st.booleans())
        if others and has_conditional:
            field["conditional"] = draw(_conditionals(others))
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
    return fields, answers | draw(_maybe("unknown", JSON_VALUES))
