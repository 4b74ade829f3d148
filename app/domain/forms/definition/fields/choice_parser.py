"""Choices in messages of people. A message that may stand for several choices is refused."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.kit.languages import ENGLISH

from . import choice_words
from .choice_words import NEGATIONS, Choosing, get_choosing
from .language_tables import WORD, get_language
from .options import Option, OptionIndex, fold


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOTH = 2
_YES = re.compile(
    r"(?:yes|y|yeah|yep|yup|true|ok|okay|sure|of course|absolutely|certainly|definitely|agreed"
    r"|accepted|confirmed|(?:i )?(?:do )?(?:agree|accept|confirm|consent)|i do(?! not\b))\b"
    r"|(?:1|on|x)$"
)
_NO = re.compile(
    r"(?:no|n|nope|nah|false|never|not|i (?:do not|dont|will not|wont|cannot|cant|decline|disagree"
    r"|refuse)|decline|disagree|refuse)\b|(?:0|off)$"
)
# Words after which a yes or a no may mean something else.
_DOUBTS: Final = _words("if unless maybe perhaps depends problem worries why mind idea unsure")
_DOUBTS_OF_YES: Final = _DOUBTS | NEGATIONS
_DOUBTS_OF_NO: Final = _DOUBTS | _words("yes yeah ok okay sure decline disagree refuse but")
_CONSENT = re.compile(r"\bi (?:do )?(?:agree|accept|confirm|consent)\b")


def parse_option(index: OptionIndex, text: str) -> Option | None:
    """Returns the option that a text names: by its label, its value or its number in the list, in
    any case; or the only one whose label the text contains.
    """
    option = _find_option(index, text)
    if option is not None:
        return option
    choosing = get_choosing()
    parts = _split_at_names(index.folded_labels, text, choosing)
    labels, rest = set(parts[1::2]), " ".join(parts[::2])
    if len(labels) != 1 or choosing.has_word(rest, choosing.negations):
        return None
    return index.names[labels.pop()]


def parse_options(index: OptionIndex, text: str) -> list[Option]:
    """Returns the options that a text names, and nothing when a part of the text is unclear."""
    option = _find_option(index, text)
    if option is not None:
        return [option]
    choosing = get_choosing()
    words = choosing.fold(fold(text))
    if words in choosing.everything or (words in choosing.both and len(index.options) == _BOTH):
        return list(index.options)
    names = index.list_names(choosing.separators)
    parts = _split_at_names(names, text, choosing)
    rest = " ".join(parts[::2])
    if choosing.has_word(rest, {*choosing.negations, *choosing.alternative}):
        return []
    chosen = [index.names[name] for name in parts[1::2]]
    for name in _list_names(parts):
        option = _find_option(index, name)
        if option is None:
            return []
        chosen.append(option)
    return chosen


def split_list(text: str) -> list[str]:
    """Splits a list of options that are not known at commas and the like."""
    parts = (part.strip() for part in get_choosing().open_separators.split(text))
    return [part for part in parts if part]


def parse_consent(text: str) -> bool | None:
    """Returns None for a text that is not clearly a yes or a no."""
    if (language := get_language()) != ENGLISH:
        return choice_words.parse_consent(language, text)
    if "?" in text:
        return None
    line = " ".join(_list_words(text))
    if (match := _YES.match(line)) is not None:
        return None if _has_word(line[match.end() :], _DOUBTS_OF_YES) else True
    if (match := _NO.match(line)) is not None:
        rest = line[match.end() :]
        return None if _has_word(rest, _DOUBTS_OF_NO) or _CONSENT.search(rest) else False
    return None


def _find_option(index: OptionIndex, text: str) -> Option | None:
    name = fold(text)
    return index.names.get(text.strip()) or index.names.get(name) or _find_by_number(index, name)


def _find_by_number(index: OptionIndex, text: str) -> Option | None:
    """The number of an option in the list, unless options are numbers themselves."""
    options = index.options
    if index.has_numbers:
        return None
    number = get_choosing().find_number(text)
    if number == -1:
        return options[-1]
    return options[number - 1] if 1 <= number <= len(options) else None


def _split_at_names(names: set[str], text: str, choosing: Choosing) -> list[str]:
    """Returns other text and names in turns. Where names overlap, the longest one counts."""
    text = text.casefold()
    lengths: dict[str, set[int]] = {}
    for name in names:
        if name in text:
            lengths.setdefault(name[0], set()).add(len(name))
    longest_first = {letter: sorted(sizes, reverse=True) for letter, sizes in lengths.items()}
    is_in_word = _mark_words(text, choosing)
    parts, start, position = [], 0, 0
    while position < len(text):
        sizes = longest_first.get(text[position], ())
        # A name has words of its own.
        ends = (position + size for size in sizes if not (position and is_in_word[position - 1]))
        for end in ends:
            if end <= len(text) and not is_in_word[end] and text[position:end] in names:
                parts += [text[start:position], text[position:end]]
                start = position = end
                break
        else:
            position += 1
    return [*parts, text[start:]]


def _mark_words(text: str, choosing: Choosing) -> list[bool]:
    """Returns for each letter, and for the end, whether a name may not begin or end next to it.
    Without spaces it may stand within a word, and elsewhere after a separator that is written
    together with it.
    """
    marks = [*(choosing.has_spaces and WORD.match(letter) is not None for letter in text), False]
    for match in choosing.attached.finditer(text) if choosing.attached else ():
        marks[match.end() - 1] = False
    return marks


def _list_names(parts: Sequence[str]) -> Iterator[str]:
    """Yields the parts of a list that have no label in them, without those that mean nothing.
    What stands between a label and the next separator belongs to the label.
    """
    last, choosing = len(parts) - 1, get_choosing()
    for index in range(0, len(parts), 2):
        pieces = [piece.strip() for piece in choosing.separators.split(parts[index])]
        pieces = pieces[1 if index > 0 else 0 : len(pieces) if index == last else -1]
        yield from (piece for piece in pieces if not choosing.is_filler(piece))


def _list_words(text: str) -> list[str]:
    plain = text.casefold().replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    return re.findall(r"\w+", plain)


def _has_word(text: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(_list_words(text))
