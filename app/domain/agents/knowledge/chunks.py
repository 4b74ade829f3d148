"""Chunks: passages of a document, with their place in it and, once embedded, their vectors."""

import re
from typing import Any, NamedTuple

import msgspec

_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A passage. `page` is that of a PDF or the slide of a presentation, from 1 on. `row` counts
    from 1 after the header of a CSV file or in a JSON list; in a sheet it is the number of the row.
    `heading` has the headings above the passage, like "Delivery > Abroad".
    """

    text: str
    page: int | None = None
    row: int | None = None
    heading: str | None = None


class StoredChunk(msgspec.Struct, frozen=True):
    """A passage as the table has it. `position` is its place among the document's chunks."""

    document_id: str
    document_name: str
    position: int
    text: str
    page: int | None
    row: int | None
    heading: str | None = None
    # That of the document.
    version: int = 0
    # Its terms and those of the document's title, separated by spaces; empty in older tables.
    terms: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return self.document_id, self.position


class DocumentState(NamedTuple):
    version: int
    chunk_count: int


class EmbeddedDocument(NamedTuple):
    """One document's chunks with a row of `vectors`, a float32 matrix, for each."""

    document_id: str
    document_name: str
    version: int
    # The embedding model that made the vectors.
    model: str
    chunks: list[Chunk]
    vectors: Any
    # That of its text, and the one that somebody has set instead.
    language: str | None = None
    chosen_language: str | None = None

    @property
    def word_language(self) -> str | None:
        return self.chosen_language or self.language


def title_of(document_name: str) -> str:
    """Returns the words of a file's name: "opening_hours-2026.pdf" is "opening hours 2026"."""
    return re.sub(r"[_\W]+", " ", _ENDING.sub("", document_name)).strip()
