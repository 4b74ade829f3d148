"""E-mail addresses: their stored form, and the form for comparisons."""

import re
from functools import cache, lru_cache
from types import ModuleType

_MAX_CHARS = 254
# The part before the @ as almost everybody has it, which is stored as it is.
_PLAIN_LOCAL_PART = re.compile(r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*", re.ASCII)
_MAX_LOCAL_CHARS = 64


def normalize(text: str) -> str:
    """Returns the normalized address. Raises ValueError with a message for the user.

    It checks the syntax only, not whether the mailbox exists.
    """
    local_part, _, domain = text.partition("@")
    if len(local_part) > _MAX_LOCAL_CHARS or not _PLAIN_LOCAL_PART.fullmatch(local_part):
        return _validate(text)
    if len(text) > _MAX_CHARS:
        return _validate(text)
    return f"{local_part}@{_normalize_domain(domain)}"


@lru_cache(maxsize=1000)
def _normalize_domain(domain: str) -> str:
    """Checking a domain takes a fifth of a millisecond, and few domains have most addresses."""
    return _validate(f"name@{domain}").partition("@")[2]


@cache
def _load_library() -> ModuleType:
    # The import would make every process start later.
    import email_validator  # noqa: PLC0415

    # A self-hosted instance may send mail to `localhost` or `.local`.
    email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()
    return email_validator


def _validate(text: str) -> str:
    normalized: str = (
        _load_library()
        .validate_email(
            text,
            check_deliverability=False,
            allow_smtputf8=False,
            globally_deliverable=False,
            strict=True,
        )
        .normalized
    )
    return normalized


def comparable(text: str) -> str:
    """Returns the form in which addresses are looked up, counted and compared."""
    try:
        return normalize(text.strip()).lower()
    except ValueError:
        return text.strip().lower()


def mailbox(text: str) -> str:
    """Returns the comparable address without what follows a plus sign before the @, by which one
    mailbox has many addresses.
    """
    local_part, at, domain = comparable(text).rpartition("@")
    return f"{local_part.partition('+')[0] or local_part}{at}{domain}"
