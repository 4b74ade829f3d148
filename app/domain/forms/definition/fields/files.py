"""Which files may be uploaded for a field."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from app.kit import content_types

DEFAULT_MAX_MB: Final = 10
MAX_MB: Final = 100

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

    def allows(self, filename: str, mime_type: str) -> bool:
        """True when a file with this content may be uploaded."""
        if self.allowed_types is None:
            return mime_type not in _REFUSED
        endings = self.endings
        if mime_type == content_types.TEXT:
            # Only the name tells which text it is.
            _, _, ending = filename.rpartition(".")
            endings = [item for item in endings if item == normalize_ending(ending)]
        return any(mime_type in CONTENT[ending] for ending in endings)


def normalize_ending(text: str) -> str:
    return text.strip().lower().removeprefix(".")
