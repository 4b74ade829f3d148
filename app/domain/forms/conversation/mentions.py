"""Finds where a message names a field of the form: "my e-mail is …", "change the date to …".

The words of a message are looked up one after the other, so that the time does not grow with the
number of names.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile, islice
from typing import Any, Final, NamedTuple

from app.domain.forms.definition.api import InputField, language_tables
from app.kit.languages import Language

from .phrases import Phrases, get_phrases

# Nobody repeats more of a label than this. The limits bound the memory of a form's names.
_MAX_LABEL_WORDS: Final = 30
_MAX_WORD_CHARS: Final = 60
_MAX_FORM_WORDS: Final = 3000
# Of "is my", before a name.
_MAX_BEFORE: Final = 40
_GAP_IN_NAME = re.compile(r"\W{1,5}(?!\W)")
_GENITIVE = re.compile(r"'s\b", re.IGNORECASE)
_GAP = " \t\r\n,;.\u3001\u3002\u060c"


class Mention(NamedTuple):
    """The text that a message gives as the answer to a field."""

    field: InputField[Any]
    text: str


class Split(NamedTuple):
    """`rest` is what stands before the first mention. A field has one mention, its last one."""

    rest: str
    mentions: list[Mention]


class _Names(NamedTuple):
    """The ids of fields by their names, the beginnings of names with several words, and the lengths
    of names by their first letters.
    """

    fields: dict[str, str]
    beginnings: set[str]
    lengths: dict[str, set[int]]


class _Link(NamedTuple):
    """A name in a message, with the words that lead to the answer."""

    field: InputField[Any]
    start: int
    end: int
    is_change: bool
    has_sign: bool


def _names_of(fields: Sequence[InputField[Any]]) -> _Names:
    known = get_phrases()
    rows = (
        (
            field.id,
            (*field.type.synonyms, *known.synonyms.get(field.type.name, ())),
            known.prepare_label(field.label),
        )
        for field in fields
    )
    return _index(tuple(rows), language_tables.get_language())


@lru_cache(maxsize=64)
def _index(fields: tuple[tuple[str, tuple[str, ...], str], ...], _language: Language) -> _Names:
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
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[0], set()).add(len(name))
    return _Names(names, beginnings, lengths)


def _list_words(text: str) -> list[str]:
    """Returns the first words, and one more when there are too many."""
    matches = get_phrases().word.finditer(text.casefold())
    return [match[0] for match in islice(matches, _MAX_LABEL_WORDS + 1)]


def _select_words(texts: Iterable[list[str]], synonyms: Iterable[str]) -> set[str]:
    words = {
        word
        for text in texts
        for word in text[:_MAX_LABEL_WORDS]
        if 1 < len(word) <= _MAX_WORD_CHARS
    }
    return (words - get_phrases().common).union(synonyms)


def _select_labels(texts: Iterable[list[str]]) -> set[str]:
    """Returns the label and the id without what they begin with, as "What is your"."""
    short = (text for text in texts if len(text) <= _MAX_LABEL_WORDS)
    common = get_phrases().common
    labels = (" ".join(dropwhile(common.__contains__, text)) for text in short)
    return {label for label in labels if len(label) > 1}


def _select_unique(owners: dict[str, set[str]]) -> dict[str, str]:
    return {name: next(iter(found)) for name, found in owners.items() if len(found) == 1}


def _find_spaces(name: str) -> Iterator[int]:
    return (index for index, letter in enumerate(name) if letter == " ")


def find_named(fields: Sequence[InputField[Any]], text: str) -> set[str]:
    """Returns the ids of the fields that a text names."""
    known = get_phrases()
    names, words = _names_of(fields), known.word.findall(known.fold(text).casefold())
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
    found = _find_mentions(fields, get_phrases().fold(text))
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
    known = get_phrases()
    change = known.change
    # Where words stand side by side, the verb may be the last one.
    is_change_anywhere = not known.has_spaces and change.search(text) is not None
    has_change, searched = is_change_anywhere, 0
    for link in _find_links(fields, text):
        has_change = has_change or change.search(text, searched, link.start) is not None
        searched = link.start
        # "my guests to the party" changes nothing.
        if link.is_change and not has_change:
            continue
        is_in_prose = bool(found) and found[-1].field.type.has_lines
        if is_in_prose and not _begins_part(link, text):
            continue
        found.append(link)
        has_change, searched = is_change_anywhere, link.end
    return found


def _find_links(fields: Sequence[InputField[Any]], text: str) -> Iterator[_Link]:
    """Yields each name that leads to an answer. Where names overlap, the longest one counts."""
    known = get_phrases()
    names, by_id = _names_of(fields), {field.id: field for field in fields}
    find = _find_names if known.has_spaces else _find_parts
    position = 0
    while (start := known.name_start.search(text, position)) is not None:
        position = start.end()
        for name, end in reversed(list(find(names, text, start.start()))):
            link = _follow(known, by_id[names.fields[name]], text, start.start(), end)
            if link is not None:
                yield link
                position = max(link.end, position)
                break


def _follow(
    known: Phrases, field: InputField[Any], text: str, start: int, end: int
) -> _Link | None:
    """Returns the link from a name to its answer. Some languages say "is" before the name."""
    match = known.link.match(text, end)
    if match is not None:
        return _Link(field, start, match.end(), match["to"] is not None, match["sign"] is not None)
    before = known.link_before
    line = text[max(0, start - _MAX_BEFORE) : start]
    if before is None or (found := before.search(line)) is None or not text[end:].strip():
        return None
    return _Link(field, start - len(line) + found.start(), end, is_change=False, has_sign=False)


def _find_parts(names: _Names, text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yields the names at a position of a text whose words stand side by side."""
    for length in sorted(names.lengths.get(text[start], ())):
        name = text[start : start + length]
        if name in names.fields:
            yield name, start + len(name)


def _find_names(names: _Names, text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yields the names at a position of a text, and where they end; the shortest first."""
    beginning = ""
    pattern = get_phrases().word
    while (word := pattern.match(text, start, start + _MAX_WORD_CHARS + 1)) is not None:
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
    known = get_phrases()
    end = len(text)
    while end:
        if text[end - 1] in _GAP:
            end -= 1
            continue
        start = end
        while start and not text[start - 1].isspace():
            start -= 1
        if known.fold(text[start:end]).casefold() not in known.connections:
            break
        end = start
    return text[:end]
