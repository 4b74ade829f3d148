"""Checks of single values, which the columns of data tables and the fields of forms share."""

from datetime import UTC, date, datetime
from typing import Any, Final

# The limit within which every program reads a whole number exactly.
MAX_INTEGER: Final = 2**53 - 1


class WrongValue(ValueError):
    """The message says what the value must be, as the end of a sentence about its field."""


def check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValue("must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise WrongValue("must be valid Unicode") from None
    return value


def check_boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongValue("must be true or false")
    return value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_number(value: Any) -> int | float:
    """Returns the value itself, which may be infinite."""
    if not is_number(value):
        raise WrongValue("must be a number")
    number: int | float = value
    return number


def simplify_number(number: float) -> int | float:
    """Returns a whole number as an integer, so that 3 and 3.0, or 0 and -0.0, are stored alike."""
    return int(number) if number.is_integer() and abs(number) <= MAX_INTEGER else number


def parse_date(value: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise WrongValue("must be a date like 2026-01-31") from None


def parse_time(value: Any) -> datetime:
    """Returns an ISO 8601 time in UTC; it is in UTC unless it names a zone."""
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise WrongValue("must be a time like 2026-01-31T09:30:00Z") from None


def format_time(time: datetime) -> str:
    """Returns a time in UTC to the second, or to the millisecond where it has any."""
    precision = "milliseconds" if time.microsecond else "seconds"
    return time.isoformat(timespec=precision).removesuffix("+00:00") + "Z"
