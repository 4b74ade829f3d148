"""What tests know about types of fields. Each other file has the cases of the types in the file of
its name in app/domain/forms/definition/fields.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

Json = dict[str, Any]
# The message stands for no value.
REFUSED: Final[Any] = object()


class Cases(msgspec.Struct, frozen=True, kw_only=True):
    # Type, validation options, then pairs of a value and its stored form.
    good: list[tuple[str, Json, list[tuple[Any, Any]]]] = []
    # Type, validation options, then a part of the message and the values that it is about.
    bad: list[tuple[str, Json, dict[str, list[Any]]]] = []
    # Type, validation options, then messages of people with the values that they stand for.
    messages: list[tuple[str, Json, Json]] = []
    # Type, validation options that are refused, the key that is wrong, a part of the message.
    wrong_rules: list[tuple[str, Any, str, str]] = []
    # By types: generates values that the type stores, more often than not.
    values: dict[str, st.SearchStrategy[Any]] = {}
    # Generates validation options.
    rules: dict[str, st.SearchStrategy[Json]] = {}
    # Generates what the type can be compared with, if that is not a text.
    operands: dict[str, st.SearchStrategy[Any]] = {}
    # A second opinion on stored values, written without the code that it checks.
    is_stored: dict[str, Callable[[Json, Any], bool]] = {}
