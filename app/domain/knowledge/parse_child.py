"""Script that reads one document and cuts it into chunks; `parsing.py` runs it with limits.

It imports nothing of Parley. It reads the file from standard input and its format from the first
argument. It writes one line, `ok` or `!` and an error, and then the chunks as JSON: a list of
[text, page, row].
"""

import csv
import io
import re
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

import msgspec

MAX_PAGES = 10_000
MAX_CHARACTERS = 20_000_000
MAX_CHUNKS = 50_000
_MAX_UNPACKED_BYTES = 200 * 1024 * 1024
_MAX_PARTS = 5000
_MAX_HEADING_CHARS = 200
# About 200 to 400 tokens of English, and an overlap of about 40.
_CHUNK_BYTES = (800, 1600)
_OVERLAP_BYTES = 160
_ROW_CHUNK_CHARS = 800
_CSV_SAMPLE_CHARS = 16 * 1024
_CHARSET_SAMPLE_BYTES = 256 * 1024
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")
_DOCX_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)

Chunk = tuple[str, int | None, int | None]


class Refused(Exception):
    """The message continues a sentence that starts with the name of the file."""


# Cutting


def _splitter(text: str, *, markdown: bool) -> Any:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter  # noqa: PLC0415

    # A token has about as many bytes in any script, but not as many characters.
    bytes_per_character = max(1.0, len(text.encode("utf-8", "replace")) / max(1, len(text)))
    low, high = (max(1, int(size / bytes_per_character)) for size in _CHUNK_BYTES)
    overlap = min(low - 1, int(_OVERLAP_BYTES / bytes_per_character))
    kind = MarkdownSplitter if markdown else TextSplitter
    return kind((low, high), overlap=overlap)


def _cut(text: str, *, markdown: bool = False, page: int | None = None) -> Iterator[Chunk]:
    text = _BLANK_LINES.sub("\n\n", _CONTROL.sub(" ", text)).strip()
    if text:
        for piece in _splitter(text, markdown=markdown).chunks(text):
            yield piece, page, None


def _cut_headed(text: str) -> Iterator[Chunk]:
    chunks = _cut_sections(iter(text.splitlines()))
    first = next(chunks, None)
    if first is None:
        # There are only headings.
        yield from _cut(text)
        return
    yield first
    yield from chunks


def _cut_sections(lines: Iterator[str]) -> Iterator[Chunk]:
    """Cuts Markdown at its headings. A chunk starts with the headings above it."""
    path: list[str] = []
    body: list[str] = []
    is_code = False
    for line in lines:
        if _FENCE.match(line):
            is_code = not is_code
        heading = None if is_code else _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        yield from _cut_section(path, body)
        level = len(heading[1])
        path = [*path[: level - 1], *[""] * (level - 1 - len(path)), heading[2]]
        body = []
    yield from _cut_section(path, body)


def _cut_section(path: list[str], body: list[str]) -> Iterator[Chunk]:
    title = " > ".join(filter(None, path))[-_MAX_HEADING_CHARS:]
    for piece, _, _ in _cut("\n".join(body), markdown=True):
        yield f"{title}\n\n{piece}".strip(), None, None


# Formats


def read_pdf(content: bytes) -> Iterator[Chunk]:
    import pypdfium2  # type: ignore[import-untyped]  # noqa: PLC0415

    if b"%PDF-" not in content[:1024]:
        raise Refused("is not a PDF file, although its name says so")
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Refused("is encrypted; upload it without a password") from None
        raise Refused("is a damaged PDF file") from None
    if len(document) > MAX_PAGES:
        raise Refused(f"has {len(document)} pages; at most {MAX_PAGES} are read")
    if len(document) == 0:
        raise Refused("has no pages")
    for number in range(len(document)):
        page = document[number]
        text_page = page.get_textpage()
        text = text_page.get_text_bounded().replace("\r\n", "\n").replace("\ufffe", "")
        text_page.close()
        page.close()
        yield from _cut(text, page=number + 1)


def read_docx(content: bytes) -> Iterator[Chunk]:
    _check_package(content)
    import docx  # noqa: PLC0415

    try:
        document = docx.Document(io.BytesIO(content))
    except MemoryError:
        raise
    except Exception as error:
        raise Refused("is a damaged DOCX file") from error
    yield from _cut_headed("\n".join(_docx_lines(document)))


