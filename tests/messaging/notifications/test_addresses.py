"""E-mail addresses in the configs of mail channels."""

import pytest

from app.domain.messaging.notifications.providers import addresses


def test_a_sender_is_an_address_with_or_without_a_name(subtests: pytest.Subtests) -> None:
    for text, name, address in [
        ("ann@example.com", "", "ann@example.com"),
        ("Ann Lee <ann@example.com>", "Ann Lee", "ann@example.com"),
        ('"Lee, Ann" <ann@EXAMPLE.com>', "Lee, Ann", "ann@example.com"),
        ("Jürgen <j@bücher.example>", "Jürgen", "j@xn--bcher-kva.example"),
    ]:
        with subtests.test(text=text, name=name, address=address):
            assert addresses.parse(text) == (name, address)


def test_another_text_is_no_sender(subtests: pytest.Subtests) -> None:
    for text in ["", "ann", "ann@example.com\r\nBcc: eve@example.com", "a@b, c@d"]:
        with subtests.test(text=text):
            assert addresses.find_problem(text, []) is not None


def test_an_invalid_recipient_is_named_by_its_position() -> None:
    problem = addresses.find_problem("ann@example.com", ["bob@example.com", "nobody"])
    assert problem is not None
    assert problem[0] == "to.1"
