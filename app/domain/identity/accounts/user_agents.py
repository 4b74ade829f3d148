"""Names the device of a session from the User-Agent header of its sign-in.

The header is the client's own claim: it helps people to recognize their sessions, and decides
nothing.
"""

import re
from typing import Final

MAX_CHARS: Final = 512
UNKNOWN: Final = "Unknown device"
_MAX_PRODUCT_CHARS = 40

# The first match counts: most browsers also claim to be those further down.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("Edge/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)
_PRODUCT = re.compile(r"[A-Za-z][\w.+ -]*(?=/)")


def clean_user_agent(header: str | None) -> str | None:
    """Returns the header in a form that can be stored and shown: printable, of limited length."""
    text = "".join(letter for letter in (header or "")[:MAX_CHARS] if letter.isprintable()).strip()
    return text or None


def describe_user_agent(text: str | None) -> str:
    """Returns a summary like `Firefox on Linux`, or the name of the program that sent it."""
    if text is None:
        return UNKNOWN
    browser, system = _find(_BROWSERS, text), _find(_SYSTEMS, text)
    if browser is not None and system is not None:
        return f"{browser} on {system}"
    if browser is not None or system is not None:
        return browser or system or UNKNOWN
    product = _PRODUCT.match(text)
    return product.group()[:_MAX_PRODUCT_CHARS].strip() if product else UNKNOWN


def _find(table: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((name for mark, name in table if mark in text), None)
