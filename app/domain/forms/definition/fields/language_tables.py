"""What conversations say and understand in a language: a file of `languages` each. English is in
the code: its texts in `wordings.py`, its words beside the parsers that use them.
"""

import re
import unicodedata
from collections.abc import Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app.kit.languages import ENGLISH, Language

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = Path(__file__).parent / "languages"
Text = str | dict[str, str]
_language: ContextVar[Language] = ContextVar("conversation_language", default=ENGLISH)


class NumberWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`groups` has what separates thousands. `words` are those of 0, 1, 2 and so on. `scales` are
    words that multiply or divide. `out_of` stands between a score and its total; `total_before`
    after the total, where that comes first.
    """

    decimal: str
    groups: str
    words: list[str]
    scales: list[str]
    out_of: list[str] = []
    total_before: list[str] = []
    # As in 1,00,000.
    has_pairs: bool = False


class DateWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`months` has the names of each month, separated by "/". `order` says which part of a date in
    digits comes first; `shown` is how the form writes a date. A time with a word of `vague` is not
    understood; `zones` are names of zones.
    """

    order: str
    shown: str
    months: list[str]
    of: list[str] = []
    hours: list[str] = []
    minutes: list[str] = []
    am: list[str] = []
    pm: list[str] = []
    vague: list[str] = []
    zones: list[str] = []


class ChoiceWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`ordinals` has the words for the first option, the second and so on, separated by "/"."""

    yes: list[str]
    no: list[str]
    negations: list[str]
    doubts: list[str]
    separators: list[str]
    everything: list[str]
    both: list[str]
    fillers: list[str]
    ordinals: list[str]
    last: list[str]
    # Separators that are written together with the next word.
    attached: list[str] = []
    # Of two options that are named, the word chooses one.
    either: list[str] = []
    # A yes or a no only if they are the whole answer.
    yes_alone: list[str] = []
    no_alone: list[str] = []


class MessageWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How people put answers. `is_` stands between the name of a field and its answer, or before
    the name; `to` after a word of `change`. `common` are words of labels that name nothing.
    """

    skip: list[str]
    nothing: list[str]
    greetings: list[str]
    interjections: list[str]
    corrections: list[str]
    lead_ins: list[str]
    questions: list[str]
    about_questions: list[str]
    common: list[str]
    is_: list[str]
    to: list[str]
    change: list[str]
    connections: list[str]
    # Between the name of a field and `is_`, as in "e-mail address is".
    nouns: list[str] = []
    # After the answer.
    trailing: list[str] = []
    # Words that name fields of a type.
    synonyms: dict[str, list[str]] = {}


class LanguageTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    texts: dict[str, Text]
    numbers: NumberWords
    dates: DateWords
    choices: ChoiceWords
    messages: MessageWords
    # False where words stand side by side without spaces.
    has_spaces: bool = True


@cache
def load_table(language: Language) -> LanguageTable:
    """English has none."""
    content = (_FOLDER / f"{language}.toml").read_bytes()
    return msgspec.toml.decode(content, type=LanguageTable)


def get_language() -> Language:
    """Returns the language of the conversation that is being answered; English elsewhere."""
    return _language.get()


def get_table() -> LanguageTable | None:
    """Returns the table of that language; None for English."""
    language = _language.get()
    return None if language == ENGLISH else load_table(language)


@contextmanager
def speak(language: Language) -> "Iterator[None]":
    """Texts and answers in the block are in this language."""
    token = _language.set(language)
    try:
        yield
    finally:
        _language.reset(token)


# Words of any script: Python's \w has no vowel signs of Devanagari and no Arabic marks.
LETTER: Final = (
    r"\w\u0300-\u036f\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u200c\u200d"
)
WORD: Final = re.compile(rf"[{LETTER}]+")
_ACCENTS: Final = frozenset({*range(0x300, 0x370), *range(0x64B, 0x660)})
_FULL_WIDTH: Final = range(0xFF01, 0xFF5F)
_FULL_WIDTH_OFFSET = 0xFEE0
_REPLACED: Final = {"\u3000": " ", "\u2019": "'", "\u02bc": "'", "\u0131": "i", "\u2212": "-"}


class _Letters(dict[int, str]):
    """Replaces a letter by one that all spellings share: without case and accent."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = simple = _simplify_letter(letter)
        return simple


def _simplify_letter(letter: str) -> str:
    if letter in _REPLACED:
        return _REPLACED[letter]
    if ord(letter) in _FULL_WIDTH:
        letter = chr(ord(letter) - _FULL_WIDTH_OFFSET)
    digit = unicodedata.decimal(letter, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFD", letter.lower())
    return parts[0] if all(ord(mark) in _ACCENTS for mark in parts[1:]) else letter.lower()[0]


_LETTERS: Final = _Letters()


def simplify(text: str) -> str:
    """Returns a text without case, accents and foreign digits. Each letter of a text in Unicode's
    form NFC stays at its position.
    """
    return unicodedata.normalize("NFC", text).translate(_LETTERS)


def list_simple(phrases: Iterable[str]) -> list[str]:
    """Returns simplified phrases, the longest first. A phrase may list variants: "one/two"."""
    variants = {simplify(part) for phrase in phrases for part in phrase.split("/")}
    return sorted(variants, key=lambda phrase: (-len(phrase), phrase))


def to_pattern(phrases: Iterable[str], *, has_spaces: bool = True) -> str:
    """Returns a regular expression for one of the phrases in a simplified text. Without any, it
    matches nothing.
    """
    return _match_any(list_simple(phrases), has_spaces=has_spaces)


def to_written_pattern(phrases: Iterable[str], *, has_spaces: bool = True) -> str:
    """Returns one for a text that is not simplified, with the accents of the phrases."""
    variants = {part for phrase in phrases for part in phrase.split("/")}
    return _match_any(sorted(variants, key=len, reverse=True), has_spaces=has_spaces)


def _match_any(phrases: Iterable[str], *, has_spaces: bool) -> str:
    parts = (r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
    pattern = rf"(?:{'|'.join(parts) or '(?!)'})"
    return rf"(?<![{LETTER}]){pattern}(?![{LETTER}])" if has_spaces else pattern
