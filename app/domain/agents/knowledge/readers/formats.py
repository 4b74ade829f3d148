"""Reads a document of any format within limits."""

import codecs
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final

import msgspec

from . import book, hypertext, json_values, markdown, pdf, sheets, slides, table, text, word
from .cutting import CONTROL, Chunk, Refused, without_overlaps

MAX_CHARACTERS: Final = 20_000_000
MAX_CHUNKS: Final = 50_000
# Chunks overlap, so together they are longer than the text.
_OVERLAP_FACTOR = 1.2
_READERS = {
    "pdf": pdf.read,
    "docx": word.read,
    "xlsx": sheets.read,
    "pptx": slides.read,
    "epub": book.read,
    "html": hypertext.read,
    "md": markdown.read,
    "txt": text.read,
    "csv": table.read,
    "json": json_values.read,
    "jsonl": json_values.read_lines,
}
_TEXT_LIBRARIES = ("charset_normalizer",)
_XML_LIBRARIES = ("lxml.etree",)
_LIBRARIES: dict[str, tuple[str, ...]] = {
    "pdf": ("pypdfium2",),
    "docx": ("docx.oxml", *_XML_LIBRARIES),
    "xlsx": _XML_LIBRARIES,
    "pptx": _XML_LIBRARIES,
    "epub": (*_XML_LIBRARIES, *_TEXT_LIBRARIES),
    "html": (*_XML_LIBRARIES, *_TEXT_LIBRARIES),
}
# The last is that of names in packages.
_ENCODINGS = (*text.OLD_ENCODINGS, *hypertext.DECLARED_ENCODINGS, "cp437")


def load(kind: str) -> None:
    """Imports what the reader of a kind imports at its first use: later, its process cannot."""
    for name in ("semantic_text_splitter", *_LIBRARIES.get(kind, _TEXT_LIBRARIES)):
        import_module(name)
    for encoding in _ENCODINGS:
        codecs.lookup(encoding)


def read_chunks(content: bytes, kind: str) -> list[Chunk]:
    """Returns at least one chunk. Raises Refused."""
    if not content:
        raise Refused("is empty")
    chunks: list[Chunk] = []
    characters = 0
    for chunk in _READERS[kind](content):
        chunks.append(chunk)
        characters += len(chunk[0])
        if characters > MAX_CHARACTERS * _OVERLAP_FACTOR:
            raise Refused(f"has too much text; at most {MAX_CHARACTERS:,} characters are read")
        if len(chunks) > MAX_CHUNKS:
            raise Refused(f"has too many sections; at most {MAX_CHUNKS:,} passages are stored")
    if not chunks:
        raise _no_text(kind)
    return chunks


def _no_text(kind: str) -> Refused:
    hint = "; a scanned document needs text recognition first" if kind == "pdf" else ""
    return Refused(f"has no text{hint}")


def read_text(content: bytes, kind: str, max_characters: int) -> tuple[str, bool]:
    """Returns the start of a document's text, and whether there is more. Raises Refused."""
    if not content:
        raise Refused("is empty")
    parts: list[str] = []
    size = 0
    with without_overlaps():
        for part in _join(_READERS[kind](content)):
            parts.append(part)
            size += len(part) + 1
            if size > max_characters + 1:
                break
    text = CONTROL.sub(" ", "\n".join(parts))
    if not text.strip():
        raise _no_text(kind)
    return text[:max_characters], len(text) > max_characters


def _join(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yields the texts of chunks. Headings stand above the first chunk that has them."""
    last: str | None = None
    for chunk in chunks:
        text, heading = chunk.text, chunk.heading
        if heading and heading == last:
            text = text.removeprefix(heading).lstrip()
        last = heading
        if text:
            yield text


def respond(content: bytes, kind: str, max_characters: int | None = None) -> bytes:
    """Returns `ok` or `!` with an error, a newline, and the chunks as JSON; with `max_characters`,
    the text and whether it was cut. Raises ImportError, also when a library does not fit into the
    memory.
    """
    try:
        if max_characters is not None:
            return b"ok\n" + msgspec.json.encode(read_text(content, kind, max_characters))
        return b"ok\n" + msgspec.json.encode(read_chunks(content, kind))
    except Refused as problem:
        return f"!{problem}\n".encode()
    except MemoryError:
        return b"!takes too much memory to read\n"
    except ImportError:
        raise
    except Exception:  # noqa: BLE001  # a reader's error means a bad file
        return b"!is damaged\n"
