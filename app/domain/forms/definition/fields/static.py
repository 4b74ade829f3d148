"""Types of fields that show something and are not answered."""

from typing import Any, ClassVar

from .protocol import FieldType, InputField, NoRules
from .wordings import refuse, say


class _StaticField(FieldType[NoRules]):
    has_value: ClassVar[bool] = False

    def is_empty(self, value: Any) -> bool:
        """Any value is refused, as there is nothing to answer."""
        return value is None

    def check(self, field: InputField[NoRules], value: Any) -> Any:
        del field, value
        raise refuse("no_answer")

    def describe(self, field: InputField[NoRules]) -> str:
        del field
        return say("nothing")

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        return {"type": "null"}


class SectionField(_StaticField):
    name: ClassVar[str] = "section"
    is_heading: ClassVar[bool] = True
    description: ClassVar[str] = "A heading that divides the form"


class PageBreakField(_StaticField):
    name: ClassVar[str] = "page_break"
    is_heading: ClassVar[bool] = True
    description: ClassVar[str] = "The beginning of another page; its label is the page's title"


class ParagraphField(_StaticField):
    name: ClassVar[str] = "paragraph"
    description: ClassVar[str] = "A text to read"
