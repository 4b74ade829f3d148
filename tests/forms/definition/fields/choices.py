"""Cases of the types of fields in app/domain/forms/definition/fields/choices.py."""

from typing import Any

from hypothesis import strategies as st

from tests.forms.definition.fields.protocol import REFUSED, Cases, Json
from tests.forms.definition.fields.samples import OPTIONS
from tests.forms.definition.fields.strategies import generate_range

_CHOICES = st.sampled_from([option["value"] for option in OPTIONS])


def _is_choice(field: Json, value: Any) -> bool:
    return value in [option["value"] for option in field["options"]]


def _are_choices(field: Json, value: Any) -> bool:
    fewest = field["validation"].get("min_selections", 0)
    most = field["validation"].get("max_selections", 500)
    return (
        isinstance(value, list)
        and max(1, fewest) <= len(value) <= most
        and len(value) == len(set(value))
        and all(_is_choice(field, item) for item in value)
    )


CASES = Cases(
    good=[
        ("select", {}, [("sales", "sales")]),
        ("radio", {}, [("rd", "rd")]),
        ("multi_select", {}, [(["sales"], ["sales"]), (["rd", "sales"], ["rd", "sales"])]),
        (
            "multi_select",
            {"min_selections": 2, "max_selections": 3},
            [
                (["rd", "sales"], ["rd", "sales"]),
                (["rd", "sales", "tech"], ["rd", "sales", "tech"]),
            ],
        ),
        ("checkbox_group", {}, [(["support", "rd"], ["support", "rd"])]),
        ("checkbox", {}, [(True, True), (False, False)]),
    ],
    bad=[
        (
            "select",
            {},
            {"one of the options: Sales, Support": ["Sales", "other", " sales", "SALES"]},
        ),
        ("radio", {}, {"one of the options": ["4", "sales\n"]}),
        (
            "multi_select",
            {"min_selections": 2, "max_selections": 3},
            {
                "at least 2": [["sales"]],
                "at most 3": [["sales", "support", "rd", "tech"]],
                "not repeat an option": [["sales", "sales"]],
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
                "not repeat an option": [["rd", "rd"]],
                "at most 500": [["sales"] * 501, ["sales"] * 1_000_000],
            },
        ),
        ("checkbox", {}, {"true or false": [1, 0, "true", "yes", "on"]}),
    ],
    messages=[
        (
            "select",
            {},
            {
                "sales": "sales",
                "Sales": "sales",
                " SALES! ": "sales",
                "'Sales'": "sales",
                "rd": "rd",
                "I'd like Sales please": "sales",
                "2": "support",
                "2.": "support",
                "#2": "support",
                "option 2": "support",
                "number two": "support",
                "the second": "support",
                "The second one.": "support",
                "3rd": "rd",
                "the last one": "tech",
                # The longest label counts.
                "technical support": "tech",
                "Technical Support, please": "tech",
                "research and development": "rd",
                "not Sales": REFUSED,
                "anything but sales": REFUSED,
                "I don't want Sales": REFUSED,
                "Sales or Support": REFUSED,
                "Sales, Research and Development": REFUSED,
                "wholesales": REFUSED,
                "5": REFUSED,
                "0": REFUSED,
                "00011": REFUSED,
                "9" * 400: REFUSED,
                "\u00b2": REFUSED,
                "the eleventh": REFUSED,
                "...": REFUSED,
                "other": REFUSED,
            },
        ),
        ("radio", {}, {"Support": "support", "first": "sales"}),
        (
            "multi_select",
            {},
            {
                "Sales": ["sales"],
                "Sales and Support": ["sales", "support"],
                "sales, SUPPORT": ["sales", "support"],
                "Sales & Support": ["sales", "support"],
                "I'd like Sales and Support, please.": ["sales", "support"],
                "Both Sales and Support": ["sales", "support"],
                "Research and Development": ["rd"],
                "Research and Development, Sales": ["rd", "sales"],
                "Technical Support and Sales": ["tech", "sales"],
                "1 and 3": ["sales", "rd"],
                "1, 1, 2": ["sales", "support"],
                "the first and the last": ["sales", "tech"],
                "Sales and 2": ["sales", "support"],
                "all of them": ["sales", "support", "rd", "tech"],
                "Everything!": ["sales", "support", "rd", "tech"],
                "Sales and Marketing": REFUSED,
                "Sales but not Support": REFUSED,
                "Sales or Support": ["sales", "support"],
                "Sales and/or Support": ["sales", "support"],
                "Sales plus Support": ["sales", "support"],
                "Sales; Support": ["sales", "support"],
                "Sales\nSupport\n": ["sales", "support"],
                "tech and rd": ["tech", "rd"],
                "rd; Sales & tech": ["sales", "rd", "tech"],
                "either Sales or Support": REFUSED,
                "everything except Sales": REFUSED,
                "none": REFUSED,
                "both": REFUSED,
                "1 and 9": REFUSED,
                ", and ,": REFUSED,
            },
        ),
        (
            "multi_select",
            {"min_selections": 2, "max_selections": 2},
            {"Sales and Support": ["sales", "support"], "Sales": REFUSED, "all": REFUSED},
        ),
        ("checkbox_group", {}, {"Support + Sales": ["support", "sales"]}),
        (
            "checkbox",
            {},
            {
                "yes": True,
                "Yes please!": True,
                "y": True,
                "OK": True,
                "sure thing": True,
                "of course": True,
                "I agree": True,
                "I do agree to the terms": True,
                "Yes, I accept": True,
                "1": True,
                "on": True,
                "no": False,
                "No, thanks": False,
                "nope": False,
                "I don't agree": False,
                "I don\u2019t agree": False,
                "I do not accept": False,
                "No, I do not agree": False,
                "not now": False,
                "off": False,
                "Do I have to agree?": REFUSED,
                "ok?": REFUSED,
                "not sure": REFUSED,
                "I don't mind": REFUSED,
                "I do not disagree": REFUSED,
                "yes and no": REFUSED,
                "Yes, but not the newsletter": REFUSED,
                "of course not": REFUSED,
                "no problem": REFUSED,
                "no, I agree": REFUSED,
                "maybe": REFUSED,
                "on second thought, wait": REFUSED,
                "I have 1 question": REFUSED,
                "yesterday": REFUSED,
            },
        ),
    ],
    wrong_rules=[
        ("select", {"min_selections": 1}, "min_selections", "is not a known field"),
        ("radio", {"options": []}, "options", "is not a known field"),
        ("checkbox_group", {"max_selections": 1}, "max_selections", "is not a known field"),
        ("checkbox", {"max": 1}, "max", "is not a known field"),
        (
            "multi_select",
            {"min_selections": 3, "max_selections": 2},
            "min_selections",
            "greater than max_selections",
        ),
        ("multi_select", {"min_selections": 5}, "min_selections", "number of options"),
        ("multi_select", {"min_selections": -1}, "min_selections", "at least 0"),
        ("multi_select", {"max_selections": 0}, "max_selections", "at least 1"),
        ("multi_select", {"max_selections": 501}, "max_selections", "at most 500"),
    ],
    values={
        "select": _CHOICES,
        "radio": _CHOICES,
        "multi_select": st.lists(_CHOICES, max_size=5),
        "checkbox_group": st.lists(_CHOICES, max_size=5),
        "checkbox": st.booleans(),
    },
    rules={
        "multi_select": generate_range(st.integers(1, 4), "min_selections", "max_selections"),
    },
    operands={
        **dict.fromkeys(("select", "radio", "multi_select", "checkbox_group"), _CHOICES),
        "checkbox": st.booleans(),
    },
    is_stored={
        "select": _is_choice,
        "radio": _is_choice,
        "multi_select": _are_choices,
        "checkbox_group": _are_choices,
        "checkbox": lambda field, value: (
            value is True or (value is False and not field["required"])
        ),
    },
)
