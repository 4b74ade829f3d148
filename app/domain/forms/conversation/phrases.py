"""The words around answers, in the language of the conversation: greetings, "my name is",
"actually", "change … to".
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec

from app.domain.forms.definition.api import language_tables, wordings
from app.kit.languages import ENGLISH, Language


class Phrases(msgspec.Struct, frozen=True, kw_only=True):
    """All patterns are for texts that `fold` returns, whose letters are those of the message."""

    skip: frozenset[str]
    nothing: frozenset[str]
    correction: re.Pattern[str]
    lead_in: re.Pattern[str]
    trailing: re.Pattern[str] | None = None
    only_greeting: re.Pattern[str]
    question: re.Pattern[str]
    about_questions: re.Pattern[str]
    word: re.Pattern[str]
    # What a name may begin with: letters and digits after a character that is not part of a word.
    name_start: re.Pattern[str]
    # Words of labels that do not name what is asked for.
    common: frozenset[str]
    # Leads from the name of a field to its answer; `to` needs a word of `change` before the name.
    link: re.Pattern[str]
    # Stands before a name that the answer follows at once.
    link_before: re.Pattern[str] | None = None
    change: re.Pattern[str]
    # Words between two answers.
    connections: frozenset[str]
    synonyms: dict[str, list[str]] = {}
    # Words that are left of a message once its answers are taken, and mean nothing.
    fillers: frozenset[str] = frozenset()
    has_spaces: bool = True
    fold: Callable[[str], str]

    def is_filler(self, text: str) -> bool:
        """True for words around answers that were found. English leaves none."""
        if not self.fillers:
            return False
        line = self.fold(text)
        if self.has_spaces:
            return self.fillers.issuperset(self.word.findall(line))
        for word in sorted(self.fillers, key=len, reverse=True):
            line = line.replace(word, " ")
        return self.word.search(line) is None

    def prepare_label(self, label: str) -> str:
        """Returns a label whose words name its field."""
        text = self.fold(label)
        if not self.has_spaces:
            for word in sorted(self.common, key=len, reverse=True):
                text = text.replace(word, " ")
        return text


def get_phrases() -> Phrases:
    language = language_tables.get_language()
    return _ENGLISH if language == ENGLISH else _build(language)


# English

_GREETING = r"(?:hi|hello|hey)(?: there)?"
_INTERJECTION = rf"(?:{_GREETING}|oh|well|okay|ok|sure|yes|so|actually|sorry)"
_LEADING_PHRASE = (
    r"(?:my name is|i am called|i am|i['\u2019]m|this is|call me|it is|it['\u2019]s|that is|"
    r"that['\u2019]s|the answer is|please use)"
)
_NAME_START = re.compile(r"(?<![\w@.-])[^\W_]")


def _keep(text: str) -> str:
    return text


_ENGLISH: Final = Phrases(
    skip=wordings.SKIP,
    nothing=wordings.NOTHING,
    correction=re.compile(
        r"\b(?:actually|correction|sorry|change|correct|instead|wrong|mistake|i meant|rather)\b",
        re.IGNORECASE,
    ),
    # A word like "so" may also be the beginning of the answer.
    lead_in=re.compile(
        rf"(?:{_INTERJECTION}\b"
        rf"(?:\s*[,.!:;]+\s*|\s+(?=(?:{_INTERJECTION}|{_LEADING_PHRASE})\b)|\s*$))*"
        rf"(?:{_LEADING_PHRASE}\s+)?",
        re.IGNORECASE,
    ),
    only_greeting=re.compile(rf"(?:{_GREETING}|sorry|actually)", re.IGNORECASE),
    question=re.compile(
        r"(?:what|why|who|whose|how|where|when|which|is|are|do|does|did|can|could|may|must|should"
        r"|will|would)\b.*\?",
        re.IGNORECASE | re.DOTALL,
    ),
    about_questions=re.compile(r"\b(?:question|ask)", re.IGNORECASE),
    word=re.compile(r"[^\W_]+(?:[-'][^\W_]+)*"),
    name_start=_NAME_START,
    common=frozenset(
        {
            *("a", "an", "and", "any", "are", "at", "can", "choose", "did", "do", "does", "enter"),
            *("for", "give", "have", "how", "if", "in", "is", "it", "like", "many", "much", "my"),
            *("of", "on", "or", "our", "please", "select", "should", "tell", "the", "there"),
            *("this", "to", "us", "was", "we", "what", "when", "where", "which", "who", "will"),
            *("with", "would", "you", "your"),
        }
    ),
    link=re.compile(
        r"(?:\s{1,5}(?:address|number|name|field|answer))?\s{0,5}"
        r"(?:\bis\b(?:\s{1,5}called\b)?:?|\bare\b:?|['\u2019]s\b|(?P<sign>[:=])|\bshould be\b"
        r"|(?P<to>\bto\b))(?!\w)\s*",
        re.IGNORECASE,
    ),
    change=re.compile(r"\b(?:change|correct|set|update|make|switch)\b", re.IGNORECASE),
    connections=frozenset(
        {"and", "also", "but", "my", "our", "the", "change", "correct", "set", "update", "make"}
        | {"at", "on", "or", "oh", "please", "sorry", "actually"}
    ),
    fold=_keep,
)


# Other languages

_QUESTION_MARKS = r"[?\uff1f\u061f]"
_NO_WORDS = "(?!)"


@cache
def _build(language: Language) -> Phrases:
    table = language_tables.load_table(language)
    words, has_spaces = table.messages, table.has_spaces

    def match_any(*lists: list[str]) -> str:
        phrases = [phrase for phrases in lists for phrase in phrases]
        return language_tables.to_pattern(phrases, has_spaces=has_spaces)

    return Phrases(
        skip=_list_all(words.skip) | wordings.SKIP,
        nothing=_list_all(words.nothing) | wordings.NOTHING,
        correction=re.compile(match_any(words.corrections)),
        lead_in=_compile_lead_in(words, has_spaces=has_spaces),
        trailing=re.compile(rf"(?:{match_any(words.trailing)})\W*$") if words.trailing else None,
        only_greeting=re.compile(match_any(words.greetings, words.corrections)),
        question=_compile_question(match_any(words.questions), has_spaces=has_spaces),
        about_questions=re.compile(
            "|".join(map(re.escape, language_tables.list_simple(words.about_questions)))
        ),
        word=re.compile(rf"[{language_tables.LETTER}]+(?:[-'][{language_tables.LETTER}]+)*"),
        name_start=_NAME_START if has_spaces else re.compile(r"[^\W_]"),
        common=_list_all(words.common),
        link=_compile_link(words, has_spaces=has_spaces),
        link_before=re.compile(rf"{match_any(words.is_)}\s+(?:{match_any(words.common)}\s+)?$")
        if has_spaces
        else None,
        change=re.compile(match_any(words.change)),
        connections=_list_all([*words.connections, *words.change, *words.corrections]),
        synonyms={
            kind: language_tables.list_simple(names) for kind, names in words.synonyms.items()
        },
        fillers=_list_fillers(words, has_spaces=has_spaces),
        has_spaces=has_spaces,
        fold=language_tables.simplify,
    )


def _compile_question(words: str, *, has_spaces: bool) -> re.Pattern[str]:
    if has_spaces:
        return re.compile(rf"(?:\u00bf|{words}).*{_QUESTION_MARKS}", re.DOTALL)
    # Up to the first of the words, which alone is tried: a long message would take quadratic time.
    return re.compile(rf"(?:(?!{words}).)*{words}.*{_QUESTION_MARKS}", re.DOTALL)


def _list_all(phrases: list[str]) -> frozenset[str]:
    return frozenset(language_tables.list_simple(phrases))


def _list_fillers(words: language_tables.MessageWords, *, has_spaces: bool) -> frozenset[str]:
    phrases = _list_all(
        [
            *(word for words_ in (words.common, words.is_, words.connections) for word in words_),
            *(
                word
                for words_ in (words.nouns, words.trailing, words.corrections)
                for word in words_
            ),
            *(word for words_ in (words.greetings, words.interjections) for word in words_),
            *(word for names in words.synonyms.values() for word in names),
        ]
    )
    return (
        frozenset(word for phrase in phrases for word in phrase.split()) if has_spaces else phrases
    )


def _compile_lead_in(words: language_tables.MessageWords, *, has_spaces: bool) -> re.Pattern[str]:
    def match_any(*lists: list[str]) -> str:
        phrases = [phrase for phrases in lists for phrase in phrases]
        return language_tables.to_pattern(phrases, has_spaces=has_spaces)

    opening = match_any(words.greetings, words.interjections, words.corrections)
    phrase = match_any(words.lead_ins)
    marks = r"\s*[,.!:;\u3001\u3002\u060c\uff0c\uff01]+\s*"
    follows = rf"\s+(?=(?:{opening}|{phrase}))"
    gap = r"\s+" if has_spaces else r"[\s:\uff1a]*"
    return re.compile(rf"(?:{opening}(?:{marks}|{follows}|\s*$))*(?:{phrase}{gap})?")


def _compile_link(words: language_tables.MessageWords, *, has_spaces: bool) -> re.Pattern[str]:
    def match_any(phrases: list[str]) -> str:
        return language_tables.to_pattern(phrases, has_spaces=has_spaces) if phrases else _NO_WORDS

    nouns = rf"(?:[\s-]{{0,5}}{match_any(words.nouns)})?" if words.nouns else ""
    return re.compile(
        rf"{nouns}\s{{0,5}}(?:{match_any(words.is_)}:?|(?P<sign>[:=])|(?P<to>{match_any(words.to)}))"
        r"\s*"
    )


def normalize(text: str) -> str:
    """Returns a message whose letters `fold` keeps at their positions."""
    is_english = language_tables.get_language() == ENGLISH
    return text if is_english else unicodedata.normalize("NFC", text)
