"""Cases of the types of fields in app/domain/forms/definition/fields/texts.py."""

import re
from typing import Any

from hypothesis import strategies as st

from tests.forms.definition.fields.protocol import REFUSED, Cases, Json
from tests.forms.definition.fields.samples import HTML
from tests.forms.definition.fields.strategies import (
    LINES,
    SCALARS,
    TEXTS,
    generate_optional,
    generate_range,
    join,
)

_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]*")
_LENGTHS = generate_range(st.integers(1, 12), "min_length", "max_length")
_PATTERNS = st.sampled_from(["[a-c]+", "[0-9]{1,3}", ".*[0-9].*", "[^a]*"])
_ADDRESSES = st.sampled_from(
    ["https://example.com", "http://a.b/c?d", "https://u@a.b", "HTTPS://A.B", "a.b", "https://a"]
)


def _has_length(field: Json, value: Any, default: int) -> bool:
    rules = field["validation"]
    shortest, longest = rules.get("min_length", 0), rules.get("max_length", default)
    return isinstance(value, str) and shortest <= len(value) <= longest


def _is_text(field: Json, value: Any) -> bool:
    pattern = field["validation"].get("pattern", ".*")
    is_line = _has_length(field, value, 1000) and _LINE.fullmatch(value) is not None
    return is_line and re.fullmatch(pattern, value) is not None


def _is_phone(field: Json, value: Any) -> bool:
    pattern = field["validation"].get("pattern", ".*")
    is_number = re.fullmatch(r"\+?[0-9()\-./ \xa0]{5,40}", value) and re.fullmatch(pattern, value)
    return bool(is_number) and 5 <= len(re.findall("[0-9]", value)) <= 20


def _is_web_address(field: Json, value: Any) -> bool:
    return bool(re.fullmatch(r"https?://[^\s<>\"@/?#]+([/?#][^\s<>\"]*)?", value, re.IGNORECASE))


