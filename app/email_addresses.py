"""E-mail addresses: the one form in which they are kept, and when two of them are the same."""

import email_validator

# An instance of one's own may well mail to `localhost` or `.local`.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


def normalize(text: str) -> str:
    """An address that a mail can be sent to; whether somebody reads it, only a mail can tell.

    Raises ValueError, with a message for the one who wrote it.
    """
    return email_validator.validate_email(
        text,
        check_deliverability=False,
        allow_smtputf8=False,
        globally_deliverable=False,
        strict=True,
    ).normalized


def comparable(text: str) -> str:
    """How an address is looked up and counted, however somebody wrote it."""
    try:
        return normalize(text.strip()).lower()
    except ValueError:
        return text.strip().lower()
