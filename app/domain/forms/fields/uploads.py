"""Types of fields that are answered by a file or a drawing."""

import base64
import binascii
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from app.domain.forms.fields.definition import Field
from app.domain.forms.fields.protocol import (
    FieldType,
    InputField,
    NoRules,
    WrongValue,
    join_words,
)
from app.kit import content_types
from app.kit.errors import Problem

DEFAULT_MAX_MB: Final = 10
MAX_MB: Final = 100
_MAX_FILE_ID_CHARS = 64
_MAX_SIGNATURE_CHARS = 200_000
_SIGNATURE_PREFIX = "data:image/png;base64,"

_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
# Which content a file with this ending has. Texts cannot be told apart by their content.
CONTENT: Final[dict[str, frozenset[str]]] = {
    ending: frozenset(kinds.split())
    for endings, kinds in (
        ("pdf", "application/pdf"),
        ("png", "image/png"),
        ("jpg jpeg", "image/jpeg"),
        ("gif", "image/gif"),
        ("webp", "image/webp"),
        ("bmp", "image/bmp"),
        ("tif tiff", "image/tiff"),
        ("ico", "image/x-icon"),
        ("avif", "image/avif"),
        ("heic heif", "image/heic"),
        ("svg", "image/svg+xml"),
        ("doc xls ppt msg", "application/x-ole-storage"),
        ("docx", f"{_OFFICE}wordprocessingml.document"),
        ("xlsx", f"{_OFFICE}spreadsheetml.sheet"),
        ("pptx", f"{_OFFICE}presentationml.presentation"),
        ("odt", f"{_OPEN}text"),
        ("ods", f"{_OPEN}spreadsheet"),
        ("odp", f"{_OPEN}presentation"),
        ("epub", "application/epub+zip"),
        ("rtf", "application/rtf"),
        ("txt csv tsv md json log yaml yml ini toml vcf ics", "text/plain"),
        ("html htm", "text/html"),
        ("xml", "application/xml text/plain"),
        ("zip", "application/zip"),
        ("gz tgz", "application/gzip"),
        ("bz2", "application/x-bzip2"),
        ("xz", "application/x-xz"),
        ("zst", "application/zstd"),
        ("7z", "application/x-7z-compressed"),
        ("rar", "application/vnd.rar"),
        ("tar", "application/x-tar"),
        ("mp3", "audio/mpeg"),
        ("wav", "audio/wav"),
        ("ogg oga opus", "audio/ogg"),
        ("m4a", "audio/mp4"),
        ("flac", "audio/flac"),
        ("aac", "audio/aac"),
        ("mp4 m4v", "video/mp4"),
        ("mov", "video/quicktime"),
        ("webm", "video/webm"),
        ("avi", "video/x-msvideo"),
        ("mkv", "video/x-matroska"),
        ("mpg mpeg", "video/mpeg"),
        ("ogv", "video/ogg"),
    )
    for ending in endings.split()
}
# Programs: a visitor must not make anybody run one.
_REFUSED: Final = frozenset(
    {
        "application/x-elf",
        "application/vnd.microsoft.portable-executable",
        "application/x-mach-binary",
        "application/wasm",
    }
)

Ending = Annotated[str, Meta(min_length=1, max_length=11)]


class FileRules(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`allowed_types` has endings like `pdf` or `.pdf`; the content of a file decides, not its
    name.
    """

    allowed_types: Annotated[list[Ending], Meta(min_length=1, max_length=50)] | None = None
    max_size_mb: Annotated[float, Meta(gt=0, le=MAX_MB)] = DEFAULT_MAX_MB

    @property
    def endings(self) -> list[str]:
        return [normalize_ending(item) for item in self.allowed_types or []]

    @property
    def max_bytes(self) -> int:
        return int(self.max_size_mb * 1024 * 1024)


def normalize_ending(text: str) -> str:
    return text.strip().lower().removeprefix(".")


class FileField(FieldType[FileRules]):
    """The value is the id of a file that was uploaded for this field."""

    name: ClassVar[str] = "file"
    description: ClassVar[str] = "A file to upload"
    rules: ClassVar[type[msgspec.Struct]] = FileRules

    def find_problems(self, rules: FileRules, definition: Field) -> Iterator[Problem]:
        del definition
        for ending in rules.endings:
            if ending not in CONTENT:
                known = ", ".join(sorted(CONTENT))
                yield "allowed_types", f"{ending} is not known here; there are {known}"

    def check(self, field: InputField[FileRules], value: Any) -> str:
        """Whether the file exists is looked up afterwards."""
        del field
        is_id = isinstance(value, str) and len(value) <= _MAX_FILE_ID_CHARS and value.isascii()
        if not is_id or not value.startswith("fil_") or not value[4:].isalnum():
            raise WrongValue("must be the id of an uploaded file, like fil_…")
        return str(value)

    def allows(self, rules: FileRules, filename: str, mime_type: str) -> bool:
        """True when a file with this content may be uploaded."""
        if rules.allowed_types is None:
            return mime_type not in _REFUSED
        endings = rules.endings
        if mime_type == content_types.TEXT:
            # Only the name tells which text it is.
            _, _, ending = filename.rpartition(".")
            endings = [item for item in endings if item == normalize_ending(ending)]
        return any(mime_type in CONTENT[ending] for ending in endings)

    def describe(self, field: InputField[FileRules]) -> str:
        kinds = join_words(field.rules.endings)
        size = f"of at most {field.rules.max_size_mb:g} MB"
        return f"a file {size}" + (f" ({kinds})" if kinds else "")

    def to_json_schema(self, field: InputField[FileRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "maxLength": _MAX_FILE_ID_CHARS}


class SignatureField(FieldType[NoRules]):
    """The value is a PNG image as a data URL."""

    name: ClassVar[str] = "signature"
    description: ClassVar[str] = "A drawn signature, a PNG image as a data URL"

    def check(self, field: InputField[NoRules], value: Any) -> str:
        del field
        if not isinstance(value, str) or not value.startswith(_SIGNATURE_PREFIX):
            raise WrongValue(f"must be a PNG image that begins with {_SIGNATURE_PREFIX}")
        if len(value) > _MAX_SIGNATURE_CHARS:
            raise WrongValue(f"must have at most {_MAX_SIGNATURE_CHARS:,} characters")
        try:
            content = base64.b64decode(value.removeprefix(_SIGNATURE_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise WrongValue("must be a PNG image in base64") from None
        if content_types.detect(content) != "image/png":
            raise WrongValue("must be a PNG image")
        return value

    def format(self, field: InputField[NoRules], value: Any) -> str:
        del field, value
        return "signed"

    def describe(self, field: InputField[NoRules]) -> str:
        del field
        return "your signature"

    def to_json_schema(self, field: InputField[NoRules]) -> dict[str, Any]:
        del field
        return {"type": "string", "maxLength": _MAX_SIGNATURE_CHARS}
