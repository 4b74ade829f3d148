"""Types of fields whose answers are dates or times. Stored as ISO 8601 texts, times in UTC."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from app.domain.forms.fields.protocol import FieldType, InputField, WrongValue
from app.kit.errors import Problem

_MAX_CHARS = 40
_NO_TIME = "must be a time like 2026-01-31T09:30:00Z"
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        1,
    )
    for name in names.split()
}
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_ISO_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
_DAY_MONTH = re.compile(
    r"\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?([a-z]{3,9})\.?,?\s+(\d{4})\b",
    re.ASCII | re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    r"\b([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b", re.ASCII | re.IGNORECASE
)
_CLOCK = re.compile(
    r"\b(\d{1,2}):(\d{2})\s*(am|pm)?\b|\b(\d{1,2})\s*(am|pm)\b", re.ASCII | re.IGNORECASE
)

Moment = Annotated[
    str, Meta(max_length=_MAX_CHARS, description="An ISO 8601 date, or date and time")
]


class DateRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    min_date: Moment | None = None
    max_date: Moment | None = None


def _read_date(value: Any) -> date:
    if not isinstance(value, str) or not _ISO_DATE.fullmatch(value):
        raise WrongValue("must be a date like 2026-01-31")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise WrongValue("must be a date like 2026-01-31") from None


def _read_time(value: Any) -> datetime:
    """In UTC unless it names a zone; to the second."""
    if not isinstance(value, str) or len(value) > _MAX_CHARS:
        raise WrongValue(_NO_TIME)
    try:
        time = datetime.fromisoformat(value)
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise WrongValue(_NO_TIME) from None
    return time.replace(microsecond=0)


def _show_time(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def parse_date(text: str) -> date:
    """Finds a date in a text: as ISO 8601, or with the name of the month. Numbers alone, as in
    01/02/2026, have two meanings and are refused.
    """
    if (match := _ISO_DATE.search(text)) is not None:
        return _read_date(match[0])
    if (match := _DAY_MONTH.search(text)) is not None:
        day, month, year = match[1], match[2], match[3]
    elif (match := _MONTH_DAY.search(text)) is not None:
        month, day, year = match[1], match[2], match[3]
    else:
        raise WrongValue("must be a date like 2026-01-31 or 31 January 2026")
    try:
        return date(int(year), _MONTHS[month.lower()], int(day))
    except (KeyError, ValueError):
        raise WrongValue("must be a date like 2026-01-31 or 31 January 2026") from None


def parse_time(text: str) -> datetime:
    """Finds a date and a time of day in a text."""
    if (match := _ISO_TIME.search(text)) is not None:
        return _read_time(match[0])
    day, match = parse_date(text), _CLOCK.search(text)
    if match is None:
        raise WrongValue("must be a date and a time, like 2026-01-31 09:30")
    hour, minute = int(match[1] or match[4]), int(match[2] or 0)
    half = (match[3] or match[5] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    try:
        return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise WrongValue("must be a date and a time, like 2026-01-31 09:30") from None


def _describe_range(rules: DateRules) -> str:
    if rules.min_date and rules.max_date:
        return f" from {rules.min_date} to {rules.max_date}"
    if rules.min_date:
        return f" from {rules.min_date} on"
    return f" until {rules.max_date}" if rules.max_date else ""


class DateField(FieldType[DateRules]):
    name: ClassVar[str] = "date"
    description: ClassVar[str] = "A date"
    rules: ClassVar[type[msgspec.Struct]] = DateRules

    def find_problems(self, rules: DateRules) -> Iterator[Problem]:
        yield from _find_problems(rules, _read_date)

    def check(self, field: InputField[DateRules], value: Any) -> str:
        day = _read_date(value)
        if field.rules.min_date is not None and day < _read_date(field.rules.min_date):
            raise WrongValue(f"must not be before {field.rules.min_date}")
        if field.rules.max_date is not None and day > _read_date(field.rules.max_date):
            raise WrongValue(f"must not be after {field.rules.max_date}")
        return day.isoformat()

    def parse(self, field: InputField[DateRules], text: str) -> str:
        return self.check(field, parse_date(text).isoformat())

    def describe(self, field: InputField[DateRules]) -> str:
        return f"a date{_describe_range(field.rules)}, like 2026-01-31"

    def to_json_schema(self, field: InputField[DateRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "format": "date"}


class DatetimeField(FieldType[DateRules]):
    """The limits may be dates: then all times of the last day are allowed."""

    name: ClassVar[str] = "datetime"
    description: ClassVar[str] = "A date and a time of day"
    rules: ClassVar[type[msgspec.Struct]] = DateRules

    def find_problems(self, rules: DateRules) -> Iterator[Problem]:
        yield from _find_problems(rules, _read_time)

    def check(self, field: InputField[DateRules], value: Any) -> str:
        time, rules = _read_time(value), field.rules
        if rules.min_date is not None and time < _read_time(rules.min_date):
            raise WrongValue(f"must not be before {rules.min_date}")
        if rules.max_date is not None and self._is_after(time, rules.max_date):
            raise WrongValue(f"must not be after {rules.max_date}")
        return _show_time(time)

    def _is_after(self, time: datetime, last: str) -> bool:
        if _ISO_DATE.fullmatch(last):
            return time.date() > _read_date(last)
        return time > _read_time(last)

    def parse(self, field: InputField[DateRules], text: str) -> str:
        return self.check(field, _show_time(parse_time(text)))

    def describe(self, field: InputField[DateRules]) -> str:
        return f"a date and a time{_describe_range(field.rules)}, like 2026-01-31 09:30"

    def to_json_schema(self, field: InputField[DateRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "format": "date-time"}


def _find_problems(rules: DateRules, read: Any) -> Iterator[Problem]:
    moments = {}
    for name in ("min_date", "max_date"):
        text = getattr(rules, name)
        if text is not None:
            try:
                moments[name] = read(text)
            except WrongValue as error:
                yield name, str(error)
    if len(moments) == 2 and moments["min_date"] > moments["max_date"]:  # noqa: PLR2004  # both
        yield "min_date", "must not be after max_date"
