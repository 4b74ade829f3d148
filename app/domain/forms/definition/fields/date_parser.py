"""Dates and times in messages of people. A message with two of them, or with one that has several
readings, like 01/02/2026, is refused.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Final

from app.kit.languages import ENGLISH

from . import local_dates
from .language_tables import get_language
from .protocol import check_message
from .wordings import refuse

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_MONTHS: Final = {name[:3]: number for number, name in enumerate(_MONTH_NAMES.split(), 1)}
_MONTH = rf"({'|'.join(_MONTH_NAMES.split())}|{'|'.join(_MONTHS)}|sept)\.?"
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"
_ISO = re.compile(r"(?<![0-9-])([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9-])")
_DAY_MONTH = re.compile(
    rf"(?<![\w.,/-]){_DAY}\.?\s+(?:of\s+)?{_MONTH},?\s+([0-9]{{4}})(?![0-9])", re.IGNORECASE
)
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+{_DAY},?\s+([0-9]{{4}})(?![0-9])", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?<![0-9.:+-])(?P<iso>T)?(?P<hour>[0-9]{1,2})"
    r"(?:(?P<separator>[:.])(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.[0-9]{1,9})?)?)?"
    r"(?![0-9:.]*[0-9])(?:\s*(?P<am_pm>[ap])\.?m\b\.?)?"
    r"(?P<zone>\s*(?:z|utc|gmt)\b\s*|\s+)?(?P<distance>[-+][0-9]{2}:?[0-9]{2}(?![0-9]))?",
    re.IGNORECASE,
)
# Zones whose distance from UTC depends on the date or the country.
_ZONE = re.compile(
    r"\s*\(?(?:CES?T|EES?T|WES?T|BST|IST|MSK|[ECMP][SD]?T|AK[SD]T|HST|JST|KST|SGT|HKT"
    r"|A[ECW][SD]T|NZ[SD]T|[a-z]+\s+time)\b",
    re.IGNORECASE,
)
_HOURS_OF_AM = 12


def parse_date(text: str) -> date:
    """Finds a date in a text: as ISO 8601, or with the name of the month. Raises WrongValue."""
    text = check_message(text)
    if (language := get_language()) != ENGLISH:
        return local_dates.parse_date(language, text)
    try:
        dates = set(_find_dates(text))
    except ValueError:
        raise refuse("one_date") from None
    if len(dates) != 1:
        raise refuse("one_date")
    return dates.pop()


def parse_time(text: str) -> datetime:
    """Finds a date and a time of day in a text, in UTC unless it has a distance from UTC. Raises
    WrongValue.
    """
    day = parse_date(text)
    if (language := get_language()) != ENGLISH:
        clock = local_dates.write_clock(language, text)
        if clock.has_zone:
            raise refuse("zone")
        return _find_time(day, clock.text)
    for pattern in (_ISO, _DAY_MONTH, _MONTH_DAY):
        text = pattern.sub(" ", text)
    return _find_time(day, text)


def _find_time(day: date, text: str) -> datetime:
    clocks = [match for match in _CLOCK.finditer(text) if _is_clock(match)]
    if len(clocks) != 1:
        raise refuse("one_time")
    if _ZONE.match(text, clocks[0].end()):
        raise refuse("zone")
    try:
        return _read_clock(day, clocks[0])
    except (ValueError, OverflowError):
        raise refuse("one_time") from None


def _find_dates(text: str) -> Iterator[date]:
    """Raises ValueError for a date that the calendar does not have."""
    for year, month, day in _ISO.findall(text):
        yield date(int(year), int(month), int(day))
    for day, month, year in _DAY_MONTH.findall(text):
        yield date(int(year), _MONTHS[month[:3].lower()], int(day))
    for month, day, year in _MONTH_DAY.findall(text):
        yield date(int(year), _MONTHS[month[:3].lower()], int(day))


def _is_clock(match: re.Match[str]) -> bool:
    """False for a plain number."""
    return match["separator"] == ":" or match["am_pm"] is not None


def _read_clock(day: date, match: re.Match[str]) -> datetime:
    """Raises ValueError."""
    hour, am_pm = int(match["hour"]), (match["am_pm"] or "").lower()
    if am_pm:
        if not 1 <= hour <= _HOURS_OF_AM:
            raise ValueError(hour)
        hour = hour % _HOURS_OF_AM + (_HOURS_OF_AM if am_pm == "p" else 0)
    distance = match["distance"]
    if distance and not match["zone"] and not match["iso"]:
        # The end of a span, as in 09:30-10:30.
        raise ValueError(distance)
    time = datetime(day.year, day.month, day.day, hour, int(match["minute"] or 0), tzinfo=UTC)
    return time.replace(
        second=int(match["second"] or 0), tzinfo=_read_distance(distance) if distance else UTC
    ).astimezone(UTC)


def _read_distance(text: str) -> timezone:
    distance = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-distance if text[0] == "-" else distance)
