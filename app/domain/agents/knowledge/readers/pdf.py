"""Reads PDF files page by page."""

from collections.abc import Iterator
from typing import Any, Final

from .cutting import Chunk, Refused, cut

MAX_PAGES: Final = 10_000
_SIGNATURE_BYTES = 1024
# pdfium writes U+0002 for a hyphen that divides a word between two lines.
_REPLACEMENTS = str.maketrans(
    {
        "\x02": "",
        "\ufb00": "ff",
        "\ufb01": "fi",
        "\ufb02": "fl",
        "\ufb03": "ffi",
        "\ufb04": "ffl",
    }
)


def read(content: bytes) -> Iterator[Chunk]:
    document = _open(content)
    if len(document) > MAX_PAGES:
        raise Refused(f"has {len(document):,} pages; at most {MAX_PAGES:,} are read")
    for number in range(len(document)):
        for piece in cut(_read_page(document, number).translate(_REPLACEMENTS)):
            yield Chunk(piece, number + 1)


def _open(content: bytes) -> Any:
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415  # for this format only

    if b"%PDF-" not in content[:_SIGNATURE_BYTES]:
        raise Refused("is not a PDF file, although its name says so")
    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Refused("is encrypted; upload it without a password") from None
        if not error.err_code:
            raise Refused("has no pages") from None
        raise Refused("is a damaged PDF file") from None


def _read_page(document: Any, number: int) -> str:
    import pypdfium2  # noqa: PLC0415  # for this format only

    try:
        page = document[number]
        text_page = page.get_textpage()
        text: str = text_page.get_text_bounded()
    except pypdfium2.PdfiumError:
        raise Refused(f"is a damaged PDF file: page {number + 1} cannot be read") from None
    text_page.close()
    page.close()
    return text
