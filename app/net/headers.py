"""Custom headers of outgoing requests: which names are allowed, and which values are secret."""

import re
from collections.abc import Iterator
from typing import Final

from app.kit.errors import Invalid, Problem

MAX_HEADERS: Final = 20
_MAX_VALUE_CHARS = 4096
_MAX_TOTAL_CHARS = 8192
_MAX_NAME_CHARS = 100
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
# Set by the service in every outgoing request.
_RESERVED = frozenset(
    {
        "host",
        "content-length",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "keep-alive",
        "proxy-connection",
        "accept-encoding",
    }
)
_RESERVED_PREFIXES = ("x-service-", "webhook-", "svix-")
_CREDENTIAL = re.compile(
    r"authorization|auth(?!or)|cookie|token|secret|passw|credential|session|jwt|api.?key"
    r"|access.?key|private.?key|(?<!idempotency)-key$|^key$|\b(bearer|cert|otp|pat)\b"
)
_SIGNATURE = re.compile(r"\b(sign|signature|hmac)\b")


def fold_name(name: str) -> str:
    """Returns the form in which names are compared: many servers read `_` as `-`."""
    return name.lower().replace("_", "-")


def is_reserved(name: str) -> bool:
    """True when only the service sets this header of an outgoing request."""
    folded = fold_name(name)
    return folded in _RESERVED or folded.startswith(_RESERVED_PREFIXES)


def is_reserved_in_delivery(name: str) -> bool:
    return is_reserved(name) or fold_name(name) == "content-type"


def is_credential(name: str) -> bool:
    """True when the name indicates a value that authenticates any request."""
    return _CREDENTIAL.search(fold_name(name)) is not None


def is_secret(name: str) -> bool:
    """True when the name indicates a credential or a signature. A signature that a tenant sets is
    the same in every request.
    """
    return is_credential(name) or _SIGNATURE.search(fold_name(name)) is not None


def validate(headers: dict[str, str], field: str = "headers") -> None:
    """Raises Invalid with the problem of each invalid header."""
    if len(headers) > MAX_HEADERS:
        raise Invalid.field(field, f"must be at most {MAX_HEADERS}")
    if sum(map(len, headers.values())) > _MAX_TOTAL_CHARS:
        raise Invalid.field(field, f"must have at most {_MAX_TOTAL_CHARS} characters together")
    Invalid.check(_find_problems(headers, field))


def _find_problems(headers: dict[str, str], field: str) -> Iterator[Problem]:
    names: set[str] = set()
    for name, value in headers.items():
        at = f"{field}.{name[:_MAX_NAME_CHARS]}"
        if not _TOKEN.match(name) or len(name) > _MAX_NAME_CHARS:
            yield at, "is not the name of a header"
        elif is_reserved_in_delivery(name):
            yield at, "is set by the service and cannot be replaced"
        elif name.lower() in names:
            yield at, "is given twice"
        elif not _VALUE.match(value) or len(value) > _MAX_VALUE_CHARS or value != value.strip():
            yield at, f"must be one line of at most {_MAX_VALUE_CHARS} printable characters"
        names.add(name.lower())
