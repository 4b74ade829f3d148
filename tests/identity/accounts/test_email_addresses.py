"""E-mail addresses are normalized as the library does, whichever way they are checked."""

import email_validator
import pytest

from app.kit import email_addresses

_ADDRESSES = [
    "ada@example.com",
    "ADA.Lovelace+tag@EXAMPLE.com",
    "root@localhost",
    "ada@bücher.example",
    "o'brien@example.com",
    f"{'a' * 64}@example.com",
    f"{'a' * 65}@example.com",
    f"a@{'.'.join(['b' * 60] * 4)}.com",
    "a..b@example.com",
    ".a@example.com",
    "a.@example.com",
    "ada@example..com",
    "ada@-example.com",
    "ada@@example.com",
    "ada@",
    "@example.com",
    "ada",
    "",
    '"ada"@example.com',
    "ada@[127.0.0.1]",
    "äda@example.com",
    "ada @example.com",
    "ada@example.com\n",
]


def _ask_library(address: str) -> str | None:
    try:
        return email_validator.validate_email(
            address,
            check_deliverability=False,
            allow_smtputf8=False,
            globally_deliverable=False,
            strict=True,
        ).normalized
    except email_validator.EmailNotValidError:
        return None


def test_an_address_is_normalized_or_refused_as_by_the_library(subtests: pytest.Subtests) -> None:
    for address in _ADDRESSES:
        with subtests.test(address=address):
            expected = _ask_library(address)
            if expected is None:
                with pytest.raises(ValueError, match=r"."):
                    email_addresses.normalize(address)
            else:
                assert email_addresses.normalize(address) == expected
