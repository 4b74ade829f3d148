"""What each type of field provides: it checks its definition and its values, and describes them."""

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec

from app.kit.errors import Problem
from app.kit.value_checks import WrongValue

from .files import FileRules
from .links import to_plain_text
from .options import Option, OptionIndex
from .wordings import refuse, say

if TYPE_CHECKING:
    # It has the names of the types, which are known once these are.
    from .definition import Field

_MAX_MESSAGE_CHARS = 2000


class MissingAnswer(WrongValue):
    """The value does not answer a field that is required."""


class NoRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The type has no validation options."""


R = TypeVar("R", bound=msgspec.Struct)


class InputField(msgspec.Struct, Generic[R], frozen=True):
    """A field of a form with its type, its decoded validation options and its indexed options."""

    definition: "Field"
    type: "FieldType[R]"
    rules: R
    options: OptionIndex

    @property
    def id(self) -> str:
        return self.definition.id

    @property
    def label(self) -> str:
        """The label without the addresses of its links."""
        return to_plain_text(self.definition.label)

    @property
    def file_rules(self) -> FileRules | None:
        """Which files may be uploaded for it; None for a field that takes none."""
        return self.type.get_file_rules(self.rules)


class FieldType(ABC, Generic[R]):
    """A subclass for each type; `registry.py` lists them."""

    name: ClassVar[str]
    description: ClassVar[str]
    # The keys of `validation`.
    rules: ClassVar[type[msgspec.Struct]] = NoRules
    # False for types that show something and are not answered.
    has_value: ClassVar[bool] = True
    # True for types that show the title of what follows.
    is_heading: ClassVar[bool] = False
    # False for types whose values the page sends: nobody is asked for them.
    is_asked: ClassVar[bool] = True
    # False for types whose answers cannot be put into words, so that no model reads them.
    is_verbal: ClassVar[bool] = True
    # True for types whose answers may be longer than any message that a person writes.
    is_long: ClassVar[bool] = False
    # True for types that take any words as their answer.
    is_free_text: ClassVar[bool] = False
    # True for free texts of several lines, which may mention other fields.
    has_lines: ClassVar[bool] = False
    has_options: ClassVar[bool] = False
    # True for types whose files are pictures to look at: tables have links to them.
    has_picture: ClassVar[bool] = False
    # Words that name a field of this type in a message, whatever its label is.
    synonyms: ClassVar[tuple[str, ...]] = ()
    # By which an answer is recognized in a longer text that does not name the field.
    pattern_in_text: ClassVar[re.Pattern[str] | None] = None
    # True for types whose values are lists of options.
    has_several: ClassVar[bool] = False
    # True for types whose values have an order.
    is_ordered: ClassVar[bool] = False

    @property
    def is_one_line(self) -> bool:
        """True for free texts of one line."""
        return self.is_free_text and not self.has_lines

    def find_problems(self, rules: R, options: Sequence[Option]) -> Iterator[Problem]:
        """Yields what is wrong with the validation options, by their names. `options` are those
        that the definition lists.
        """
        del rules, options
        yield from ()

    def get_file_rules(self, rules: R) -> FileRules | None:
        """Returns which files may be uploaded; None for types that take none."""
        del rules
        return None

    def is_inline(self, value: Any) -> bool:
        """True for a value that is the file itself, as a data URL; others are ids of files."""
        del value
        return False

    def decode(self, value: str) -> bytes:
        """Returns the content of a value that is the file itself."""
        return base64.b64decode(value.partition(",")[2])

    def estimate_steps(self, rules: R) -> int:
        """Returns how many steps a check of the longest value takes, where that depends on the
        validation options.
        """
        del rules
        return 0

    def is_operand(self, value: Any) -> bool:
        """True when the conditional of another field can compare this type's values with it."""
        return isinstance(value, str) and value != ""

    def is_empty(self, value: Any) -> bool:
        """True for a value that stands for no answer."""
        return value is None or (isinstance(value, str) and not value.strip())

    @abstractmethod
    def check(self, field: InputField[R], value: Any) -> Any:
        """Returns a value that is not empty in its stored form. Raises WrongValue."""

    def parse(self, field: InputField[R], text: str) -> Any:
        """Returns the value that a message of a person stands for, in its stored form. Raises
        WrongValue, also when the message may stand for several.
        """
        text = text.strip()
        if not text:
            raise refuse("empty")
        return self.check(field, text)

    def format(self, field: InputField[R], value: Any) -> str:
        """Returns a stored value as a person reads it."""
        del field
        return str(value)

    @abstractmethod
    def describe(self, field: InputField[R]) -> str:
        """Says what is expected, as the end of "Please enter …"."""

    @abstractmethod
    def to_json_schema(self, field: InputField[R]) -> dict[str, Any]:
        """Returns the schema of a value. It may allow more than `check` does."""


def check_message(text: str) -> str:
    """Returns a message that is short enough to search it for a value. Raises WrongValue."""
    text = text.strip()
    if not text:
        raise refuse("empty")
    if len(text) > _MAX_MESSAGE_CHARS:
        raise refuse("long_message", count=_MAX_MESSAGE_CHARS)
    return text


def join_words(words: Sequence[str]) -> str:
    """Returns "a, b or c"."""
    if len(words) < 2:  # noqa: PLR2004  # nothing to join
        return "".join(words)
    return say("list_or", words=join_list(words[:-1]), last=words[-1])


def join_list(words: Sequence[str]) -> str:
    return say("list_separator").join(words)
