"""The words by which people choose, in the language of the conversation."""

import re
from collections.abc import Callable, Collection
from functools import cache
from typing import Final

import msgspec

from app.kit.languages import ENGLISH, Language

from .language_tables import (
    LETTER,
    WORD,
    ChoiceWords,
    LanguageTable,
    get_language,
    list_simple,
    load_table,
    simplify,
    to_pattern,
    to_written_pattern,
)

_SIGNS = r"[,;\n&+\u3001\uff0c\uff1b\u060c\u061b/]"
_PUNCTUATION = " \t\r\n.,;:!?\"'()#\u3002\u3001\u060c\u061f\u061b"
# Understood in every language.
_YES_ANYWHERE: Final = ("yes", "ok", "okay", "true", "1", "x", "✓", "✔", "👍")
_NO_ANYWHERE: Final = ("false", "0", "👎")


class Choosing(msgspec.Struct, frozen=True, kw_only=True):
    """How a language names options. `find_number` returns the number of an option in the list, 0
    for none and -1 for the last one.
    """

    # What people write between several options, and between those that nobody has listed.
    separators: re.Pattern[str]
    open_separators: re.Pattern[str]
    negations: Collection[str]
    # Of two options that are named, the words choose one.
    alternative: Collection[str]
    # Words that may stand next to choices and mean nothing.
    fillers: Collection[str]
    everything: Collection[str]
    both: Collection[str]
    find_number: Callable[[str], int]
    has_spaces: bool
    fold: Callable[[str], str]
    # Separators that are written together with the next word.
    attached: re.Pattern[str] | None = None

    def list_words(self, text: str) -> list[str]:
        if self.has_spaces:
            line = self.fold(text)
            return WORD.findall(self.attached.sub(" ", line) if self.attached else line)
        # Without spaces, what is left of a text without its fillers is one word.
        line = self.fold(text).strip(_PUNCTUATION)
        return [line] if line else []

    def has_word(self, text: str, words: Collection[str]) -> bool:
        if self.has_spaces:
            return not set(words).isdisjoint(self.list_words(text))
        line = self.fold(text)
        return any(word in line for word in words)

    def is_filler(self, text: str) -> bool:
        if self.has_spaces:
            return set(self.fillers).issuperset(self.list_words(text))
        return not _remove(self.fold(text), self.fillers).strip(_PUNCTUATION)


def _remove(text: str, words: Collection[str]) -> str:
    for word in words:
        text = text.replace(word, " ")
    return text


def _fold_words(text: str) -> str:
    return simplify(text).replace("'", "")


# English


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS: Final = _split(
    "no not dont cant cannot wont never neither nor none nothing except but without"
)
_CARDINAL_WORDS = "one two three four five six seven eight nine ten"
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBERS: Final = {
    word: number
    for words in (_CARDINAL_WORDS, _ORDINAL_WORDS)
    for number, word in enumerate(words.split(), 1)
} | {"last": -1}
_NUMBER = re.compile(
    r"(?:the |option |number |no\. ?|# ?)*(?:([0-9]{1,3})(?:st|nd|rd|th)?|([a-z]+))"
    r"(?: one| option)?"
)


