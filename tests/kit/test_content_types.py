"""The type of a file is detected from its content."""

import io
import time
import zipfile

import pytest
from PIL import Image

from app.kit.content_types import UNKNOWN, ContentDetector, detect, served_type

_OFFICE = "application/vnd.openxmlformats-officedocument."
_MEGABYTE = 1024 * 1024


def _zip(*names: str, mimetype: str = "", size: int = 1) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, b"x" * size)
    return out.getvalue()


def _draw(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, kind)
    return out.getvalue()


TYPES = {
    "image/png": _draw("PNG"),
    "image/jpeg": _draw("JPEG"),
    "image/gif": _draw("GIF"),
    "image/webp": _draw("WEBP"),
    "image/bmp": _draw("BMP"),
    "image/tiff": _draw("TIFF"),
    "image/x-icon": _draw("ICO"),
    "image/avif": b"\0\0\0\x20ftypavif",
    "image/heic": b"\0\0\0\x20ftypheic",
    "audio/mp4": b"\0\0\0\x20ftypM4A ",
    "video/mp4": b"\0\0\0\x20ftypisom",
    "video/quicktime": b"\0\0\0\x20ftypqt  ",
    "audio/wav": b"RIFF\0\0\0\0WAVEfmt ",
    "video/x-msvideo": b"RIFF\0\0\0\0AVI LIST",
    "audio/mpeg": b"ID3\x04\0",
    "audio/flac": b"fLaC\0\0\0\x22",
    "audio/ogg": b"OggS\0\x02",
    "video/webm": b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm",
    "video/x-matroska": b"\x1a\x45\xdf\xa3\x9f\x42\x82\x88matroska",
    "video/mpeg": b"\0\0\x01\xba",
    "application/pdf": b"%PDF-1.7",
    "application/zip": _zip("a.txt"),
    f"{_OFFICE}wordprocessingml.document": _zip("[Content_Types].xml", "word/document.xml"),
    f"{_OFFICE}spreadsheetml.sheet": _zip("[Content_Types].xml", "xl/workbook.xml"),
    f"{_OFFICE}presentationml.presentation": _zip("ppt/p.xml", "[Content_Types].xml"),
    "application/vnd.oasis.opendocument.text": _zip(
        "content.xml", mimetype="application/vnd.oasis.opendocument.text"
    ),
    "application/epub+zip": _zip("a", mimetype="application/epub+zip"),
    "application/gzip": b"\x1f\x8b\x08\0",
    "application/x-7z-compressed": b"7z\xbc\xaf\x27\x1c",
    "application/x-tar": bytes(257) + b"ustar\0",
    "application/vnd.sqlite3": b"SQLite format 3\0",
    "application/vnd.microsoft.portable-executable": b"MZ\x90\0\x03",
    "application/x-elf": b"\x7fELF\x02",
    "application/rtf": b"{\\rtf1",
    "text/html": b"\xef\xbb\xbf\n<!-- x --><!DOCTYPE HTML><p>",
    "image/svg+xml": b"<?xml version='1.0'?><!DOCTYPE svg><svg xmlns='x'/>",
    "application/xml": b"<?xml version='1.0'?><order/>",
    "text/plain": "Größe \U0001f600, a < b".encode(),
    UNKNOWN: b"\x01\x02\x03",
}
# Content that must not pass for what it resembles.
OTHERS = {
    "text that starts like a program": (b"MZ is a text", "text/plain"),
    "text that ends within a character": ("ö".encode()[:1], UNKNOWN),
    "text in another charset": ("Größe".encode("latin-1"), UNKNOWN),
    "text with a control character": (b"a\0b", UNKNOWN),
    "text in UTF-16": ("Hi".encode("utf-16"), "text/plain"),
    "an empty file": (b"", "text/plain"),
    "a script element alone": (b"<script>alert(1)</script>", "text/html"),
    "an archive that claims to be a page": (_zip("a", mimetype="text/html"), "application/zip"),
    "an archive with a folder named word": (_zip("word/a.txt"), "application/zip"),
    "a page within a picture": (b"GIF89a<script>", "image/gif"),
    "a picture in a page": (b"<svg><html>", "image/svg+xml"),
}


def test_every_format_is_detected(subtests: pytest.Subtests) -> None:
    for mime_type, content in TYPES.items():
        with subtests.test(mime_type):
            assert detect(content) == mime_type
    for name, (content, mime_type) in OTHERS.items():
        with subtests.test(name):
            assert detect(content) == mime_type


def test_a_file_in_blocks_is_detected_like_the_whole(subtests: pytest.Subtests) -> None:
    large = _zip("[Content_Types].xml", "pictures/a", "word/document.xml", size=_MEGABYTE)
    for content in (*TYPES.values(), large, b"a" * 200_000 + "ö".encode(), b"a" * 70_000 + b"\xff"):
        detector = ContentDetector()
        for start in range(0, len(content), 1_001):
            detector.feed(content[start : start + 1_001])
        with subtests.test(detect(content)):
            assert detector.detect() == detect(content)


def test_detection_is_fast_for_every_content(subtests: pytest.Subtests) -> None:
    for text in (b" ", b"<!--", b"<?xml ", b"<!doctype ", b"PK\x03\x04", b"\x1a\x45\xdf\xa3", b"<"):
        with subtests.test(text.decode("latin-1")):
            started = time.process_time()
            detect(text * (_MEGABYTE // len(text)))
            assert time.process_time() - started < 1


def test_only_types_that_run_nothing_are_served_as_they_are(subtests: pytest.Subtests) -> None:
    for mime_type, served in {
        "image/png": "image/png",
        "audio/mpeg": "audio/mpeg",
        "video/mp4": "video/mp4",
        "application/pdf": "application/pdf",
        "text/plain": "text/plain; charset=utf-8",
        "image/svg+xml": UNKNOWN,
        "text/html": UNKNOWN,
        "application/xml": UNKNOWN,
        "application/zip": UNKNOWN,
        "application/wasm": UNKNOWN,
        "": UNKNOWN,
    }.items():
        with subtests.test(mime_type):
            assert served_type(mime_type) == served
