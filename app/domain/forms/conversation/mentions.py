"""Finds where a message names a field of the form: "my e-mail is …", "change the date to …".

The words of a message are looked up one after the other, so that the time does not grow with the
number of names.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile, islice
from typing import Any, Final, NamedTuple

from app.domain.forms.definition.api import InputField

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
# Nobody repeats more of a label than this. The limits bound the memory of a form's names.
_MAX_LABEL_WORDS: Final = 30
_MAX_WORD_CHARS: Final = 60
_MAX_FORM_WORDS: Final = 3000
# What a name may begin with: letters and digits after a character that is not part of a word.
_NAME_START = re.compile(r"(?<![\w@.-])[^\W_]")
_GAP_IN_NAME = re.compile(r"\W{1,5}(?!\W)")
_GENITIVE = re.compile(r"'s\b", re.IGNORECASE)
_LINK = re.compile(
    r"(?:\s{1,5}(?:address|number|name|field|answer))?\s{0,5}"
    r"(?:\bis\b(?:\s{1,5}called\b)?:?|\bare\b:?|['\u2019]s\b|(?P<sign>[:=])|\bshould be\b"
    r"|(?P<to>\bto\b))(?!\w)\s*",
    re.IGNORECASE,
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


class _Names(NamedTuple):
    """The ids of fields by their names, and the beginnings of names with several words."""

    fields: dict[str, str]
    beginnings: set[str]


class _Link(NamedTuple):
    """A name in a message, with the words that lead to the answer."""

    field: InputField[Any]
    start: int
    end: int
    is_change: bool
    has_sign: bool


def _names_of(fields: Sequence[InputField[Any]]) -> _Names:
    return _index(tuple((field.id, field.type.synonyms, field.label) for field in fields))


@lru_cache(maxsize=64)
def _index(fields: tuple[tuple[str, tuple[str, ...], str], ...]) -> _Names:
    """Indexes the words that name one field alone. A whole label names its field also where
    another label has the same words and more.
    """
    words: dict[str, set[str]] = {}
    labels: dict[str, set[str]] = {}
    count = 0
    for field_id, synonyms, label in fields:
        texts = [_list_words(label), _list_words(field_id.replace("_", " "))]
        count += sum(map(len, texts))
        if count > _MAX_FORM_WORDS:
            break
        for word in _select_words(texts, synonyms):
            words.setdefault(word, set()).add(field_id)
        for name in _select_labels(texts):
            labels.setdefault(name, set()).add(field_id)
    names = _select_unique(words) | _select_unique(labels)
    beginnings = {name[:end] for name in names for end in _find_spaces(name)}
    return _Names(names, beginnings)


def _list_words(text: str) -> list[str]:
    """Returns the first words, and one more when there are too many."""
    matches = _WORD.finditer(text.casefold())
    return [match[0] for match in islice(matches, _MAX_LABEL_WORDS + 1)]


def _select_words(texts: Iterable[list[str]], synonyms: Iterable[str]) -> set[str]:
    words = {
        word
        for text in texts
        for word in text[:_MAX_LABEL_WORDS]
        if 1 < len(word) <= _MAX_WORD_CHARS
    }
    return (words - _COMMON).union(synonyms)


def _select_labels(texts: Iterable[list[str]]) -> set[str]:
    """Returns the label and the id without what they begin with, as "What is your"."""
    short = (text for text in texts if len(text) <= _MAX_LABEL_WORDS)
    labels = (" ".join(dropwhile(_COMMON.__contains__, text)) for text in short)
    return {label for label in labels if len(label) > 1}


def _select_unique(owners: dict[str, set[str]]) -> dict[str, str]:
    return {name: next(iter(found)) for name, found in owners.items() if len(found) == 1}


def _find_spaces(name: str) -> Iterator[int]:
    return (index for index, letter in enumerate(name) if letter == " ")


def find_named(fields: Sequence[InputField[Any]], text: str) -> set[str]:
    """Returns the ids of the fields that a text names."""
    names, words = _names_of(fields), _WORD.findall(text.casefold())
    found: set[str] = set()
    for start in range(len(words)):
        name = words[start]
        for word in words[start + 1 : start + 1 + _MAX_LABEL_WORDS]:
            if name in names.fields:
                found.add(names.fields[name])
            if name not in names.beginnings:
                break
            name = f"{name} {word}"
        if name in names.fields:
            found.add(names.fields[name])
    return found


def split(fields: Sequence[InputField[Any]], text: str) -> Split:
    """Finds the parts of a message that name a field and give its answer."""
    found = _find_mentions(fields, text)
    if not found:
        return Split(text, [])
    mentions: dict[str, Mention] = {}
    for index, link in enumerate(found):
        answer = text[link.end :]
        if index + 1 < len(found):
            answer = trim_end(text[link.end : found[index + 1].start])
        mentions[link.field.id] = Mention(link.field, answer.strip())
    return Split(trim_end(text[: found[0].start]).strip(), list(mentions.values()))


def _find_mentions(fields: Sequence[InputField[Any]], text: str) -> list[_Link]:
    found: list[_Link] = []
    has_change, searched = False, 0
    for link in _find_links(fields, text):
        has_change = has_change or _CHANGE.search(text, searched, link.start) is not None
        searched = link.start
        # "my guests to the party" changes nothing.
        if link.is_change and not has_change:
            continue
        is_in_prose = bool(found) and found[-1].field.type.has_lines
        if is_in_prose and not _begins_part(link, text):
            continue
        found.append(link)
        has_change, searched = False, link.end
    return found


def _find_links(fields: Sequence[InputField[Any]], text: str) -> Iterator[_Link]:
    """Yields each name that leads to an answer. Where names overlap, the longest one counts."""
    names, by_id = _names_of(fields), {field.id: field for field in fields}
    position = 0
    while (start := _NAME_START.search(text, position)) is not None:
        position = start.end()
        for name, end in reversed(list(_find_names(names, text, start.start()))):
            match = _LINK.match(text, end)
            if match is not None:
                field = by_id[names.fields[name]]
                is_change, has_sign = match["to"] is not None, match["sign"] is not None
                yield _Link(field, start.start(), match.end(), is_change, has_sign)
                position = match.end()
                break


def _find_names(names: _Names, text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yields the names at a position of a text, and where they end; the shortest first."""
    beginning = ""
    while (word := _WORD.match(text, start, start + _MAX_WORD_CHARS + 1)) is not None:
        # A word may end before an 's, as in "my name's Ada".
        for match in _GENITIVE.finditer(text, start, word.end()) if "'" in word[0] else ():
            name = beginning + text[start : match.start()].casefold()
            if name in names.fields:
                yield name, match.start()
        beginning += word[0].casefold()
        if beginning in names.fields:
            yield beginning, word.end()
        gap = _GAP_IN_NAME.match(text, word.end()) if beginning in names.beginnings else None
        if gap is None:
            return
        beginning += " "
        start = gap.end()


def _begins_part(link: _Link, text: str) -> bool:
    """True for a line like "name: Ada"; a long text may say "the name is wrong"."""
    before = text[: link.start].rstrip(" \t")
    return link.has_sign and before.endswith(("\n", ";"))


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
