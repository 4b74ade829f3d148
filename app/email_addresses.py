"""E-mail addresses: their stored form, and the form for comparisons."""

import email_validator

# A self-hosted instance may send mail to `localhost` or `.local`.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


def normalize(text: str) -> str:
    """Returns the normalized address. Raises ValueError with a message for the user.

    It checks the syntax only, not whether the mailbox exists.
    """
    return email_validator.validate_email(
        text,
        check_deliverability=False,
        allow_smtputf8=False,
        globally_deliverable=False,
        strict=True,
    ).normalized


def comparable(text: str) -> str:
    """Returns the form in which addresses are looked up, counted and compared."""
    try:
        return normalize(text.strip()).lower()
    except ValueError:
        return text.strip().lower()
