"""Writes DOCX files: proper ones, and ones that an editor would not write."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import docx

NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def make_docx(build: Callable[[Any], None]) -> bytes:
    """Returns a document to which `build` adds its content by python-docx."""
    document = docx.Document()
    build(document)
    output = io.BytesIO()
    document.save(output)
    return output.getvalue()


def make_raw_docx(body: str, doctype: str = "") -> bytes:
    """Returns a document with this XML in its body."""
    document = f"<w:document {NAMESPACE}><w:body>{body}</w:body></w:document>"
    return replace_part(
        make_docx(lambda _document: None),
        "word/document.xml",
        f'<?xml version="1.0" encoding="UTF-8"?>{doctype}{document}'.encode(),
    )


def make_docx_without_styles(text: str) -> bytes:
    """Returns a document as small generators write it."""
    package = make_raw_docx(paragraph(text))
    for name in ("word/_rels/document.xml.rels", "[Content_Types].xml"):
        with zipfile.ZipFile(io.BytesIO(package)) as source:
            entries = source.read(name)
        package = replace_part(package, name, re.sub(rb'<[^<]*styles\.xml"[^>]*>', b"", entries))
    return package


def replace_part(package: bytes, name: str, content: bytes) -> bytes:
    output = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(package)) as source,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for part in source.namelist():
            if part != name:
                target.writestr(part, source.read(part))
        target.writestr(name, content)
    return output.getvalue()


def make_zip(**parts: bytes) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    return output.getvalue()


def understate_sizes(package: bytes, size: int) -> bytes:
    """Returns the package with headers that declare every large part to have only `size` bytes."""
    output = bytearray(package)
    with zipfile.ZipFile(io.BytesIO(package)) as source:
        parts = [part for part in source.infolist() if part.file_size > size]
    for part in parts:
        real = part.file_size.to_bytes(4, "little")
        place = output.find(real)
        while place >= 0:
            output[place : place + 4] = size.to_bytes(4, "little")
            place = output.find(real, place)
    return bytes(output)


def mark_encrypted(package: bytes) -> bytes:
    """Returns the package with a first part that needs a password, as its directory says."""
    place = package.find(b"PK\x01\x02") + 8
    return package[:place] + b"\x01" + package[place + 1 :]


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