CASES = Cases(
    good=[
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
        (
            "text",
            {"min_length": 3, "max_length": 5},
            [("abc", "abc"), ("🌍🌍🌍🌍🌍", "🌍🌍🌍🌍🌍")],
        ),
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
    ],
    bad=[
        (
            "text",
            {},
            {
                "at most 1,000": ["x" * 1001],
                "one line": ["a\nb", "a\rb", "a\tb", "a\x7f", "a\x85b", "a\u2028b", "\x1b[31m"],
            },
        ),
        (
            "text",
            {"min_length": 3, "max_length": 5},
            {"at least 3": ["ab"], "at most 5": ["abcdef"]},
        ),
        ("text", {"max_length": 10_000}, {"at most 10,000": ["x" * 10_001]}),
        (
            "text",
            {"pattern": "[A-Z]{2}[0-9]+"},
            {"required format": ["AB", "xAB1", "AB1x", "AB1 ", "ab1", "A" * 1000]},
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
        ("phone", {"pattern": r"\+44[0-9 ]+"}, {"required format": ["+49 20 7946"]}),
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
    ],
    messages=[
        ("text", {}, {" Ada \n": "Ada", HTML: HTML, "a\nb": REFUSED}),
        ("text", {"pattern": "[A-Z]+"}, {"ABC ": "ABC", "abc": REFUSED}),
        ("textarea", {}, {"\n a\nb ": "a\nb"}),
        (
            "email",
            {},
            {
                "ada@example.com": "ada@example.com",
                "my mail is ada@example.com.": "ada@example.com",
                "It's Ada@Example.com!": "Ada@example.com",
                "Ada <ada@example.com>": "ada@example.com",
                "mailto:ada@example.com": "ada@example.com",
                '"ada@example.com"?': "ada@example.com",
                "ada@example.com, yes, ada@example.com": "ada@example.com",
                "ada@example.com or bob@example.com": REFUSED,
                "ada at example dot com": REFUSED,
                "I have none": REFUSED,
            },
        ),
        (
            "phone",
            {},
            {
                "+44 20 7946 0958": "+44 20 7946 0958",
                "It is +44 (0)20 7946-0958.": "+44 (0)20 7946-0958",
                "call (020) 7946 0958 please": "(020) 7946 0958",
                "tel:+442079460958": "+442079460958",
                "+ 44 20 7946 0958": "+ 44 20 7946 0958",
                "020 7946 0958 or 020 7946 0000": REFUSED,
                "020 7946 0958 ext. 12": REFUSED,
                "1234": REFUSED,
                "later": REFUSED,
            },
        ),
        ("phone", {"pattern": r"\+44.*"}, {"it's +44 20 7946 0958": "+44 20 7946 0958"}),
        (
            "url",
            {},
            {
                "https://example.com": "https://example.com",
                "see https://example.com/a?b=1.": "https://example.com/a?b=1",
                "(https://example.com)": "https://example.com",
                "https://example.com/wiki/A_(b)": "https://example.com/wiki/A_(b)",
                "<https://example.com>": "https://example.com",
                "www.example.com": "https://www.example.com",
                "my site is example.com": "https://example.com",
                "example.com/about, thanks": "https://example.com/about",
                "HTTP://example.com": "HTTP://example.com",
                "ada@example.com": REFUSED,
                "mailto:ada@example.com": REFUSED,
                "javascript:alert(1)": REFUSED,
                "ftp://example.com": REFUSED,
                "https://example.com or https://example.org": REFUSED,
                "I have no page": REFUSED,
            },
        ),
        ("hidden", {}, {" a ": "a"}),
    ],
    wrong_rules=[
        (
            "text",
            {"min": 1},
            "min",
            "use one of: min_length, max_length, pattern",
        ),
        ("textarea", {"pattern": "a"}, "pattern", "is not a known field"),
        ("email", {"min_length": 1}, "min_length", "is not a known field"),
        ("phone", {"max_length": 5}, "max_length", "is not a known field"),
        ("url", {"pattern": "a"}, "pattern", "is not a known field"),
        ("hidden", {"max_length": 1}, "max_length", "is not a known field"),
        ("text", {"min_length": -1}, "min_length", "at least 0"),
        ("text", {"max_length": 0}, "max_length", "at least 1"),
        ("text", {"max_length": 10_001}, "max_length", "at most 10,000"),
        ("textarea", {"max_length": 100_001}, "max_length", "at most 100,000"),
        ("text", {"min_length": 6, "max_length": 5}, "min_length", "greater than max_length"),
        ("text", {"min_length": 1001}, "min_length", "1,000 by default"),
        ("textarea", {"min_length": 10_001}, "min_length", "10,000 by default"),
        ("text", {"min_length": "3"}, "min_length", "a whole number"),
        ("text", {"min_length": True}, "min_length", "a whole number"),
        ("text", {"max_length": 10**400}, "max_length", "at most 100,000"),
        # Patterns: RE2 has what takes linear time.
        ("text", {"pattern": "(?=a)b"}, "pattern", "no lookaheads"),
        ("text", {"pattern": "(?!a)b"}, "pattern", "no lookaheads"),
        ("text", {"pattern": "(?<=a)b"}, "pattern", "no lookaheads"),
        ("text", {"pattern": r"(a)\1"}, "pattern", "no references"),
        ("phone", {"pattern": r"(?P<x>a)(?P=x)"}, "pattern", "no references"),
        ("text", {"pattern": "("}, "pattern", "missing )"),
        ("text", {"pattern": "["}, "pattern", "missing ]"),
        ("text", {"pattern": "*"}, "pattern", "no argument"),
        ("text", {"pattern": "a{1001}"}, "pattern", "repetition"),
        ("text", {"pattern": r"\p{L}{900}"}, "pattern", "too large"),
        ("text", {"pattern": ""}, "pattern", "must not be empty"),
        ("text", {"pattern": "a" * 501}, "pattern", "at most 500 characters"),
        ("text", {"pattern": ["a"]}, "pattern", "str"),
    ],
    values={
        "text": LINES,
        "textarea": LINES | TEXTS,
        "email": st.text("aB1@.-+ \u00fc", max_size=10) | LINES.map("a@b.{}".format),
        "phone": st.text("0123456789+() -", min_size=4, max_size=22),
        "url": _ADDRESSES,
        "hidden": SCALARS,
    },
    rules={
        "text": join(_LENGTHS, generate_optional("pattern", _PATTERNS)),
        "textarea": _LENGTHS,
        "phone": generate_optional("pattern", st.sampled_from([".*[0-9]", r"\+.*"])),
    },
    operands={
        "hidden": st.booleans() | st.integers(-3, 3) | LINES,
    },
    is_stored={
        "text": _is_text,
        "textarea": lambda field, value: _has_length(field, value, 10_000),
        "email": lambda _, value: bool(re.fullmatch(r"[!-~]{1,64}@[^\s@]{1,253}", value)),
        "phone": _is_phone,
        "url": _is_web_address,
        "hidden": lambda _, value: type(value) in {str, int, float, bool},
    },
)
