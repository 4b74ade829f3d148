"""The options of a field, and how answers and messages name them."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.kit.validation import ONE_LINE

from .links import to_plain_text

OptionText = Annotated[str, Meta(min_length=1, max_length=200, pattern=ONE_LINE)]
_PUNCTUATION = " \t\r\n.,;:!\"'()"


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    example: ClassVar[dict[str, Any]] = {"value": "sales", "label": "Sales"}

    value: OptionText
    label: OptionText

    @property
    def name(self) -> str:
        """The label without the addresses of its links."""
        return to_plain_text(self.label)


class OptionIndex:
    """Fields with the same options share one. Each index is built when it is first used."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.options = options
        self._names_by_separators: dict[str, set[str]] = {}

    @cached_property
    def by_value(self) -> dict[str, Option]:
        return {option.value: option for option in reversed(self.options)}

    @cached_property
    def names(self) -> dict[str, Option]:
        """People see the labels, so that these come before the values. Where two options have the
        same name, the first one counts.
        """
        names: dict[str, Option] = {}
        for option in self.options:
            names.setdefault(option.name, option)
        for option in self.options:
            names.setdefault(option.value, option)
        for option in self.options:
            names.setdefault(fold(option.name), option)
        for option in self.options:
            names.setdefault(fold(option.value), option)
        return {name: option for name, option in names.items() if name}

    @cached_property
    def folded_labels(self) -> set[str]:
        return {label for option in self.options if (label := fold(option.name))}

    def list_names(self, separators: re.Pattern[str]) -> set[str]:
        """Returns the labels, and those of the values that a separator would divide."""
        names = self._names_by_separators.get(separators.pattern)
        if names is None:
            divided = (option.value for option in self.options if separators.search(option.value))
            names = self.folded_labels | {value for item in divided if (value := fold(item))}
            self._names_by_separators[separators.pattern] = names
        return names

    @cached_property
    def has_numbers(self) -> bool:
        """True when labels are numbers themselves."""
        return any(option.name[:1].isdigit() for option in self.options)


def fold(text: str) -> str:
    """Returns a text without its case, and without the punctuation around it."""
    return text.casefold().strip(_PUNCTUATION)
