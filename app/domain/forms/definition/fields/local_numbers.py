"""Numbers in messages of people, in languages other than English, by the words of their tables."""

import re
from functools import cache
from typing import NamedTuple

from app.kit.languages import Language

from .language_tables import LETTER, NumberWords, list_simple, load_table, simplify, to_pattern
from .wordings import refuse

_SPACES = "\u00a0\u202f\u2009"
_ARABIC: dict[int, str] = {0x66B: ".", 0x66C: ","}
_EDGES = " \t\r\n.,;:!?\u061f\u3002\u3001"


class _Patterns(NamedTuple):
    decimal: str
    words: dict[str, int]
    scales: re.Pattern[str]
    # Digits with their separators; the groups of a number that is written well.
    token: re.Pattern[str]
    grouped: re.Pattern[str]
    # A number with the decimal sign of other languages, which is clear: 1.5 where a comma is usual.
    foreign: re.Pattern[str]
    score: re.Pattern[str]
    score_after_total: re.Pattern[str]


@cache
def _build(language: Language) -> _Patterns:
    table = load_table(language)
    words = table.numbers
    groups = re.escape(words.groups + _SPACES + "'")

    def compile_words(phrases: list[str]) -> str:
        return to_pattern(phrases, has_spaces=table.has_spaces)

    # Where words stand side by side, a letter may come right before a number.
    before = r"(?<![\w.,])(?<!\w-)" if table.has_spaces else r"(?<![0-9.,])"
    token = rf"{before}[-+]?[.,]?[0-9](?:[0-9]|[.,'{_SPACES}](?=[0-9])| (?=[0-9]{{3}}(?![0-9])))*"
    if " " not in words.groups:
        token = token.replace("| (?=[0-9]{3}(?![0-9]))", "")
    return _Patterns(
        words.decimal,
        {name: number for number, names in enumerate(words.words) for name in list_simple([names])},
        _compile_scales(words, has_spaces=table.has_spaces),
        re.compile(token),
        re.compile(
            rf"[-+]?(?:{_list_groups(words, groups)}|[0-9]*)(?:{re.escape(words.decimal)}[0-9]+)?"
        ),
        re.compile(r"[-+]?(?:0?[.,][0-9]+|[0-9]*[.,](?:[0-9]{1,2}|[0-9]{4,}))"),
        _compile_score(rf"(?:/|{compile_words(words.out_of)})"),
        _compile_score(compile_words(words.total_before), is_total_first=True),
    )


def _list_groups(words: NumberWords, groups: str) -> str:
    if words.has_pairs:
        return (
            rf"[1-9][0-9]?(?:[{groups}][0-9]{{2}})*[{groups}][0-9]{{3}}"
            rf"|[1-9][0-9]{{0,2}}(?:[{groups}][0-9]{{3}})+"
        )
    return rf"[1-9][0-9]{{0,2}}(?P<group>[{groups}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*"


def _compile_scales(words: NumberWords, *, has_spaces: bool) -> re.Pattern[str]:
    phrases = to_pattern(words.scales, has_spaces=has_spaces)
    attached = "|".join(map(re.escape, list_simple(words.scales)))
    return re.compile(rf"{phrases}|[0-9]\s?(?:k|m|mn|mio|bn|{attached})(?![{LETTER}])|[½⅓¼¾%‰]")


def _compile_score(signs: str, *, is_total_first: bool = False) -> re.Pattern[str]:
    number = r"(?<![0-9.,])[0-9]{1,15}(?:[.,][0-9]{1,9})?(?![0-9])"
    names = ("total", "score") if is_total_first else ("score", "total")
    first, second = (rf"(?P<{name}>{number})" for name in names)
    return re.compile(rf"{first}\s*{signs}\s*{second}")


def parse_number(language: Language, text: str) -> float:
    """Raises WrongValue."""
    patterns, text = _build(language), _prepare(text)
    if (word := patterns.words.get(text.strip(_EDGES))) is not None:
        return float(word)
    tokens = {token.strip("'") for token in patterns.token.findall(text)}
    rest = patterns.token.sub(" ", text)
    is_clear = len(tokens) == 1 and not any(letter.isnumeric() for letter in rest)
    if not is_clear or patterns.scales.search(text):
        raise refuse("one_number")
    return _read(patterns, tokens.pop())


def parse_score(language: Language, text: str) -> tuple[float, float] | None:
    """Returns a score and its total, as in "3 von 5"; None for a text without a total. Raises
    WrongValue.
    """
    patterns, text = _build(language), _prepare(text)
    matches = [*patterns.score.finditer(text), *patterns.score_after_total.finditer(text)]
    if not matches:
        return None
    if len(matches) > 1:
        raise refuse("one_number")
    [match] = matches
    return _read(patterns, match["score"]), _read(patterns, match["total"])


def _prepare(text: str) -> str:
    return simplify(text.translate(_ARABIC)).replace("\u066a", "%")


def _read(patterns: _Patterns, token: str) -> float:
    if patterns.grouped.fullmatch(token):
        digits = re.sub(rf"[^0-9{re.escape(patterns.decimal)}+-]", "", token)
        return _to_float(digits.replace(patterns.decimal, "."))
    if patterns.foreign.fullmatch(token):
        return _to_float(token.replace(",", "."))
    raise refuse("one_number")


def _to_float(digits: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise refuse("one_number") from None