def _check_package(content: bytes) -> None:
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise Refused("is encrypted, or an older DOC file; save it as DOCX without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            parts = package.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        raise Refused("is not a DOCX file, although its name says so") from None
    if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > _MAX_UNPACKED_BYTES:
        raise Refused("unpacks to more than a document has")
    if not any(part.filename == "word/document.xml" for part in parts):
        raise Refused("is not a DOCX file, although its name says so")


def _docx_lines(document: Any) -> Iterator[str]:
    """Yields the document as Markdown: headings, paragraphs and tables in their order."""
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            yield from _docx_table(block)
            continue
        text = block.text.strip()
        style = (block.style.name or "") if block.style is not None else ""
        level = 1 if style == "Title" else int((_DOCX_HEADING.match(style) or "00")[1])
        yield f"{'#' * min(level, 6)} {' '.join(text.split())}" if level and text else text
        yield ""


def _docx_table(table: Any) -> Iterator[str]:
    for number, row in enumerate(table.rows):
        # A merged cell is listed once per column that it covers.
        cells = [cell for i, cell in enumerate(row.cells) if not i or cell is not row.cells[i - 1]]
        yield "| " + " | ".join(" ".join(cell.text.split()) for cell in cells) + " |"
        if number == 0:
            yield "|" + " --- |" * len(cells)
    yield ""


def read_markdown(content: bytes) -> Iterator[Chunk]:
    yield from _cut_headed(_decode(content))


def read_text(content: bytes) -> Iterator[Chunk]:
    yield from _cut(_decode(content))


def read_csv(content: bytes) -> Iterator[Chunk]:
    text = _decode(content)
    csv.field_size_limit(1_000_000)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:_CSV_SAMPLE_CHARS], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        yield from _cut_rows(csv.reader(io.StringIO(text, newline=""), dialect))
    except csv.Error as error:
        raise Refused(f"is a damaged CSV file: {error}") from None


def _cut_rows(rows: Iterator[list[str]]) -> Iterator[Chunk]:
    """Puts rows together up to the size of a chunk. Each row has the names of its columns."""
    header = [name.strip() for name in next(rows, [])]
    lines: list[str] = []
    first = 1
    for number, row in enumerate(rows, 1):
        line = _row_text(header, row)
        if not line:
            continue
        if lines and sum(map(len, lines)) + len(line) > _ROW_CHUNK_CHARS:
            yield "\n".join(lines), None, first
            lines = []
        if not lines:
            first = number
        if len(line) > _CHUNK_BYTES[1]:
            for piece, _, _ in _cut(line):
                yield piece, None, number
            continue
        lines.append(line)
    if lines:
        yield "\n".join(lines), None, first


def _row_text(header: list[str], row: list[str]) -> str:
    cells = []
    for number, value in enumerate(row):
        text = " ".join(_CONTROL.sub(" ", value).split())
        if text:
            name = header[number] if number < len(header) else ""
            cells.append(f"{name or f'column {number + 1}'}: {text}")
    return "; ".join(cells)


def _decode(content: bytes) -> str:
    if content.startswith((b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise Refused("is not a text file, although its name says so")
    for bom, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(bom):
            return content.decode(encoding, "replace")
    if b"\x00" in content:
        raise Refused("is not a text file, although its name says so")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode(_guess_encoding(content), "replace")


def _guess_encoding(content: bytes) -> str:
    import charset_normalizer  # noqa: PLC0415

    best = charset_normalizer.from_bytes(content[:_CHARSET_SAMPLE_BYTES]).best()
    return best.encoding if best is not None else "cp1252"


READERS = {
    "pdf": read_pdf,
    "docx": read_docx,
    "md": read_markdown,
    "txt": read_text,
    "csv": read_csv,
}


def read_chunks(content: bytes, kind: str) -> list[Chunk]:
    if not content:
        raise Refused("is empty")
    chunks: list[Chunk] = []
    characters = 0
    for chunk in READERS[kind](content):
        chunks.append(chunk)
        characters += len(chunk[0])
        if characters > MAX_CHARACTERS or len(chunks) > MAX_CHUNKS:
            raise Refused(f"has too much text; at most {MAX_CHARACTERS:,} characters are read")
    if not chunks:
        hint = "; a scanned document needs text recognition first" if kind == "pdf" else ""
        raise Refused(f"has no text{hint}")
    return chunks


def respond(content: bytes, kind: str) -> bytes:
    try:
        return b"ok\n" + msgspec.json.encode(read_chunks(content, kind))
    except Refused as problem:
        return f"!{problem}\n".encode()
    except MemoryError:
        return b"!takes too much memory to read\n"
    except Exception:  # noqa: BLE001  # a reader's error means a bad file
        return b"!is damaged\n"


def main() -> None:
    sys.stdout.buffer.write(respond(sys.stdin.buffer.read(), sys.argv[1]))


if __name__ == "__main__":
    main()
