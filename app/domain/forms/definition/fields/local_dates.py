"""Dates and times in messages of people, in languages other than English, by the words of their
tables. A date in digits is read in the order of the language.
"""

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import NamedTuple

import msgspec

from app.kit.languages import Language

from .language_tables import LETTER, DateWords, list_simple, load_table, simplify, to_pattern
from .wordings import refuse

_YEAR_FIRST = re.compile(
    r"(?<![0-9./-])([0-9]{4})\s?([./-])\s?([0-9]{1,2})\s?\2\s?([0-9]{1,2})(?![0-9])"
)
_YEAR_LAST = re.compile(
    r"(?<![0-9./-])([0-9]{1,2})\s?([./-])\s?([0-9]{1,2})\s?\2\s?([0-9]{4})(?![0-9])"
)
_SIGNS = re.compile(r"([0-9]{4})\s*年\s*([0-9]{1,2})\s*月\s*([0-9]{1,2})\s*[日号號]")
# As in 1er, 3º or 3.
_DAY = rf"([0-9]{{1,2}})(?:[.º°ª]|[-']?[^\W\d_]{{1,3}}(?![{LETTER}]))?"
_YEAR = r"([0-9]{4})(?![0-9])"
_CLOCK = re.compile(r"(?<![0-9:])([0-9]{1,2})(:[0-9]{2})")
_NOON = 12


class _Patterns(NamedTuple):
    order: str
    months: dict[str, int]
    day_month: re.Pattern[str]
    month_day: re.Pattern[str]
    hours: re.Pattern[str]
    am: re.Pattern[str]
    pm: re.Pattern[str]
    vague: re.Pattern[str]
    zones: re.Pattern[str]


@cache
def _build(language: Language) -> _Patterns:
    table = load_table(language)
    words, has_spaces = table.dates, table.has_spaces
    months = {
        name: number
        for number, names in enumerate(words.months, 1)
        for name in list_simple([names])
    }
    month = rf"(?<![{LETTER}])({'|'.join(sorted(months, key=len, reverse=True))})(?![{LETTER}])\.?"
    of = rf"(?:{to_pattern(words.of)}\s+)?" if words.of else ""

    def compile_words(phrases: list[str]) -> re.Pattern[str]:
        return re.compile(to_pattern(phrases, has_spaces=has_spaces))

    return _Patterns(
        words.order,
        months,
        re.compile(rf"(?<![\w.,/-]){_DAY}\s*{of}{month},?\s*{of}{_YEAR}"),
        re.compile(rf"{month}\s*{_DAY},?\s*{of}{_YEAR}"),
        _compile_hours(words, has_spaces=has_spaces),
        *map(compile_words, (words.am, words.pm, words.vague, words.zones)),
    )


def _compile_hours(words: DateWords, *, has_spaces: bool) -> re.Pattern[str]:
    """Matches a time with a word for hours: "9 Uhr 30", "9.30 Uhr", "9h30"."""
    hour, minute = (
        "|".join(map(re.escape, list_simple(item))) for item in (words.hours, words.minutes)
    )
    end = r"(?![^\W\d_])" if has_spaces else ""
    return re.compile(
        rf"(?<![0-9.:])([0-9]{{1,2}})(?:[.:]([0-9]{{2}}))?\s*(?:{hour or '(?!)'}){end}"
        rf"(?:\s*([0-9]{{1,2}})(?![0-9:.])(?:\s*(?:{minute or '(?!)'}))?)?"
    )


def parse_date(language: Language, text: str) -> date:
    """Raises WrongValue."""
    try:
        dates = set(_find_dates(_build(language), simplify(text)))
    except ValueError:
        raise refuse("one_date") from None
    if len(dates) != 1:
        raise refuse("one_date")
    return dates.pop()


def _find_dates(patterns: _Patterns, text: str) -> Iterator[date]:
    """Raises ValueError for a date that the calendar does not have, or that has several
    readings.
    """
    for year, _, month, day in _YEAR_FIRST.findall(text):
        yield date(int(year), int(month), int(day))
    for year, month, day in _SIGNS.findall(text):
        yield date(int(year), int(month), int(day))
    for first, _, second, year in _YEAR_LAST.findall(text):
        if patterns.order != "dmy":
            raise ValueError(text)
        yield date(int(year), int(second), int(first))
    for day, month, year in patterns.day_month.findall(text):
        yield date(int(year), patterns.months[month], int(day))
    for month, day, year in patterns.month_day.findall(text):
        yield date(int(year), patterns.months[month], int(day))


class ClockText(msgspec.Struct, frozen=True):
    """What is left of a message without its date, with the time written as 09:30."""

    text: str
    has_zone: bool


def write_clock(language: Language, text: str) -> ClockText:
    """Rewrites the time of day in the words of the language. Raises WrongValue for a time that is
    not exact, such as "half past nine".
    """
    patterns, text = _build(language), simplify(text)
    for pattern in (_YEAR_FIRST, _SIGNS, _YEAR_LAST, patterns.day_month, patterns.month_day):
        text = pattern.sub(" ", text)
    if patterns.vague.search(text):
        raise refuse("one_time")
    text = patterns.hours.sub(_write_hours, text)
    if patterns.pm.search(text):
        text = _CLOCK.sub(lambda match: _shift(match, is_pm=True), text)
    elif patterns.am.search(text):
        text = _CLOCK.sub(lambda match: _shift(match, is_pm=False), text)
    return ClockText(text, patterns.zones.search(text) is not None)


def _write_hours(match: re.Match[str]) -> str:
    hour, minutes, more_minutes = match.groups()
    return f" {hour}:{int(minutes or more_minutes or 0):02} "


def _shift(match: re.Match[str], *, is_pm: bool) -> str:
    hour = int(match[1])
    if is_pm and hour < _NOON:
        hour += _NOON
    elif not is_pm and hour == _NOON:
        hour = 0
    return f"{hour}{match[2]}"
