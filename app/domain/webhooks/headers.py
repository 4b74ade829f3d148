"""Headers that somebody wants sent along: which names are theirs to use, and what is shown."""

import re
from typing import Final

from app.http.errors import Invalid

MASK: Final = "********"
MOST: Final = 20
_VALUE_CHARS = 4096
_VALUES_CHARS = 8192
_NAME_CHARS = 100
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_OURS = frozenset(
    {
        "host",
        "content-type",
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
_SECRET = re.compile(
    r"authorization|auth(?!or)|cookie|token|secret|passw|credential|session|jwt|api.?key"
    r"|access.?key|private.?key|(?<!idempotency)[-_]key$|^key$",
    re.IGNORECASE,
)


def is_ours(name: str) -> bool:
    return name.lower() in _OURS or name.lower().startswith(("x-service-", "webhook-", "svix-"))


def is_secret(name: str) -> bool:
    """By its name: what such a header holds opens something."""
    return _SECRET.search(name) is not None


def checked(given: dict[str, str], field: str = "headers") -> dict[str, str]:
    """As given, or told what is wrong with each."""
    problems: dict[str, str] = {}
    if len(given) > MOST:
        raise Invalid.field(field, f"must be at most {MOST}")
    if sum(map(len, given.values())) > _VALUES_CHARS:
        raise Invalid.field(field, f"must have at most {_VALUES_CHARS} characters together")
    seen: set[str] = set()
    for name, value in given.items():
        at = f"{field}.{name[:_NAME_CHARS]}"
        if not _TOKEN.match(name) or len(name) > _NAME_CHARS:
            problems[at] = "is not the name of a header"
        elif is_ours(name):
            problems[at] = "is set by the service and cannot be replaced"
        elif name.lower() in seen:
            problems[at] = "is given twice"
        elif not _VALUE.match(value) or len(value) > _VALUE_CHARS or value != value.strip():
            problems[at] = f"must be one line of at most {_VALUE_CHARS} printable characters"
        seen.add(name.lower())
    if problems:
        raise Invalid.fields(problems)
    return given


def shown(headers: dict[str, str]) -> dict[str, str]:
    return {name: MASK if is_secret(name) else value for name, value in headers.items()}


def unmasked(given: dict[str, str], stored: dict[str, str], field: str) -> dict[str, str]:
    """Who sends a mask back means what is stored."""
    known = {name.lower(): value for name, value in stored.items()}
    whole = {}
    for name, value in given.items():
        if value == MASK and is_secret(name):
            if name.lower() not in known:
                raise Invalid.field(f"{field}.{name}", "has no stored value to keep")
            whole[name] = known[name.lower()]
        else:
            whole[name] = value
    return whole


def check_move(stored: dict[str, str], given: dict[str, str] | None, field: str) -> None:
    """What opens something was meant for one host; another gets it only from who knows it."""
    for name, value in (stored if given is None else given).items():
        if is_secret(name) and (given is None or value == MASK):
            raise Invalid.field(f"{field}.{name}", "is needed again: this leads to another host")
