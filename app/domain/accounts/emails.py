"""E-mail addresses: what can be registered, and when two of them are the same."""

import email_validator

from app.http.errors import Invalid

# An instance of one's own may well mail to `localhost` or `.local`.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


def checked(field: str, text: str) -> str:
    """An address that a mail can be sent to; whether somebody reads it, only a mail can tell."""
    try:
        return _normal(text)
    except email_validator.EmailNotValidError as problem:
        raise Invalid.field(field, str(problem)) from None


def comparable(text: str) -> str:
    """The one way in which an address is looked up and counted, whoever wrote it how."""
    try:
        return _normal(text.strip()).lower()
    except email_validator.EmailNotValidError:
        return text.strip().lower()


def _normal(text: str) -> str:
    return email_validator.validate_email(
        text,
        check_deliverability=False,
        allow_smtputf8=False,
        globally_deliverable=False,
        strict=True,
    ).normalized
