"""Types of fields whose answers are numbers."""

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from app.domain.forms.fields.protocol import FieldType, InputField, WrongValue
from app.kit.errors import Problem

MAX_INTEGER: Final = 2**53 - 1
_DEFAULT_STARS = 5
_MAX_STARS = 100
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,20})(?:\.[0-9]{1,20})?")
_OUT_OF = re.compile(r"([0-9]{1,3})\s*(?:/|out of|of)\s*[0-9]{1,3}", re.IGNORECASE)
_WORDS: Final = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}

Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
Step = Annotated[float, Meta(gt=0, le=1e15)]


class NumberRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    min: Number | None = None
    max: Number | None = None
    step: Step | None = None


class SliderRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    min: Number = 0
    max: Number = 100
    step: Step = 1


class RatingRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    max: Annotated[int, Meta(ge=1, le=_MAX_STARS)] = _DEFAULT_STARS


def check_number(value: Any) -> int | float:
    """Returns a whole number as an integer, so that 3 and 3.0 are stored alike."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValue("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WrongValue("must be a finite number")
    return int(number) if number.is_integer() and abs(number) <= MAX_INTEGER else number


def show(number: float) -> str:
    """Returns a number without a needless .0."""
    return str(int(number)) if float(number).is_integer() else repr(number)


def parse_number(text: str) -> float:
    """Returns the first number in a text, in digits or as a word up to twelve."""
    match = _NUMBER.search(text)
    if match is not None:
        return float(match[0].replace(",", ""))
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in _WORDS:
            return _WORDS[word]
    raise WrongValue("must be a number")


def _check_range(number: float, rules: NumberRules | SliderRules) -> None:
    if rules.min is not None and number < rules.min:
        raise WrongValue(f"must be at least {show(rules.min)}")
    if rules.max is not None and number > rules.max:
        raise WrongValue(f"must be at most {show(rules.max)}")
    if rules.step is not None and not _is_step(number, rules.min or 0, rules.step):
        start = f" from {show(rules.min)}" if rules.min else ""
        raise WrongValue(f"must be in steps of {show(rules.step)}{start}")


def _is_step(number: float, start: float, step: float) -> bool:
    """In decimal numbers, as people write them: 0.3 is three steps of 0.1."""
    distance = Decimal(repr(number)) - Decimal(repr(start))
    return distance % Decimal(repr(step)) == 0


def _find_range_problems(rules: NumberRules | SliderRules) -> Iterator[Problem]:
    if rules.min is not None and rules.max is not None and rules.min > rules.max:
        yield "min", "must not be greater than max"


def _describe_range(rules: NumberRules | SliderRules) -> str:
    words = "a number"
    if rules.min is not None and rules.max is not None:
        words += f" from {show(rules.min)} to {show(rules.max)}"
    elif rules.min is not None:
        words += f" of at least {show(rules.min)}"
    elif rules.max is not None:
        words += f" of at most {show(rules.max)}"
    return words + (f", in steps of {show(rules.step)}" if rules.step not in {None, 1} else "")


def _range_schema(rules: NumberRules | SliderRules) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "number"}
    if rules.min is not None:
        schema["minimum"] = rules.min
    if rules.max is not None:
        schema["maximum"] = rules.max
    return schema


class NumberField(FieldType[NumberRules]):
    name: ClassVar[str] = "number"
    description: ClassVar[str] = "A number"
    rules: ClassVar[type[msgspec.Struct]] = NumberRules

    def find_problems(self, rules: NumberRules) -> Iterator[Problem]:
        yield from _find_range_problems(rules)

    def check(self, field: InputField[NumberRules], value: Any) -> int | float:
        number = check_number(value)
        _check_range(number, field.rules)
        return number

    def parse(self, field: InputField[NumberRules], text: str) -> int | float:
        return self.check(field, parse_number(text))

    def format(self, field: InputField[NumberRules], value: Any) -> str:
        del field
        return show(value)

    def describe(self, field: InputField[NumberRules]) -> str:
        return _describe_range(field.rules)

    def to_json_schema(self, field: InputField[NumberRules]) -> dict[str, Any]:
        return _range_schema(field.rules)


class SliderField(FieldType[SliderRules]):
    name: ClassVar[str] = "slider"
    description: ClassVar[str] = "A number on a scale"
    rules: ClassVar[type[msgspec.Struct]] = SliderRules

    def find_problems(self, rules: SliderRules) -> Iterator[Problem]:
        yield from _find_range_problems(rules)

    def check(self, field: InputField[SliderRules], value: Any) -> int | float:
        number = check_number(value)
        _check_range(number, field.rules)
        return number

    def parse(self, field: InputField[SliderRules], text: str) -> int | float:
        return self.check(field, parse_number(text))

    def format(self, field: InputField[SliderRules], value: Any) -> str:
        del field
        return show(value)

    def describe(self, field: InputField[SliderRules]) -> str:
        return _describe_range(field.rules)

    def to_json_schema(self, field: InputField[SliderRules]) -> dict[str, Any]:
        return _range_schema(field.rules)


class RatingField(FieldType[RatingRules]):
    name: ClassVar[str] = "rating"
    description: ClassVar[str] = "A number of stars"
    rules: ClassVar[type[msgspec.Struct]] = RatingRules

    def check(self, field: InputField[RatingRules], value: Any) -> int:
        number = check_number(value)
        if not isinstance(number, int) or not 1 <= number <= field.rules.max:
            raise WrongValue(f"must be a whole number from 1 to {field.rules.max}")
        return number

    def parse(self, field: InputField[RatingRules], text: str) -> int:
        match = _OUT_OF.search(text)
        return self.check(field, int(match[1]) if match else parse_number(text))

    def describe(self, field: InputField[RatingRules]) -> str:
        return f"a whole number from 1 to {field.rules.max}"

    def to_json_schema(self, field: InputField[RatingRules]) -> dict[str, Any]:
        return {"type": "integer", "minimum": 1, "maximum": field.rules.max}
