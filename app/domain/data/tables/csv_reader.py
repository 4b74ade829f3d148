"""Reads CSV files of any usual encoding, with limits on their lines and records."""

import csv
from collections.abc import Iterator
from itertools import islice
from typing import Final

from .errors import UnreadableFile

DELIMITERS: Final = (",", ";", "\t", "|")
# More than the largest row takes, with all its characters escaped.
_MAX_RECORD_CHARS = 512 * 1024
# A quotation mark that is not closed takes the rest of the file for one field.
_MAX_FIELD_CHARS = 128 * 1024
_MAX_HEADER_COLUMNS = 1000
_SAMPLE_BYTES = 64 * 1024
_OTHER_FORMATS = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"\xd0\xcf\x11\xe0")
_ENCODINGS = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "shift_jis", "gb18030")


def decode(content: bytes) -> str:
    """Raises UnreadableFile when the bytes are no text."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in content or content.startswith(_OTHER_FORMATS):
        raise UnreadableFile("is not a text file")
    else:
        encoding = "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode(_guess_encoding(content), "replace")
    if "\0" in text:
        raise UnreadableFile("is not a text file")
    return text


def _guess_encoding(content: bytes) -> str:
    import charset_normalizer  # noqa: PLC0415  # for few files only

    sample = content[:_SAMPLE_BYTES]
    best = charset_normalizer.from_bytes(sample, cp_isolation=list(_ENCODINGS)).best()
    return best.encoding if best is not None else _ENCODINGS[0]


class CsvFile:
    """The records of a file after its header. A blank line is no record."""

    def __init__(self, text: str, delimiter: str | None) -> None:
        self._text = text
        self._delimiter = delimiter or _find_delimiter(text)
        # A setting of the whole process, which other readers change.
        csv.field_size_limit(_MAX_FIELD_CHARS)
        self._records = self._iterate()
        header = next(self._records, None)
        if header is None:
            raise UnreadableFile("has no header row")
        if len(header) > _MAX_HEADER_COLUMNS:
            raise UnreadableFile(f"has more than {_MAX_HEADER_COLUMNS} columns")
        self.header = [name.strip() for name in header]

    def skip(self, count: int) -> None:
        for _ in islice(self._records, count):
            pass

    def read(self, count: int, max_chars: int) -> list[list[str]]:
        """Returns the next records, as many as have `max_chars` together. Raises UnreadableFile."""
        records: list[list[str]] = []
        for record in islice(self._records, count):
            records.append(record)
            # Also an empty cell takes memory.
            max_chars -= len(record) + sum(map(len, record))
            if max_chars <= 0:
                break
        return records

    def count(self) -> int:
        """Reads all that is left. Raises UnreadableFile."""
        return sum(1 for _ in self._records)

    def _iterate(self) -> Iterator[list[str]]:
        lines = _Lines(self._text)
        try:
            for record in csv.reader(lines, delimiter=self._delimiter):
                lines.record_chars = 0
                if record:
                    yield record
        except csv.Error as error:
            raise UnreadableFile(f"cannot be read near line {lines.number}: {error}") from None


class _Lines:
    """The lines of a text. A record may have several of them, up to a limit."""

    def __init__(self, text: str) -> None:
        self._text, self._position = text, 0
        self.number = self.record_chars = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        start = self._position
        if start >= len(self._text):
            raise StopIteration
        end = self._text.find("\n", start, start + _MAX_RECORD_CHARS)
        end = len(self._text) if end < 0 else end + 1
        self.number += 1
        self.record_chars += end - start
        if self.record_chars > _MAX_RECORD_CHARS:
            raise UnreadableFile(f"has a row that is too long, near line {self.number}")
        self._position = end
        return self._text[start:end]


def _find_delimiter(text: str) -> str:
    """Returns the delimiter that the first line has most often."""
    line = text[: text.find("\n", 0, 10_000) + 1 or 10_000]
    return max(DELIMITERS, key=line.count)
