"""Texts and phone numbers of SMS."""

import re

from .protocol import Notice

# The limit of Twilio; Vonage accepts more.
MAX_CHARS = 1600
_CUT = "..."
_NUMBER = re.compile(r"\+?[1-9][0-9]{6,14}\Z")


def build_text(notice: Notice) -> str:
    """Returns the title and the message. Providers count characters of UTF-16."""
    text = ": ".join(filter(None, [notice.subject, notice.text]))
    encoded = text.encode("utf-16-le")
    if len(encoded) <= 2 * MAX_CHARS:
        return text
    return encoded[: 2 * (MAX_CHARS - len(_CUT))].decode("utf-16-le", "ignore") + _CUT


def strip_plus(number: str) -> str:
    return number.removeprefix("+")


def find_problem(recipients: list[str]) -> tuple[str, str] | None:
    """Returns the key of a phone number that is not valid, and the reason."""
    for index, recipient in enumerate(recipients):
        if not _NUMBER.match(recipient):
            return f"to.{index}", "must be a phone number with its country code, like +14155550100"
    return None
