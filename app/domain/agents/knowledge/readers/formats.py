"""Reads a document of any format within limits."""

import codecs
from importlib import import_module
from typing import Final

import msgspec

from . import book, hypertext, json_values, markdown, pdf, sheets, slides, table, text, word
from .cutting import Chunk, Refused

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
        hint = "; a scanned document needs text recognition first" if kind == "pdf" else ""
        raise Refused(f"has no text{hint}")
    return chunks


def respond(content: bytes, kind: str) -> bytes:
    """Returns `ok` or `!` with an error, a newline, and the chunks as JSON. Raises ImportError,
    also when a library does not fit into the memory.
    """
    try:
        return b"ok\n" + msgspec.json.encode(read_chunks(content, kind))
    except Refused as problem:
        return f"!{problem}\n".encode()
    except MemoryError:
        return b"!takes too much memory to read\n"
    except ImportError:
        raise
    except Exception:  # noqa: BLE001  # a reader's error means a bad file
        return b"!is damaged\n"