def _find_english_number(text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return 0
    digits, word = match.groups()
    return int(digits) if digits else _NUMBERS.get(word, 0)


def _fold_english(text: str) -> str:
    return text.casefold().replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")


_SEPARATORS = re.compile(r"[,;\n&+]|\b(?:and/or|and|or|plus)\b", re.IGNORECASE)
_ENGLISH: Final = Choosing(
    separators=_SEPARATORS,
    open_separators=_SEPARATORS,
    negations=NEGATIONS,
    alternative=frozenset({"either"}),
    fillers=_split(
        "i id im am a an the would will like want choose pick take prefer please thanks thank you "
        "also both it is its for me my to of them these as well too and option options number"
    ),
    everything=frozenset({"all", "all of them", "all of these", "all of the above", "everything"}),
    both=frozenset({"both"}),
    find_number=_find_english_number,
    has_spaces=True,
    fold=_fold_english,
)


# Other languages


def get_choosing() -> Choosing:
    language = get_language()
    return _ENGLISH if language == ENGLISH else _build(language)


@cache
def _build(language: Language) -> Choosing:
    table = load_table(language)
    words = table.choices
    separators = "|".join(
        pattern(words.separators, has_spaces=table.has_spaces)
        for pattern in (to_pattern, to_written_pattern)
    )
    attached = _match_attached(table) if words.attached else None
    numbers = _index_numbers(words, table.numbers.words)
    fillers = [_fold_words(word) for word in list_simple(words.fillers)]

    def find_number(text: str) -> int:
        """The number is what is left without words that mean nothing."""
        line = _fold_words(text)
        if table.has_spaces:
            rest = " ".join(word for word in WORD.findall(line) if word not in fillers)
        else:
            rest = _remove(line, fillers).strip(_PUNCTUATION)
        if rest.isascii() and rest.isdigit() and len(rest) <= 3:  # noqa: PLR2004  # of 500 options
            return int(rest)
        return numbers.get(rest or line.strip(_PUNCTUATION), 0)

    words_and_signs = rf"{_SIGNS}|{separators}"
    return Choosing(
        separators=re.compile(
            rf"{words_and_signs}|{attached}" if attached else words_and_signs, re.IGNORECASE
        ),
        # Without spaces, any word may contain such a word.
        open_separators=re.compile(words_and_signs if table.has_spaces else _SIGNS, re.IGNORECASE),
        negations=_fold_all(words.negations),
        alternative=_fold_all(words.either),
        fillers=frozenset(fillers) if table.has_spaces else tuple(fillers),
        everything=_fold_all(words.everything),
        both=_fold_all(words.both),
        find_number=find_number,
        has_spaces=table.has_spaces,
        fold=_fold_words,
        attached=re.compile(attached) if attached else None,
    )


def _match_attached(table: LanguageTable) -> str:
    """Matches a separator at the beginning of a word, unless a number begins like that."""
    signs = "|".join(map(re.escape, list_simple(table.choices.attached)))
    numbers = "|".join(map(re.escape, list_simple(table.numbers.words)))
    return rf"(?<![{LETTER}])(?!(?:{numbers})(?![{LETTER}]))(?:{signs})(?=[{LETTER}])"


def _index_numbers(words: ChoiceWords, numbers: list[str]) -> dict[str, int]:
    index = {_fold_words(word): -1 for word in list_simple(words.last)}
    for names, first in ((numbers, 0), (words.ordinals, 1)):
        for number, name in enumerate(names, first):
            index |= {_fold_words(word): number for word in list_simple([name])}
    return index


def _fold_all(phrases: Collection[str]) -> frozenset[str]:
    return frozenset(_fold_words(phrase) for phrase in list_simple(phrases))


class _Consent(msgspec.Struct, frozen=True):
    """Phrases of a yes (True) and of a no (False), the longest first."""

    beginnings: list[tuple[str, bool]]
    whole: dict[str, bool]
    doubts: frozenset[str]
    negations: frozenset[str]
    yes: frozenset[str]


@cache
def _build_consent(language: Language) -> _Consent:
    words = load_table(language).choices
    phrases = [
        *((_fold_words(text), True) for text in list_simple(words.yes)),
        *((_fold_words(text), False) for text in list_simple(words.no)),
    ]
    whole = dict.fromkeys(map(_fold_words, (*words.yes_alone, *_YES_ANYWHERE)), True)
    return _Consent(
        sorted(phrases, key=lambda item: -len(item[0])),
        whole | dict.fromkeys(map(_fold_words, (*words.no_alone, *_NO_ANYWHERE)), False),
        _fold_all(words.doubts),
        _fold_all(words.negations),
        _fold_all(words.yes),
    )


def parse_consent(language: Language, text: str) -> bool | None:
    """Returns None for a text that is not clearly a yes or a no."""
    consent, choosing = _build_consent(language), _build(language)
    if any(sign in text for sign in "?\uff1f\u061f"):
        return None
    line = _fold_words(text).strip(_PUNCTUATION)
    if line in consent.whole:
        return consent.whole[line]
    line = " ".join(re.findall(WORD, line))
    for phrase, is_yes in consent.beginnings:
        beginning = " ".join(re.findall(WORD, phrase))
        rest = line.removeprefix(beginning)
        if rest == line or (choosing.has_spaces and rest and rest[0] != " "):
            continue
        if is_yes and not choosing.has_spaces:
            # A yes may contain the sign of a no, as "no problem" does.
            rest = _remove(rest, sorted(consent.yes, key=len, reverse=True))
        opposite = consent.negations if is_yes else consent.yes
        is_unclear = choosing.has_word(rest, consent.doubts) or choosing.has_word(rest, opposite)
        return None if is_unclear else is_yes
    return None
