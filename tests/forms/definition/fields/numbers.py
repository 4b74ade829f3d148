"""Cases of the types of fields in app/domain/forms/definition/fields/numbers.py."""

from decimal import Decimal, localcontext
from typing import Any

from hypothesis import strategies as st

from tests.forms.definition.fields.protocol import REFUSED, Cases, Json
from tests.forms.definition.fields.strategies import generate_optional, generate_range, join

_NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
_NUMBERS = st.integers(-20, 20) | st.floats(-1e15, 1e15) | st.decimals(-9, 9, places=2).map(float)
_STEPS = generate_optional("step", st.sampled_from([0.01, 0.1, 0.25, 1, 3, 1e-15, 5e-324, 1e15]))


def _is_in_range(field: Json, value: Any) -> bool:
    defaults = {"min": 0, "max": 100, "step": 1} if field["type"] == "slider" else {}
    rules = {**defaults, **field["validation"]}
    if type(value) not in {int, float} or abs(value) >= 2**53:
        return False
    if value < rules.get("min", value) or value > rules.get("max", value):
        return False
    with localcontext() as context:
        context.prec = 1000
        distance = Decimal(str(value)) - Decimal(str(rules.get("min", 0)))
        return "step" not in rules or distance % Decimal(str(rules["step"])) == 0


