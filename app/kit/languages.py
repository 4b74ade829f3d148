"""The languages that visitors are spoken to in, and how one of them is chosen."""

import re
from collections.abc import Iterator
from typing import Final, Literal, get_args

Language = Literal[
    "en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "ru", "ar", "hi", "ja", "zh"
]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
ENGLISH: Final[Language] = "en"
_FROM_RIGHT_TO_LEFT: Final = frozenset({"ar"})
_RANGE = re.compile(
    r"\s*([A-Za-z]{1,8})(?:-[A-Za-z0-9]{1,8})*\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?"
)
# Browsers send about 50 characters.
_MAX_HEADER_CHARS = 1000


def find_language(tag: str | None) -> Language | None:
    """Returns the language of a tag like pt-BR or zh_Hant, if it is one of ours."""
    primary = re.split(r"[-_]", (tag or "").strip().lower(), maxsplit=1)[0]
    return next((language for language in LANGUAGES if language == primary), None)


def negotiate(header: str | None) -> Language | None:
    """Returns the language of ours that an Accept-Language header prefers."""
    ranges = sorted(_read_ranges((header or "")[:_MAX_HEADER_CHARS]), reverse=True)
    languages = (find_language(tag) for quality, _, tag in ranges if quality > 0)
    return next((language for language in languages if language is not None), None)


def _read_ranges(header: str) -> Iterator[tuple[float, int, str]]:
    """Yields the quality, the position from the end, and the language of each range."""
    for index, text in enumerate(header.split(",")):
        match = _RANGE.fullmatch(text)
        if match is not None:
            yield float(match[2] or 1), -index, match[1]


def direction_of(language: Language) -> Literal["ltr", "rtl"]:
    return "rtl" if language in _FROM_RIGHT_TO_LEFT else "ltr"
