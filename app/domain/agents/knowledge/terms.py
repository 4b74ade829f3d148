"""The terms by which texts are found: words without their endings, and pairs of characters in
languages that do not separate words, or not from their particles.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from .languages import STEMMERS

_MAX_TERM_CHARS: Final = 40
# Han, Hiragana, Katakana, Thai, Lao, Burmese and Khmer do not separate words. Hangul does, but
# words end in particles, for which there is no stemmer.
_UNSEPARATED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and other marks belong to the letter before them, and \w leaves most of them out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a4d"
    "\u0a81-\u0acd\u0b01-\u0b4d\u0b82-\u0bcd\u0c00-\u0c4d\u0c81-\u0ccd\u0d00-\u0d4d"
)
_TOKEN = re.compile(rf"([{_UNSEPARATED}]+)|((?:[^\W{_UNSEPARATED}][{_MARKS}]*)+)")
_stemmers = threading.local()


def list_terms(text: str, languages: Iterable[str | None]) -> list[str]:
    """Returns the terms of a text in their order: those of a passage in its own language, those of
    a question in all languages that the passages are in.
    """
    tokens = list(_list_tokens(text))
    known = sorted({language for language in languages if language is not None})
    stems = [stem for language in known if (stem := _stem_of(language))]
    if not stems:
        return tokens
    if len(stems) == 1:
        return list(map(stems[0], tokens))
    return [term for token in tokens for term in dict.fromkeys(stem(token) for stem in stems)]


def _list_tokens(text: str) -> Iterator[str]:
    """A name like `max_connections` counts as a whole and in parts."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    for run, word in _TOKEN.findall(text.casefold()):
        if run:
            yield from _pair(run)
            continue
        yield word[:_MAX_TERM_CHARS]
        if "_" in word:
            yield from (part[:_MAX_TERM_CHARS] for part in word.split("_") if part)


def _pair(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _stem_of(language: str) -> Any:
    """A stemmer must not be used by two threads at a time."""
    name = STEMMERS.get(language)
    if name is None:
        return None
    known: dict[str, Any] = _stemmers.__dict__
    if name not in known:
        import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415  # only processes that read or search load it

        known[name] = lru_cache(maxsize=20_000)(Stemmer.Stemmer(name).stemWord)
    return known[name]
