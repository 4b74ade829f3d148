"""Finds where a message names a field of the form: "my e-mail is …", "change the date to …"."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from app.domain.forms.fields.protocol import InputField

_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
# Words of labels that do not name what is asked for.
_COMMON: Final = frozenset(
    {
        *("a", "an", "and", "any", "are", "at", "can", "choose", "did", "do", "does", "enter"),
        *("for", "give", "have", "how", "if", "in", "is", "it", "like", "many", "much", "my"),
        *("of", "on", "or", "our", "please", "select", "should", "tell", "the", "there", "this"),
        *("to", "us", "was", "we", "what", "when", "where", "which", "who", "will", "with"),
        *("would", "you", "your"),
    }
)
_SYNONYMS: Final = {
    "email": ("email", "e-mail", "mail"),
    "phone": ("phone", "telephone", "mobile", "number"),
    "url": ("url", "website", "site", "link"),
}
_LINK = (
    r"(?:\s+(?:address|number|name|field|answer))?\s*"
    r"(?:\bis\b(?:\s+called\b)?|\bare\b|\bto\b|:|=|\bshould be\b)"
)
# Words between two answers.
_CONNECTIONS: Final = frozenset(
    {"and", "also", "but", "my", "our", "the", "change", "correct", "set", "update", "make"}
    | {"at", "on", "or"}
)


class Mention(NamedTuple):
    """The text that a message gives as the answer to a field."""

    field: InputField[Any]
    text: str


class Split(NamedTuple):
    """`rest` is what stands before the first mention."""

    rest: str
    mentions: list[Mention]


def keywords_of(fields: Sequence[InputField[Any]]) -> dict[str, InputField[Any]]:
    """Returns the words that name one field alone."""
    owners: dict[str, list[InputField[Any]]] = {}
    for field in fields:
        for word in _words_of(field):
            owners.setdefault(word, []).append(field)
    return {word: found[0] for word, found in owners.items() if len(found) == 1}


def _words_of(field: InputField[Any]) -> set[str]:
    names = f"{field.definition.label} {field.id.replace('_', ' ')}".casefold()
    words = {word for word in _WORD.findall(names) if len(word) > 1}
    return (words - _COMMON) | set(_SYNONYMS.get(field.type.name, ()))


def find_named(fields: Sequence[InputField[Any]], text: str) -> set[str]:
    """Returns the ids of the fields that a text names."""
    words = set(_WORD.findall(text.casefold()))
    return {field.id for word, field in keywords_of(fields).items() if word in words}


def split(fields: Sequence[InputField[Any]], text: str) -> Split:
    """Finds the parts of a message that name a field and give its answer."""
    keywords = keywords_of(fields)
    if not keywords:
        return Split(text, [])
    found = list(_pattern(tuple(sorted(keywords, key=len, reverse=True))).finditer(text))
    if not found:
        return Split(text, [])
    mentions = []
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        answer = text[match.end() : end]
        if index + 1 < len(found):
            answer = trim_end(answer)
        field = keywords[match[1].casefold()]
        mentions.append(Mention(field, answer.strip()))
    return Split(trim_end(text[: found[0].start()]).strip(), mentions)


def trim_end(text: str) -> str:
    """Removes words at the end that only lead to what follows."""
    while True:
        text = text.rstrip(" \t\r\n,;.")
        head, _, word = text.rpartition(" ")
        if word.casefold() not in _CONNECTIONS:
            return text
        text = head


@lru_cache(maxsize=200)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, words))
    return re.compile(rf"(?<![\w@.-])({names}){_LINK}(?!\w)\s*", re.IGNORECASE)
