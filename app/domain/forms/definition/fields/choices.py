"""Types of fields that are answered by a choice."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from app.kit.errors import Problem
from app.kit.value_checks import WrongValue, check_boolean

from .choice_parser import parse_consent, parse_option, parse_options, split_list
from .options import Option
from .protocol import (
    FieldType,
    InputField,
    MissingAnswer,
    NoRules,
    R,
    check_message,
    join_list,
    join_words,
)
from .texts import check_characters
from .wordings import refuse, say

# How many options a message lists.
_LISTED: Final = 20
_MAX_VALUE_CHARS = 200
_MAX_SELECTIONS = 500

Count = Annotated[int, Meta(ge=0, le=_MAX_SELECTIONS)]


class SelectionRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    min_selections: Count | None = None
    max_selections: Annotated[int, Meta(ge=1, le=_MAX_SELECTIONS)] | None = None


def _describe_options(field: InputField[Any]) -> str:
    """With the links of their labels."""
    options = field.definition.options
    return _list_labels([option.label for option in options[:_LISTED]], len(options))


def _list_labels(labels: Sequence[str], total: int) -> str:
    if not labels:
        return say("the_options")
    if total > len(labels):
        return say("list_more", words=join_list(labels), count=total - len(labels))
    return join_words(labels)


def _check_option(field: InputField[Any], value: Any) -> str:
    """Options of a data table are looked up afterwards."""
    text = check_characters(value)
    if len(text) > _MAX_VALUE_CHARS:
        raise refuse("max_length", count=_MAX_VALUE_CHARS)
    if field.definition.data_source is None and _find_option(field, text) is None:
        raise _build_refusal(field)
    return text


def _build_refusal(field: InputField[Any]) -> WrongValue:
    options = field.definition.options
    names = _list_labels([option.name for option in options[:_LISTED]], len(options))
    return refuse("option", options=names)


def _find_option(field: InputField[Any], value: str) -> Option | None:
    return field.options.by_value.get(value)


def _label_of(field: InputField[Any], value: Any) -> str:
    option = _find_option(field, value) if isinstance(value, str) else None
    return option.name if option is not None else str(value)


def _option_schema(field: InputField[Any]) -> dict[str, Any]:
    values = [option.value for option in field.definition.options]
    return {"type": "string", "enum": values} if values else {"type": "string"}


class _ChoiceField(FieldType[NoRules]):
    """One of the options."""

    has_options: ClassVar[bool] = True

    def check(self, field: InputField[NoRules], value: Any) -> str:
        return _check_option(field, value)

    def parse(self, field: InputField[NoRules], text: str) -> str:
        text = check_message(text)
        if not field.definition.options:
            return self.check(field, text)
        option = parse_option(field.options, text)
        if option is None:
            raise _build_refusal(field)
        return self.check(field, option.value)

    def format(self, field: InputField[NoRules], value: Any) -> str:
        return _label_of(field, value)

    def describe(self, field: InputField[NoRules]) -> str:
        return say("one_of", options=_describe_options(field))

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        return _option_schema(field)


class SelectField(_ChoiceField):
    name: ClassVar[str] = "select"
    description: ClassVar[str] = "One of several options, in a list that opens"


class RadioField(_ChoiceField):
    name: ClassVar[str] = "radio"
    description: ClassVar[str] = "One of several options that are all visible"


class _SeveralField(FieldType[R]):
    """Any number of the options, each at most once."""

    has_options: ClassVar[bool] = True
    has_several: ClassVar[bool] = True

    def is_empty(self, value: Any) -> bool:
        return super().is_empty(value) or value == []

    def check(self, field: InputField[R], value: Any) -> list[str]:
        if not isinstance(value, list):
            raise refuse("option_list")
        if len(value) > _MAX_SELECTIONS:
            raise refuse("option_count", count=_MAX_SELECTIONS)
        values = [_check_option(field, item) for item in value]
        if len(set(values)) < len(values):
            raise refuse("option_once")
        return values

    def parse(self, field: InputField[R], text: str) -> list[str]:
        text = check_message(text)
        if not field.definition.options:
            return self.check(field, split_list(text))
        chosen = parse_options(field.options, text)
        if not chosen:
            raise _build_refusal(field)
        return self.check(field, list(dict.fromkeys(option.value for option in chosen)))

    def format(self, field: InputField[R], value: Any) -> str:
        return join_list([_label_of(field, item) for item in value])

    def describe(self, field: InputField[R]) -> str:
        return say("some_of", options=_describe_options(field))

    def to_json_schema(self, field: InputField[R]) -> dict[str, Any]:
        return {"type": "array", "items": _option_schema(field)}


class CheckboxGroupField(_SeveralField[NoRules]):
    name: ClassVar[str] = "checkbox_group"
    description: ClassVar[str] = "Any of several options that are all visible"


class MultiSelectField(_SeveralField[SelectionRules]):
    name: ClassVar[str] = "multi_select"
    description: ClassVar[str] = "Any of several options, in a list that opens"
    rules: ClassVar[type[msgspec.Struct]] = SelectionRules

    def find_problems(self, rules: SelectionRules, options: Sequence[Option]) -> Iterator[Problem]:
        fewest, most = rules.min_selections or 0, rules.max_selections or _MAX_SELECTIONS
        if fewest > most:
            yield "min_selections", "must not be greater than max_selections"
        elif options and fewest > len(options):
            yield "min_selections", "must not be greater than the number of options"

    def check(self, field: InputField[SelectionRules], value: Any) -> list[str]:
        values = super().check(field, value)
        fewest, most = field.rules.min_selections, field.rules.max_selections
        if fewest is not None and len(values) < fewest:
            raise refuse("min_selections", count=fewest)
        if most is not None and len(values) > most:
            raise refuse("max_selections", count=most)
        return values

    def describe(self, field: InputField[SelectionRules]) -> str:
        fewest, most = field.rules.min_selections or 1, field.rules.max_selections
        options = _describe_options(field)
        if most is None and fewest == 1:
            return say("some_of", options=options)
        if most is None:
            return say("at_least_of", count=fewest, options=options)
        if fewest == most:
            return say("exactly_of", count=most, options=options)
        return say("between_of", min=fewest, max=most, options=options)

    def to_json_schema(self, field: InputField[SelectionRules]) -> dict[str, Any]:
        schema = super().to_json_schema(field)
        if field.rules.min_selections:
            schema["minItems"] = field.rules.min_selections
        if field.rules.max_selections:
            schema["maxItems"] = field.rules.max_selections
        return schema


class CheckboxField(FieldType[NoRules]):
    """Where it is required, it must be checked: a box that confirms something."""

    name: ClassVar[str] = "checkbox"
    description: ClassVar[str] = "A box to check"

    def is_operand(self, value: Any) -> bool:
        return isinstance(value, bool)

    def check(self, field: InputField[NoRules], value: Any) -> bool:
        is_checked = check_boolean(value)
        if field.definition.required and not is_checked:
            raise MissingAnswer(say("checked"))
        return is_checked

    def parse(self, field: InputField[NoRules], text: str) -> bool:
        is_checked = parse_consent(check_message(text))
        if is_checked is None:
            raise refuse("consent")
        return self.check(field, is_checked)

    def format(self, field: InputField[NoRules], value: Any) -> str:
        del field
        return say("yes") if value else say("no")

    def describe(self, field: InputField[NoRules]) -> str:
        return say("a_confirmation") if field.definition.required else say("yes_or_no")

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        return {"type": "boolean"}
