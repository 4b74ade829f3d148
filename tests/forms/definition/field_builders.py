"""Definitions of fields, with values that they accept and values that they refuse."""

import base64
from typing import Any

import msgspec

from app.domain.forms.definition.definitions import FormDefinition, check_fields
from app.domain.forms.definition.fields.definition import Field
from app.domain.forms.definition.fields.protocol import InputField
from app.domain.forms.definition.fields.registry import FIELD_TYPES
from app.kit.validation import decode

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
SIGNATURE = f"data:image/png;base64,{PNG}"
TABLE = {"type": "data_table", "table_id": "tbl_1", "value_column": "v", "label_column": "l"}
OPTIONS = [
    {"value": "sales", "label": "Sales"},
    {"value": "support", "label": "Support"},
    {"value": "rd", "label": "Research and Development"},
    {"value": "tech", "label": "Technical Support"},
]
HTML = "<script>alert('x')</script>&amp;"


def decode_fields(*fields: dict[str, Any]) -> list[Field]:
    """Decodes definitions as a body has them, with an id and a label each."""
    bodies = [{"id": f"f{number}", "label": "L", **body} for number, body in enumerate(fields)]
    decoded: list[Field] = decode(msgspec.json.encode(bodies), list[Field])
    return decoded


def build_form(*fields: dict[str, Any]) -> FormDefinition:
    definitions = decode_fields(*fields)
    check_fields(definitions)
    return FormDefinition(definitions)


def build_field(
    kind: str, validation: dict[str, Any] | None = None, **rest: Any
) -> InputField[Any]:
    """A choice has OPTIONS unless others are given."""
    if FIELD_TYPES[kind].has_options and "data_source" not in rest:
        rest = {"options": OPTIONS, **rest}
    field = {"id": "answer", "type": kind, "validation": validation or {}, **rest}
    # A form needs a field that is answered.
    return build_form(field, {"type": "text"}).by_id["answer"]


# Type, validation options, then pairs of a value and its stored form.
GOOD: list[tuple[str, dict[str, Any], list[tuple[Any, Any]]]] = [
    (
        "text",
        {},
        [
            ("Ada", "Ada"),
            ("  Ada ", "  Ada "),
            (HTML, HTML),
            ("=1+1", "=1+1"),
            ("日本語 🌍", "日本語 🌍"),
            ("x" * 1000, "x" * 1000),
            ("null", "null"),
        ],
    ),
    ("text", {"min_length": 3, "max_length": 5}, [("abc", "abc"), ("🌍🌍🌍🌍🌍", "🌍🌍🌍🌍🌍")]),
    ("text", {"max_length": 10_000}, [("x" * 10_000, "x" * 10_000)]),
    ("text", {"min_length": 0, "pattern": "[A-Z]{2}[0-9]+"}, [("AB1", "AB1")]),
    ("text", {"pattern": r"\p{L}+"}, [("Zoë", "Zoë")]),
    ("textarea", {}, [("a\r\nb\tc", "a\r\nb\tc"), (HTML, HTML), ("x" * 10_000, "x" * 10_000)]),
    ("textarea", {"max_length": 100_000}, [("x" * 100_000, "x" * 100_000)]),
    ("textarea", {"min_length": 2, "max_length": 2}, [("\na", "\na")]),
    (
        "email",
        {},
        [
            ("ada@example.com", "ada@example.com"),
            (" Ada.L+x@EXAMPLE.com ", "Ada.L+x@example.com"),
            ("root@localhost", "root@localhost"),
            ("ada@bücher.example", "ada@bücher.example"),
        ],
    ),
    (
        "phone",
        {},
        [
            ("+44 20 7946 0958", "+44 20 7946 0958"),
            (" (020) 7946-0958 ", "(020) 7946-0958"),
            ("12345", "12345"),
            ("1" * 20, "1" * 20),
        ],
    ),
    ("phone", {"pattern": r"\+44[0-9 ]+"}, [("+44 20 7946", "+44 20 7946")]),
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
    ("select", {}, [("sales", "sales")]),
    ("radio", {}, [("rd", "rd")]),
    ("multi_select", {}, [(["sales"], ["sales"]), (["rd", "sales"], ["rd", "sales"])]),
    (
        "multi_select",
        {"min_selections": 2, "max_selections": 3},
        [(["rd", "sales"], ["rd", "sales"]), (["rd", "sales", "tech"], ["rd", "sales", "tech"])],
    ),
    ("checkbox_group", {}, [(["support", "rd"], ["support", "rd"])]),
    ("checkbox", {}, [(True, True), (False, False)]),
    ("date", {}, [("2026-01-31", "2026-01-31"), ("0001-01-01", "0001-01-01")]),
    (
        "date",
        {"min_date": "2026-01-31", "max_date": "2026-02-01"},
        [("2026-01-31", "2026-01-31"), ("2026-02-01", "2026-02-01")],
    ),
    (
        "datetime",
        {},
        [
            ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"),
            ("2026-01-31T09:30", "2026-01-31T09:30:00Z"),
            ("2026-01-31 09:30:59", "2026-01-31T09:30:59Z"),
            ("2026-01-31T09:30:00.123456789Z", "2026-01-31T09:30:00Z"),
            ("2026-01-31T23:30:00-02:00", "2026-02-01T01:30:00Z"),
            ("2026-01-31T09:30:00+0530", "2026-01-31T04:00:00Z"),
        ],
    ),
    (
        "datetime",
        {"min_date": "2026-01-31T09:00:00+01:00", "max_date": "2026-01-31"},
        [
            ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
            ("2026-01-31T23:59:59.9Z", "2026-01-31T23:59:59Z"),
        ],
    ),
    (
        "datetime",
        {"min_date": "2026-01-31", "max_date": "2026-01-31T12:00"},
        [
            ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z"),
            ("2026-01-31T12:00", "2026-01-31T12:00:00Z"),
        ],
    ),
    ("file", {}, [("fil_01k9x3m7e8c0v2q4r6t8w0y2a4", "fil_01k9x3m7e8c0v2q4r6t8w0y2a4")]),
    ("file", {"allowed_types": [".PDF", "txt"], "max_size_mb": 0.5}, [("fil_a", "fil_a")]),
    (
        "url",
        {},
        [
            ("https://example.com", "https://example.com"),
            (" HTTP://Example.com:8080/a?b=c#d ", "HTTP://Example.com:8080/a?b=c#d"),
            ("http://localhost/", "http://localhost/"),
            ("https://bücher.example/ä_(b)", "https://bücher.example/ä_(b)"),
            ("https://example.com/@ada", "https://example.com/@ada"),
            ("http://192.0.2.1/", "http://192.0.2.1/"),
        ],
    ),
    (
        "hidden",
        {},
        [
            ("campaign-7", "campaign-7"),
            (True, True),
            (False, False),
            (0, 0),
            (7.0, 7),
            (0.5, 0.5),
            (HTML, HTML),
            ("x" * 1000, "x" * 1000),
        ],
    ),
    ("signature", {}, [(SIGNATURE, SIGNATURE)]),
    ("rating", {}, [(1, 1), (5, 5), (3.0, 3)]),
    ("rating", {"max": 100}, [(100, 100)]),
    ("rating", {"max": 1}, [(1, 1)]),
    ("slider", {}, [(0, 0), (100, 100), (50.0, 50)]),
    ("slider", {"min": -1, "max": 1, "step": 0.25}, [(-1, -1), (0.75, 0.75)]),
    ("slider", {"min": 5, "max": 5}, [(5, 5)]),
    ("slider", {"step": 30}, [(90, 90)]),
]

_NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
# Type, validation options, then a part of the message and the values that it is about.
BAD: list[tuple[str, dict[str, Any], dict[str, list[Any]]]] = [
    (
        "text",
        {},
        {
            "at most 1,000": ["x" * 1001],
            "one line": ["a\nb", "a\rb", "a\tb", "a\x7f", "a\x85b", "a\u2028b", "\x1b[31m"],
        },
    ),
    ("text", {"min_length": 3, "max_length": 5}, {"at least 3": ["ab"], "at most 5": ["abcdef"]}),
    ("text", {"max_length": 10_000}, {"at most 10,000": ["x" * 10_001]}),
    (
        "text",
        {"pattern": "[A-Z]{2}[0-9]+"},
        {"required form": ["AB", "xAB1", "AB1x", "AB1 ", "ab1", "A" * 1000]},
    ),
    ("textarea", {}, {"at most 10,000": ["x" * 10_001]}),
    ("textarea", {"min_length": 2, "max_length": 3}, {"least 2": ["a"], "most 3": ["a\n\nb"]}),
    (
        "email",
        {},
        {
            "e-mail address": [
                "ada",
                "ada@",
                "@example.com",
                "a b@example.com",
                "ada@example..com",
                "ada@example.com, bob@example.com",
                "ada@example.com\nBcc: bob@example.com",
                "Ada <ada@example.com>",
                "a" * 65 + "@example.com",
                "ä@example.com",
                f"ada@{'a.' * 130}example.com",
            ]
        },
    ),
    (
        "phone",
        {},
        {
            "phone number": [
                "1234",
                "1" * 21,
                "call me",
                "+44 20 7946 ext 9",
                "44+207946",
                "++4420794",
                "12345\n67890",
                "\u0661\u0662\u0663\u0664\u0665\u0666",
                "12345" + " " * 40 + "6",
            ]
        },
    ),
    ("phone", {"pattern": r"\+44[0-9 ]+"}, {"required form": ["+49 20 7946"]}),
    (
        "number",
        {},
        {
            "must be a number": ["3", "NaN", "3 apples"],
            "must be from": [2**53, -(2**53), 10**400, -(10**400), 1e300, *_NOT_FINITE],
        },
    ),
    ("number", {"min": 0, "max": 9.5}, {"at least 0": [-1, -5e-324], "at most 9.5": [10, 9.51]}),
    ("number", {"step": 0.1}, {"steps of 0.1": [0.35, 1e-9]}),
    ("number", {"min": 1, "step": 2}, {"steps of 2 from 1": [2, 1.5]}),
    ("number", {"step": 1e15}, {"steps of": [5e-324, 1]}),
    ("select", {}, {"one of the options: Sales, Support": ["Sales", "other", " sales", "SALES"]}),
    ("radio", {}, {"one of the options": ["4", "sales\n"]}),
    (
        "multi_select",
        {"min_selections": 2, "max_selections": 3},
        {
            "at least 2": [["sales"]],
            "at most 3": [["sales", "support", "rd", "tech"]],
            "each option once": [["sales", "sales"]],
            "a list": ["sales", {"0": "sales"}],
            "one of the options": [["sales", "other"], ["sales", ""]],
            "must be a string": [["sales", None], ["sales", ["rd"]], ["sales", 1]],
        },
    ),
    (
        "checkbox_group",
        {},
        {
            "a list": ["sales", True],
            "each option once": [["rd", "rd"]],
            "at most 500": [["sales"] * 501, ["sales"] * 1_000_000],
        },
    ),
    ("checkbox", {}, {"true or false": [1, 0, "true", "yes", "on"]}),
    (
        "date",
        {},
        {
            "a date": [
                "2026-02-30",
                "2026-1-1",
                "20260131",
                "2026-W05-6",
                "31.01.2026",
                "0000-01-01",
                "10000-01-01",
                "2026-01-31T00:00:00Z",
                " 2026-01-31",
                "2026-01-31\n",
                "\u0662\u0660\u0662\u0666-\u0660\u0661-\u0663\u0661",
                "tomorrow",
            ]
        },
    ),
    (
        "date",
        {"min_date": "2026-01-31", "max_date": "2026-02-01"},
        {"before 2026-01-31": ["2026-01-30"], "after 2026-02-01": ["2026-02-02"]},
    ),
    (
        "datetime",
        {},
        {
            "a time": [
                "2026-01-31",
                "2026-02-30T09:30:00Z",
                "2026-01-31T24:00:00Z",
                "2026-01-31T09:60:00Z",
                "2026-01-31T09:30:00 CET",
                "2026-01-31T09:30:00+25:00",
                "2026-01-31x09:30:00Z",
                "0001-01-01T00:00:00+14:00",
                "9999-12-31T23:59:59-14:00",
                "09:30",
                "2026-W05-6T09:30",
                "2026-01-31T09:30:00Z\n",
            ]
        },
    ),
    (
        "datetime",
        {"min_date": "2026-01-31T09:00:00+01:00", "max_date": "2026-01-31"},
        {
            "before 2026-01-31T09:00:00+01:00": ["2026-01-31T07:59:59Z"],
            "after 2026-01-31": ["2026-02-01T00:00:00Z", "2026-01-31T23:30:00-01:00"],
        },
    ),
    (
        "file",
        {},
        {
            "uploaded file": [
                "fil_",
                "fil_../x",
                "usr_01k9x3m7",
                "file.pdf",
                "fil_é",
                "fil_" + "a" * 61,
            ]
        },
    ),
    (
        "url",
        {},
        {
            "web address": [
                "example.com",
                "javascript:alert(1)",
                "javascript://example.com/%0aalert(1)",
                "data:text/html,x",
                "ftp://example.com",
                "//example.com",
                "https://",
                "https://com",
                "https://a..b",
                "https://-a.example",
                "https://example.com:99999",
                "https://user:secret@example.com",
                "https://bank.example@evil.example",
                "https:\\\\example.com",
                "https://exa mple.com",
                'https://example.com/"onload=',
                "https://example.com/<script>",
                "https://[::1",
                f"https://example.com/{'a' * 2000}",
            ],
            "one line": ["https://example.com/\nx", "java\tscript:alert(1)"],
        },
    ),
    ("hidden", {}, {"at most 1,000": ["x" * 1001], "must be from": [10**400]}),
    (
        "signature",
        {},
        {
            "begins with data:image/png;base64,": ["x", "data:image/jpeg;base64,/9j/"],
            "in base64": ["data:image/png;base64,%%%", f"{SIGNATURE}é", SIGNATURE[:-1] + "*"],
            "a PNG image": ["data:image/png;base64,AAAA", "data:image/png;base64,"],
            "at most 200,000": [SIGNATURE + "A" * 200_000],
        },
    ),
    ("rating", {}, {"from 1 to 5": [0, 6, -1, 2.5], "must be from": [10**400]}),
    ("rating", {"max": 3}, {"from 1 to 3": [4], "a number": ["3", True]}),
    ("slider", {}, {"at least 0": [-1], "at most 100": [101], "steps of 1": [1.5]}),
    ("slider", {"min": 10, "max": 20, "step": 4}, {"steps of 4 from 10": [20, 12]}),
    ("section", {}, {"no answer": ["x", "", True, [], {}]}),
    ("paragraph", {}, {"no answer": ["x", "", 0]}),
]