CASES = Cases(
    good=[
        (
            "number",
            {},
            [
                (3, 3),
                (3.0, 3),
                (-0.0, 0),
                (0.1, 0.1),
                (-1e-7, -1e-7),
                (2**53 - 1, 2**53 - 1),
                (-(2**53 - 1), -(2**53 - 1)),
                (5e-324, 5e-324),
            ],
        ),
        ("number", {"min": -1, "max": 1}, [(-1, -1), (1.0, 1), (0.5, 0.5)]),
        ("number", {"step": 0.1}, [(0.3, 0.3), (-0.7, -0.7), (12, 12), (0, 0)]),
        ("number", {"min": 1, "step": 2}, [(1, 1), (3, 3)]),
        ("number", {"step": 1e-15, "max": 1e15}, [(1e15, 10**15), (0.1, 0.1)]),
        ("rating", {}, [(1, 1), (5, 5), (3.0, 3)]),
        ("rating", {"max": 100}, [(100, 100)]),
        ("rating", {"max": 1}, [(1, 1)]),
        ("slider", {}, [(0, 0), (100, 100), (50.0, 50)]),
        ("slider", {"min": -1, "max": 1, "step": 0.25}, [(-1, -1), (0.75, 0.75)]),
        ("slider", {"min": 5, "max": 5}, [(5, 5)]),
        ("slider", {"step": 30}, [(90, 90)]),
    ],
    bad=[
        (
            "number",
            {},
            {
                "must be a number": ["3", "NaN", "3 apples"],
                "must be from": [2**53, -(2**53), 10**400, -(10**400), 1e300, *_NOT_FINITE],
            },
        ),
        (
            "number",
            {"min": 0, "max": 9.5},
            {"at least 0": [-1, -5e-324], "at most 9.5": [10, 9.51]},
        ),
        ("number", {"step": 0.1}, {"steps of 0.1": [0.35, 1e-9]}),
        ("number", {"min": 1, "step": 2}, {"steps of 2 from 1": [2, 1.5]}),
        ("number", {"step": 1e15}, {"steps of": [5e-324, 1]}),
        ("rating", {}, {"from 1 to 5": [0, 6, -1, 2.5], "must be from": [10**400]}),
        ("rating", {"max": 3}, {"from 1 to 3": [4], "a number": ["3", True]}),
        ("slider", {}, {"at least 0": [-1], "at most 100": [101], "steps of 1": [1.5]}),
        ("slider", {"min": 10, "max": 20, "step": 4}, {"steps of 4 from 10": [20, 12]}),
    ],
    messages=[
        (
            "number",
            {},
            {
                "3": 3,
                "about 12.": 12,
                "-5": -5,
                "minus five": -5,
                "\u22125": -5,
                "1,234.5": 1234.5,
                "$1,000,000": 1_000_000,
                ".5": 0.5,
                "70 %": 70,
                "5kg": 5,
                "five": 5,
                "I think twenty-one": 21,
                "twenty one": 21,
                "1e3": 1000,
                "7, yes, 7": 7,
                "1,5": REFUSED,
                "1.234,56": REFUSED,
                "20 000": REFUSED,
                "3 or 4": REFUSED,
                "3-5": REFUSED,
                "1/2": REFUSED,
                "5\u00bd": REFUSED,
                "5\u00b2": REFUSED,
                "5k": REFUSED,
                "two million": REFUSED,
                "one hundred": REFUSED,
                "two and a half": REFUSED,
                "no one": REFUSED,
                "this one": REFUSED,
                "2026-01-31": REFUSED,
                "1.2.3": REFUSED,
                "v2": REFUSED,
                "9" * 400: REFUSED,
                "1e400": REFUSED,
                "NaN": REFUSED,
                "many": REFUSED,
            },
        ),
        ("number", {"min": 1, "max": 10}, {"ten": 10, "11": REFUSED, "zero": REFUSED}),
        (
            "rating",
            {},
            {
                "4": 4,
                "4 stars": 4,
                "3 out of 5": 3,
                "three out of five": 3,
                "3/5": 3,
                "4 of 5, thanks": 4,
                "\u2b50\u2b50\u2b50": 3,
                "\u2605\u2605\u2606\u2606\u2606": 2,
                "\u2b50 5/5": 5,
                "\u2606": REFUSED,
                "4.5 out of 5": REFUSED,
                "4.5": REFUSED,
                # Another scale than this one.
                "4 out of 10": REFUSED,
                "8/10": REFUSED,
                "0": REFUSED,
                "6": REFUSED,
                "1/5/2026": REFUSED,
                "3/5 or 4/5": REFUSED,
                "great": REFUSED,
            },
        ),
        ("rating", {"max": 10}, {"8/10": 8, "10 out of 10": 10, "3 out of 5": REFUSED}),
        (
            "slider",
            {},
            {"70": 70, "70%": 70, "70 out of 100": 70, "70.5": REFUSED, "7/10": REFUSED},
        ),
    ],
    wrong_rules=[
        ("number", {"min_length": 1}, "min_length", "is not a known field"),
        ("rating", {"min": 1}, "min", "is not a known field"),
        ("slider", {"maximum": 1}, "maximum", "is not a known field"),
        ("number", {"min": 2, "max": 1}, "min", "greater than max"),
        ("number", {"min": "1"}, "min", "must be a number"),
        ("number", {"min": True}, "min", "must be a number"),
        ("number", {"max": 1e16}, "max", "at most 1,000,000,000,000,000"),
        ("number", {"max": 10**400}, "max", "too large a number"),
        ("number", {"step": 0}, "step", "more than 0"),
        ("number", {"step": -1}, "step", "more than 0"),
        ("slider", {"min": 101}, "min", "greater than max"),
        ("slider", {"max": -1}, "min", "greater than max"),
        ("slider", {"min": None}, "min", "must be a number"),
        ("rating", {"max": 0}, "max", "at least 1"),
        ("rating", {"max": 101}, "max", "at most 100"),
        ("rating", {"max": 2.5}, "max", "a whole number"),
    ],
    values={
        "number": _NUMBERS,
        "slider": _NUMBERS | st.integers(0, 100),
        "rating": st.integers(0, 7) | st.floats(0, 6),
    },
    rules={
        "number": join(generate_range(_NUMBERS, "min", "max"), _STEPS),
        "slider": join(st.sampled_from([{}, {"min": -1, "max": 1}, {"max": 0.5}]), _STEPS),
        "rating": generate_optional("max", st.integers(1, 7)),
    },
    operands={
        "number": _NUMBERS,
        "slider": _NUMBERS,
        "rating": st.integers(0, 7),
    },
    is_stored={
        "number": _is_in_range,
        "slider": _is_in_range,
        "rating": lambda field, value: (
            type(value) is int and 1 <= value <= field["validation"].get("max", 5)
        ),
    },
)
