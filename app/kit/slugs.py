"""Names in public addresses: the words of a title and a random suffix."""

import re
import secrets
from typing import Final

_NON_SLUG_CHARS = re.compile(r"[^a-z0-9]+")
_MAX_NAME_CHARS = 40
# Without letters that look like digits.
_ALPHABET: Final = "23456789abcdefghjkmnpqrstvwxyz"


def generate(name: str, suffix_chars: int) -> str:
    """The suffix makes it unique and, if it is long, hard to guess."""
    words = _NON_SLUG_CHARS.sub("-", name.lower()).strip("-")[:_MAX_NAME_CHARS].strip("-")
    suffix = "".join(secrets.choice(_ALPHABET) for _ in range(suffix_chars))
    return f"{words}-{suffix}" if words else suffix
