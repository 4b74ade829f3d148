"""The values that an approval shows to those who are asked."""

from typing import Any

import pytest

from app.domain.automation.approvals import details
from app.domain.automation.approvals.details import MAX_DETAILS, MAX_VALUE_CHARS
from app.domain.automation.approvals.schemas import Detail
from app.net.secret_fields import MASK

# A value, and what is shown of it.
VALUES: list[tuple[Any, str]] = [
    ("text", "text"),
    (49.9, "49.9"),
    (True, "true"),
    ("two\nlines", "two\nlines"),
    ({"name": "Ada", "api_key": "k"}, f'{{"name":"Ada","api_key":"{MASK}"}}'),
    ([{"password": "p"}, 1], f'[{{"password":"{MASK}"}},1]'),
    ({"a": {"b": {"c": {"password": "p"}}}}, '{"a":{"b":{"c":"…"}}}'),
    ("a\x00b", "ab"),
    ("x" * MAX_VALUE_CHARS, "x" * MAX_VALUE_CHARS),
    ("x" * (MAX_VALUE_CHARS + 1), "x" * (MAX_VALUE_CHARS - 1) + "…"),
]


def test_a_value_is_a_short_text_without_secrets(subtests: pytest.Subtests) -> None:
    for value, text in VALUES:
        with subtests.test(str(value)[:40]):
            assert details.build({"Value": value}) == [Detail("Value", text)]


def test_a_name_of_a_secret_masks_its_value(subtests: pytest.Subtests) -> None:
    for name in ("password", "API key", "access_token", "Client Secret"):
        with subtests.test(name):
            assert details.build({name: "hunter2"}) == [Detail(name, MASK)]


def test_the_first_values_are_shown_in_their_order() -> None:
    values = {f"Name {number}": number for number in range(MAX_DETAILS + 1)}
    names = [detail.name for detail in details.build(values)]
    assert names == list(values)[:MAX_DETAILS]


def test_a_long_list_is_cut_off() -> None:
    (detail,) = details.build({"Numbers": list(range(100))})
    assert detail.value.endswith('19,"…"]')
