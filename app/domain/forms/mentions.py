"""Finds where a message names a field of the form: "my e-mail is …", "change the date to …"."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile
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
    r"(?:\s{1,5}(?:address|number|name|field|answer))?\s{0,5}"
    r"(?:\bis\b(?:\s{1,5}called\b)?:?|\bare\b:?|['\u2019]s\b|(?P<sign>[:=])|\bshould be\b"
    r"|(?P<to>\bto\b))"
)
_CHANGE = re.compile(r"\b(?:change|correct|set|update|make|switch)\b", re.IGNORECASE)
# Words between two answers.
_CONNECTIONS: Final = frozenset(
    {"and", "also", "but", "my", "our", "the", "change", "correct", "set", "update", "make"}
    | {"at", "on", "or", "oh", "please", "sorry", "actually"}
)
_GAP = " \t\r\n,;."


class Mention(NamedTuple):
    """The text that a message gives as the answer to a field."""

    field: InputField[Any]
    text: str


class Split(NamedTuple):
    """`rest` is what stands before the first mention. A field has one mention, its last one."""

    rest: str
    mentions: list[Mention]


def names_of(fields: Sequence[InputField[Any]]) -> dict[str, InputField[Any]]:
    """Returns the words that name one field alone. A whole label names its field also where
    another label has the same words and more.
    """
    words = _select_unique((word, field) for field in fields for word in _words_of(field))
    labels = _select_unique((label, field) for field in fields for label in _labels_of(field))
    return words | labels


def _select_unique(
    names: Iterator[tuple[str, InputField[Any]]],
) -> dict[str, InputField[Any]]:
    owners: dict[str, list[InputField[Any]]] = {}
    for name, field in names:
        owners.setdefault(name, []).append(field)
    return {name: found[0] for name, found in owners.items() if len(found) == 1}


def _words_of(field: InputField[Any]) -> set[str]:
    names = f"{field.definition.label} {field.id.replace('_', ' ')}".casefold()
    words = {word for word in _WORD.findall(names) if len(word) > 1}
    return (words - _COMMON) | set(_SYNONYMS.get(field.type.name, ()))


def _labels_of(field: InputField[Any]) -> set[str]:
    """Returns the label and the id without what they begin with, as "What is your"."""
    labels = set()
    for name in (field.definition.label, field.id.replace("_", " ")):
        words = dropwhile(_COMMON.__contains__, _WORD.findall(name.casefold()))
        labels.add(" ".join(words))
    return {label for label in labels if len(label) > 1}


def find_named(fields: Sequence[InputField[Any]], text: str) -> set[str]:
    """Returns the ids of the fields that a text names."""
    words = f" {_normalize(text)} "
    return {field.id for name, field in names_of(fields).items() if f" {name} " in words}


def _normalize(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def split(fields: Sequence[InputField[Any]], text: str) -> Split:
    """Finds the parts of a message that name a field and give its answer."""
    names = names_of(fields)
    found = _find_mentions(names, text) if names else []
    if not found:
        return Split(text, [])
    mentions: dict[str, Mention] = {}
    for index, (match, field) in enumerate(found):
        answer = text[match.end() :]
        if index + 1 < len(found):
            answer = trim_end(text[match.end() : found[index + 1][0].start()])
        mentions[field.id] = Mention(field, answer.strip())
    return Split(trim_end(text[: found[0][0].start()]).strip(), list(mentions.values()))


def _find_mentions(
    names: dict[str, InputField[Any]], text: str
) -> list[tuple[re.Match[str], InputField[Any]]]:
    found: list[tuple[re.Match[str], InputField[Any]]] = []
    for match in _pattern(tuple(sorted(names, key=len, reverse=True))).finditer(text):
        # Some letters, such as the dotless i, match others than they are folded to.
        field = names.get(_normalize(match["name"]))
        start = found[-1][0].end() if found else 0
        if field is None or not _is_answered(match, text[start : match.start()]):
            continue
        is_in_prose = bool(found) and found[-1][1].type.name == "textarea"
        if is_in_prose and not _begins_part(match, text):
            continue
        found.append((match, field))
    return found


def _is_answered(match: re.Match[str], before: str) -> bool:
    """False for "my guests to the party", which changes nothing."""
    return match["to"] is None or _CHANGE.search(before) is not None


def _begins_part(match: re.Match[str], text: str) -> bool:
    """True for a line like "name: Ada"; a long text may say "the name is wrong"."""
    before = text[: match.start()].rstrip(" \t")
    return match["sign"] is not None and before.endswith(("\n", ";"))


def trim_end(text: str) -> str:
    """Removes words at the end that only lead to what follows."""
    end = len(text)
    while end:
        if text[end - 1] in _GAP:
            end -= 1
            continue
        start = end
        while start and not text[start - 1].isspace():
            start -= 1
        if text[start:end].casefold() not in _CONNECTIONS:
            break
        end = start
    return text[:end]


@lru_cache(maxsize=200)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(r"\W{1,5}".join(map(re.escape, name.split())) for name in names)
    return re.compile(rf"(?<![\w@.-])(?P<name>{choices}){_LINK}(?!\w)\s*", re.IGNORECASE)
