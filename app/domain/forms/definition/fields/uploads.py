"""Types of fields that are answered by a file or a drawing."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

import msgspec

from app.kit import content_types
from app.kit.errors import Problem

from .files import CONTENT, FileRules
from .options import Option
from .protocol import FieldType, InputField, NoRules, join_words
from .wordings import refuse, say, show_decimal

_MAX_FILE_ID_CHARS = 64
_MAX_SIGNATURE_CHARS = 200_000
_SIGNATURE_PREFIX = "data:image/png;base64,"
# The longest image in base64 fits.
_SIGNATURE_RULES: Final = FileRules(allowed_types=["png"], max_size_mb=0.15)


def _is_file_id(value: Any) -> bool:
    is_id = isinstance(value, str) and len(value) <= _MAX_FILE_ID_CHARS and value.isascii()
    return bool(is_id and value.startswith("fil_") and value[4:].isalnum())


class FileField(FieldType[FileRules]):
    """The value is the id of a file that was uploaded for this field."""

    name: ClassVar[str] = "file"
    description: ClassVar[str] = "A file to upload"
    rules: ClassVar[type[msgspec.Struct]] = FileRules
    is_verbal: ClassVar[bool] = False

    def find_problems(self, rules: FileRules, options: Sequence[Option]) -> Iterator[Problem]:
        del options
        for ending in rules.endings:
            if ending not in CONTENT:
                known = ", ".join(sorted(CONTENT))
                yield "allowed_types", f"{ending} is not known here; there are {known}"

    def check(self, field: InputField[FileRules], value: Any) -> str:
        """Whether the file exists is looked up afterwards."""
        del field
        if not _is_file_id(value):
            raise refuse("file_id")
        return str(value)

    def get_file_rules(self, rules: FileRules) -> FileRules:
        return rules

    def describe(self, field: InputField[FileRules]) -> str:
        kinds = join_words(field.rules.endings)
        megabytes = show_decimal(f"{field.rules.max_size_mb:g}")
        if kinds:
            return say("a_file_of", megabytes=megabytes, kinds=kinds)
        return say("a_file", megabytes=megabytes)

    def to_json_schema(self, field: InputField[FileRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "maxLength": _MAX_FILE_ID_CHARS}


class SignatureField(FieldType[NoRules]):
    """The value is a PNG image as a data URL, which a submission stores as a file; or the id of an
    uploaded file.
    """

    name: ClassVar[str] = "signature"
    description: ClassVar[str] = "A drawn signature: a PNG image as a data URL, stored as a file"
    is_verbal: ClassVar[bool] = False
    is_long: ClassVar[bool] = True
    has_picture: ClassVar[bool] = True

    def get_file_rules(self, rules: NoRules) -> FileRules:
        del rules
        return _SIGNATURE_RULES

    def is_inline(self, value: Any) -> bool:
        return isinstance(value, str) and value.startswith(_SIGNATURE_PREFIX)

    def check(self, field: InputField[NoRules], value: Any) -> str:
        del field
        if _is_file_id(value):
            return str(value)
        if not isinstance(value, str) or not value.startswith(_SIGNATURE_PREFIX):
            raise refuse("image_prefix", prefix=_SIGNATURE_PREFIX)
        if len(value) > _MAX_SIGNATURE_CHARS:
            raise refuse("max_length", count=_MAX_SIGNATURE_CHARS)
        try:
            content = base64.b64decode(value.removeprefix(_SIGNATURE_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise refuse("image_coding") from None
        if content_types.detect(content) != "image/png":
            raise refuse("image")
        return value

    def format(self, field: InputField[NoRules], value: Any) -> str:
        del field
        return say("signed") if self.is_inline(value) else str(value)

    def describe(self, field: InputField[NoRules]) -> str:
        del field
        return say("your_signature")

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "maxLength": _MAX_SIGNATURE_CHARS}
