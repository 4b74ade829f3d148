"""Types of fields whose answers are dates or times. Stored as ISO 8601 texts, times in UTC."""

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.kit import value_checks
from app.kit.errors import Problem
from app.kit.value_checks import WrongValue

from .date_parser import parse_date, parse_time
from .options import Option
from .protocol import FieldType, InputField
from .wordings import refuse, say, show_date

_MAX_CHARS = 40
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_ISO_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2}[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?:\.\d{1,9})?"
    r"(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?",
    re.ASCII,
)

Moment = Annotated[
    str, Meta(max_length=_MAX_CHARS, description="An ISO 8601 date, or date and time")
]


class DateRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    min_date: Moment | None = None
    max_date: Moment | None = None


def _read_date(value: Any) -> date:
    is_extended = isinstance(value, str) and _ISO_DATE.fullmatch(value)
    return value_checks.parse_date(value if is_extended else None)


def _read_time(value: Any) -> datetime:
    """In UTC unless it names a zone; to the second."""
    match = _ISO_TIME.fullmatch(value) if isinstance(value, str) else None
    return value_checks.parse_time(match and f"{match[1]}{match[2] or 'Z'}")


def _describe(name: str, rules: DateRules) -> str:
    first, last = show_date(rules.min_date or ""), show_date(rules.max_date or "")
    if first and last:
        return say(f"{name}_between", min=first, max=last)
    if first:
        return say(f"{name}_from", min=first)
    return say(f"{name}_until", max=last) if last else say(name)


class _MomentField(FieldType[DateRules]):
    rules: ClassVar[type[msgspec.Struct]] = DateRules
    is_ordered: ClassVar[bool] = True

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Returns a moment that has an order. Raises WrongValue."""

    def read_limit(self, text: str, *, is_last: bool) -> Any:
        """Raises WrongValue."""
        del is_last
        return self.read(text)

    def show(self, moment: Any) -> str:
        """Returns the stored form, whose order as a text is that of time."""
        return str(moment.isoformat())

    def find_problems(self, rules: DateRules, options: Sequence[Option]) -> Iterator[Problem]:
        del options
        limits = {}
        for name, text in (("min_date", rules.min_date), ("max_date", rules.max_date)):
            if text is not None:
                try:
                    limits[name] = self.read_limit(text, is_last=name == "max_date")
                except WrongValue as error:
                    yield name, str(error)
        if limits.keys() == {"min_date", "max_date"} and limits["min_date"] > limits["max_date"]:
            yield "min_date", "must not be after max_date"

    def is_operand(self, value: Any) -> bool:
        with suppress(WrongValue):
            return bool(self.show(self.read(value)) == value)
        return False

    def check(self, field: InputField[DateRules], value: Any) -> str:
        moment, first, last = self.read(value), field.rules.min_date, field.rules.max_date
        if first is not None and moment < self.read_limit(first, is_last=False):
            raise refuse("min_date", date=show_date(first))
        if last is not None and moment > self.read_limit(last, is_last=True):
            raise refuse("max_date", date=show_date(last))
        return self.show(moment)


class DateField(_MomentField):
    name: ClassVar[str] = "date"
    description: ClassVar[str] = "A date"

    def read(self, value: Any) -> date:
        return _read_date(value)

    def parse(self, field: InputField[DateRules], text: str) -> str:
        return self.check(field, parse_date(text).isoformat())

    def format(self, field: InputField[DateRules], value: Any) -> str:
        del field
        return show_date(str(value))

    def describe(self, field: InputField[DateRules]) -> str:
        return _describe("a_date", field.rules)

    def to_json_schema(self, field: InputField[DateRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "format": "date"}


class DatetimeField(_MomentField):
    """The limits may be dates: then all times of the last day are allowed."""

    name: ClassVar[str] = "datetime"
    description: ClassVar[str] = "A date and a time of day"

    def read(self, value: Any) -> datetime:
        return _read_time(value)

    def read_limit(self, text: str, *, is_last: bool) -> datetime:
        if not _ISO_DATE.fullmatch(text):
            return _read_time(text)
        return datetime.combine(_read_date(text), time.max if is_last else time.min, UTC)

    def show(self, moment: Any) -> str:
        return value_checks.format_time(moment)

    def parse(self, field: InputField[DateRules], text: str) -> str:
        return self.check(field, value_checks.format_time(parse_time(text)))

    def format(self, field: InputField[DateRules], value: Any) -> str:
        del field
        return f"{show_date(value.removesuffix('Z').removesuffix(':00').replace('T', ' '))} UTC"

    def describe(self, field: InputField[DateRules]) -> str:
        return _describe("a_time", field.rules)

    def to_json_schema(self, field: InputField[DateRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "format": "date-time"}
