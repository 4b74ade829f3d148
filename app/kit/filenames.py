"""Names of files that users upload. They are shown and sent back, never used as paths."""

import unicodedata
from typing import Final
from urllib.parse import quote

MAX_CHARS: Final = 255
_ENDING_CHARS = 20
# Control and format characters, line and paragraph separators. Joiners belong to some scripts.
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"


def clean(name: str) -> str:
    """Returns the last part of a path, without invisible characters, in the normal form in which
    equal names are equal. The ending stays. "" if nothing is left.
    """
    name = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2])
    name = "".join(filter(_is_visible, name)).strip()
    if not name.strip("."):
        return ""
    if len(name) <= MAX_CHARS:
        return name
    return name[: MAX_CHARS - _ENDING_CHARS] + name[-_ENDING_CHARS:]


def _is_visible(letter: str) -> bool:
    return letter in _JOINERS or unicodedata.category(letter) not in _INVISIBLE_CATEGORIES


def as_attachment(name: str) -> str:
    """Returns the Content-Disposition of a file that browsers save and do not show."""
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"
