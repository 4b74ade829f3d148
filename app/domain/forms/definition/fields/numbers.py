"""Types of fields whose answers are numbers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from app.kit import value_checks
from app.kit.errors import Problem
from app.kit.value_checks import MAX_INTEGER, is_number

from .number_parser import parse_number, parse_score
from .options import Option
from .protocol import FieldType, InputField, R
from .wordings import refuse, say, show_decimal

_DEFAULT_STARS = 5
_MAX_STARS = 100
_STARS = "\N{WHITE MEDIUM STAR}\N{BLACK STAR}"

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


def is_storable(value: Any) -> bool:
    return is_number(value) and -MAX_INTEGER <= value <= MAX_INTEGER


def check_number(value: Any) -> int | float:
    """Returns a whole number as an integer, so that 3 and 3.0 are stored alike."""
    number = value_checks.check_number(value)
    if not is_storable(number):
        raise refuse("storable", limit=MAX_INTEGER)
    return value_checks.simplify_number(float(number))


def show(number: float) -> str:
    """Returns a number without a needless .0."""
    return show_decimal(str(int(number)) if number == int(number) else repr(number))


def _check_range(number: float, rules: NumberRules | SliderRules) -> float:
    if rules.min is not None and number < rules.min:
        raise refuse("min", min=show(rules.min))
    if rules.max is not None and number > rules.max:
        raise refuse("max", max=show(rules.max))
    if rules.step is not None and not _is_step(number, rules.min or 0, rules.step):
        step = show(rules.step)
        raise (
            refuse("step_from", step=step, min=show(rules.min))
            if rules.min
            else refuse("step", step=step)
        )
    return number


def _is_step(number: float, start: float, step: float) -> bool:
    """In decimal numbers, as people write them: 0.3 is three steps of 0.1."""
    distance = Fraction(repr(number)) - Fraction(repr(start))
    return distance % Fraction(repr(step)) == 0


def _find_range_problems(rules: NumberRules | SliderRules) -> Iterator[Problem]:
    if rules.min is not None and rules.max is not None and rules.min > rules.max:
        yield "min", "must not be greater than max"


def _describe_range(rules: NumberRules | SliderRules) -> str:
    words = say("a_number")
    if rules.min is not None and rules.max is not None:
        words = say("a_number_between", min=show(rules.min), max=show(rules.max))
    elif rules.min is not None:
        words = say("a_number_at_least", min=show(rules.min))
    elif rules.max is not None:
        words = say("a_number_at_most", max=show(rules.max))
    if rules.step is None or rules.step == 1:
        return words
    return say("in_steps", number=words, step=show(rules.step))


def _range_schema(rules: NumberRules | SliderRules) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "number"}
    if rules.min is not None:
        schema["minimum"] = rules.min
    if rules.max is not None:
        schema["maximum"] = rules.max
    return schema


class _NumericField(FieldType[R]):
    is_ordered: ClassVar[bool] = True

    def is_operand(self, value: Any) -> bool:
        return is_storable(value)

    def format(self, field: InputField[R], value: Any) -> str:
        del field
        return show(value)


Range = TypeVar("Range", bound=NumberRules | SliderRules)


class _RangeField(_NumericField[Range]):
    def find_problems(self, rules: Range, options: Sequence[Option]) -> Iterator[Problem]:
        del options
        yield from _find_range_problems(rules)

    def check(self, field: InputField[Range], value: Any) -> int | float:
        return _check_range(check_number(value), field.rules)

    def describe(self, field: InputField[Range]) -> str:
        return _describe_range(field.rules)

    def to_json_schema(self, field: InputField[Range]) -> dict[str, Any]:
        return _range_schema(field.rules)


class NumberField(_RangeField[NumberRules]):
    name: ClassVar[str] = "number"
    description: ClassVar[str] = "A number"
    rules: ClassVar[type[msgspec.Struct]] = NumberRules

    def parse(self, field: InputField[NumberRules], text: str) -> int | float:
        return self.check(field, parse_number(text))


class SliderField(_RangeField[SliderRules]):
    name: ClassVar[str] = "slider"
    description: ClassVar[str] = "A number on a scale"
    rules: ClassVar[type[msgspec.Struct]] = SliderRules

    def parse(self, field: InputField[SliderRules], text: str) -> int | float:
        return self.check(field, parse_score(text, field.rules.max))


class RatingField(_NumericField[RatingRules]):
    name: ClassVar[str] = "rating"
    description: ClassVar[str] = "A number of stars"
    rules: ClassVar[type[msgspec.Struct]] = RatingRules

    def check(self, field: InputField[RatingRules], value: Any) -> int:
        number = check_number(value)
        if not isinstance(number, int) or not 1 <= number <= field.rules.max:
            raise refuse("stars", max=field.rules.max)
        return number

    def parse(self, field: InputField[RatingRules], text: str) -> int:
        if any(map(str.isalnum, text)):
            return self.check(field, parse_score(text, field.rules.max))
        return self.check(field, sum(map(text.count, _STARS)))

    def describe(self, field: InputField[RatingRules]) -> str:
        return say("a_whole_number", max=field.rules.max)

    def to_json_schema(self, field: InputField[RatingRules]) -> dict[str, Any]:
        return {"type": "integer", "minimum": 1, "maximum": field.rules.max}
