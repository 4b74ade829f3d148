"""Cases of the types of fields in app/domain/forms/definition/fields/static.py."""

from tests.forms.definition.fields.protocol import REFUSED, Cases

CASES = Cases(
    bad=[
        ("section", {}, {"no answer": ["x", "", True, [], {}]}),
        ("paragraph", {}, {"no answer": ["x", "", 0]}),
        ("page_break", {}, {"no answer": ["x", "", False]}),
    ],
    messages=[
        ("section", {}, {"a": REFUSED}),
        ("paragraph", {}, {"a": REFUSED}),
        ("page_break", {}, {"a": REFUSED}),
    ],
    wrong_rules=[
        ("section", {"max_length": 1}, "max_length", "is not a known field"),
        ("paragraph", {"a": 1}, "a", "is not a known field"),
        ("page_break", {"a": 1}, "a", "is not a known field"),
    ],
)
