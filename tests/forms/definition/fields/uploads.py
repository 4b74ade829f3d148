"""Cases of the types of fields in app/domain/forms/definition/fields/uploads.py."""

import re

from hypothesis import strategies as st

from tests.forms.definition.fields.protocol import REFUSED, Cases
from tests.forms.definition.fields.samples import SIGNATURE
from tests.forms.definition.fields.strategies import generate_optional

CASES = Cases(
    good=[
        ("file", {}, [("fil_01k9x3m7e8c0v2q4r6t8w0y2a4", "fil_01k9x3m7e8c0v2q4r6t8w0y2a4")]),
        ("file", {"allowed_types": [".PDF", "txt"], "max_size_mb": 0.5}, [("fil_a", "fil_a")]),
        ("signature", {}, [(SIGNATURE, SIGNATURE), ("fil_a", "fil_a")]),
    ],
    bad=[
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
            "signature",
            {},
            {
                "begins with data:image/png;base64,": ["x", "data:image/jpeg;base64,/9j/"],
                "in base64": ["data:image/png;base64,%%%", f"{SIGNATURE}é", SIGNATURE[:-1] + "*"],
                "a PNG image": ["data:image/png;base64,AAAA", "data:image/png;base64,"],
                "at most 200,000": [SIGNATURE + "A" * 200_000],
            },
        ),
    ],
    messages=[
        ("file", {}, {" fil_abc ": "fil_abc", "here it is": REFUSED}),
        ("signature", {}, {SIGNATURE: SIGNATURE, "fil_a": "fil_a", "Ada": REFUSED}),
    ],
    wrong_rules=[
        ("signature", {"a": 1}, "a", "is not a known field"),
        ("file", {"types": ["pdf"]}, "types", "is not a known field"),
        ("file", {"allowed_types": []}, "allowed_types", "must not be empty"),
        ("file", {"allowed_types": "pdf"}, "allowed_types", "must be a list"),
        ("file", {"allowed_types": ["exe"]}, "allowed_types", "exe is not known here"),
        ("file", {"allowed_types": ["image/png"]}, "allowed_types", "image/png is not known here"),
        ("file", {"allowed_types": ["*"]}, "allowed_types", "* is not known here"),
        ("file", {"allowed_types": ["pdf"] * 51}, "allowed_types", "at most 50 items"),
        ("file", {"max_size_mb": 0}, "max_size_mb", "more than 0"),
        ("file", {"max_size_mb": 101}, "max_size_mb", "at most 100"),
    ],
    values={
        "file": st.text("abc_0", max_size=4).map("fil_{}".format),
        "signature": st.sampled_from([SIGNATURE, SIGNATURE[:-1], "data:image/png;base64,AAAA"]),
    },
    rules={
        "file": generate_optional("allowed_types", st.just(["pdf"])),
    },
    is_stored={
        "file": lambda _, value: bool(re.fullmatch("fil_[A-Za-z0-9]{1,60}", value)),
        "signature": lambda _, value: value.startswith("data:image/png;base64,iVBORw0KGgo"),
    },
)
