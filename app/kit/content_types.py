"""Detects the type of a file from its content; names and declared types are not trusted.

The table has the formats that people store. Anything else is text in UTF-8, or unknown.
"""

import codecs
import re
from typing import Final

UNKNOWN: Final = "application/octet-stream"
TEXT: Final = "text/plain"
_ZIP = "application/zip"
_OFFICE = "application/vnd.openxmlformats-officedocument."
# How much of both ends is kept. A ZIP file has the list of its entries at its end.
_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = 64 * 1024

# The first bytes of a format; `.` stands for any byte. The first match decides.
_SIGNATURES: Final = tuple(
    (re.compile(pattern, re.DOTALL), mime_type)
    for pattern, mime_type in (
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF.{4}WEBP", "image/webp"),
        (rb"BM.{4}\0\0\0\0", "image/bmp"),
        (rb"II\*\0|MM\0\*", "image/tiff"),
        (rb"\0\0\x01\0[^\0]\0", "image/x-icon"),
        (rb".{4}ftyp(avif|avis)", "image/avif"),
        (rb".{4}ftyp(hei[cxms]|hev[cxms]|mif1|msf1)", "image/heic"),
        (rb".{4}ftyp(M4A |M4B |F4A )", "audio/mp4"),
        (rb".{4}ftypqt  ", "video/quicktime"),
        (rb".{4}ftyp3g", "video/3gpp"),
        (rb".{4}ftyp", "video/mp4"),
        (rb"RIFF.{4}WAVE", "audio/wav"),
        (rb"RIFF.{4}AVI ", "video/x-msvideo"),
        (rb"ID3[\x02-\x04]", "audio/mpeg"),
        (rb"\xff[\xfa\xfb\xf2\xf3\xe2\xe3][^\xff]", "audio/mpeg"),
        (rb"\xff[\xf0\xf1\xf8\xf9]", "audio/aac"),
        (rb"fLaC[\0\x80]", "audio/flac"),
        (rb"FORM.{4}AIF[FC]", "audio/aiff"),
        (rb"MThd\0\0\0\x06", "audio/midi"),
        (rb"#!AMR", "audio/amr"),
        (rb"OggS.{24}(.{1,3})?(\x80theora|\x01video)", "video/ogg"),
        (rb"OggS\0", "audio/ogg"),
        (rb"\x1a\x45\xdf\xa3.{0,64}?\x42\x82.webm", "video/webm"),
        (rb"\x1a\x45\xdf\xa3", "video/x-matroska"),
        (rb"\0\0\x01[\xba\xb3]", "video/mpeg"),
        (rb"%PDF-", "application/pdf"),
        (rb"PK\x03\x04.{22}\x08\0..mimetype(?P<type>application/[a-z0-9.+-]{1,100}?)(?=PK)", ""),
        (rb"PK(\x03\x04|\x05\x06)", _ZIP),
        (rb"\x1f\x8b\x08", "application/gzip"),
        (rb"BZh[1-9]1AY&SY", "application/x-bzip2"),
        (rb"\xfd7zXZ\0", "application/x-xz"),
        (rb"\x28\xb5\x2f\xfd", "application/zstd"),
        (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (rb"Rar!\x1a\x07", "application/vnd.rar"),
        (rb".{257}ustar", "application/x-tar"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
        (rb"{\\rtf", "application/rtf"),
        (rb"SQLite format 3\0", "application/vnd.sqlite3"),
        (rb"PAR1\x15", "application/vnd.apache.parquet"),
        (rb"\x7fELF", "application/x-elf"),
        (rb"MZ.{0,62}?\0", "application/vnd.microsoft.portable-executable"),
        (rb"[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe", "application/x-mach-binary"),
        (rb"\0asm", "application/wasm"),
        (rb"wOFF(\0|OTTO|true)", "font/woff"),
        (rb"wOF2(\0|OTTO|true)", "font/woff2"),
        (rb"OTTO\0", "font/otf"),
        (rb"\0\x01\0\0\0", "font/ttf"),
        (rb"\xff\xfe|\xfe\xff", TEXT),
    )
)
# Names of entries: those of the local headers, and those of the list at the end.
_ENTRIES = re.compile(
    rb"PK(?:\x03\x04.{26}|\x01\x02.{42})(\[Content_Types\]\.xml|word/|xl/|ppt/)", re.DOTALL
)
_OFFICE_FOLDERS = {
    b"word/": "wordprocessingml.document",
    b"xl/": "spreadsheetml.sheet",
    b"ppt/": "presentationml.presentation",
}
_MARKUP = re.compile(
    rb"(?:<\?xml[^>]*+>|<!--.*?-->|<!doctype\s++(?!html)[^>]*+>|\s++)*+"
    rb"<(?P<name>!doctype\s+html|[a-z][a-z0-9:]*)(?=[\s>/])",
    re.DOTALL | re.IGNORECASE,
)
_HTML_NAMES = re.compile(
    rb"!doctype\s+html|html|head|body|title|script|style|iframe|img|svg|math|table|div|span|p|br"
    rb"|a|b|i|u|h[1-6]|form|input|link|meta|base|object|embed|video|audio|font|center",
    re.IGNORECASE,
)
# Of the control characters, text has tab, line feed, form feed, carriage return and escape.
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


class ContentDetector:
    """Receives a file in blocks. It keeps both ends, and checks whether all of it is text."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True

    def feed(self, block: bytes) -> None:
        if len(self._head) < _HEAD_BYTES:
            self._head += block[: _HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + block[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        if self._is_text:
            self._is_text = not _NOT_TEXT.search(block) and self._decode(block)

    def _decode(self, block: bytes, *, final: bool = False) -> bool:
        try:
            self._decoder.decode(block, final)
        except UnicodeDecodeError:
            return False
        return True

    def detect(self) -> str:
        """Returns the type, once the file is complete."""
        for pattern, mime_type in _SIGNATURES:
            match = pattern.match(self._head)
            if match:
                if mime_type == _ZIP:
                    return self._detect_archive()
                return mime_type or match["type"].decode()
        if not self._is_text or not self._decode(b"", final=True):
            return UNKNOWN
        return _detect_text(self._head)

    def _detect_archive(self) -> str:
        names = {match[1] for end in (self._head, self._tail) for match in _ENTRIES.finditer(end)}
        if b"[Content_Types].xml" in names:
            for folder, kind in _OFFICE_FOLDERS.items():
                if folder in names:
                    return _OFFICE + kind
        return _ZIP


def _detect_text(head: bytes) -> str:
    head = head.removeprefix(codecs.BOM_UTF8)
    markup = _MARKUP.match(head)
    if markup is None:
        return "application/xml" if head.lstrip().startswith(b"<?xml") else TEXT
    name = markup["name"].lower()
    if name == b"svg" or name.endswith(b":svg"):
        return "image/svg+xml"
    if head.lstrip().startswith(b"<?xml") and name != b"html":
        return "application/xml"
    return "text/html" if _HTML_NAMES.fullmatch(name) else TEXT


def detect(content: bytes) -> str:
    detector = ContentDetector()
    detector.feed(content)
    return detector.detect()


def served_type(mime_type: str) -> str:
    """Returns the type that a browser is told: formats that may run scripts are unknown to it."""
    main = mime_type.partition("/")[0]
    if main in {"image", "audio", "video"} and mime_type != "image/svg+xml":
        return mime_type
    if mime_type == TEXT:
        return "text/plain; charset=utf-8"
    return mime_type if mime_type == "application/pdf" else UNKNOWN
