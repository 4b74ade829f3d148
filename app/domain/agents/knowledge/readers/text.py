"""Reads plain text in any usual encoding."""

from collections.abc import Iterator
from typing import Final

from .cutting import CONTROL, Chunk, Refused, cut

_SAMPLE = 256 * 1024
# Of two equally likely encodings the first is taken.
OLD_ENCODINGS: Final = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
)
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_OTHER_FORMATS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_NOT_TEXT = "is not a text file, although its name says so"


def read(content: bytes) -> Iterator[Chunk]:
    yield from map(Chunk, cut(decode(content)))


def decode(content: bytes) -> str:
    """Raises Refused when the bytes are no text."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "")
    if content.startswith(_OTHER_FORMATS) or (not encoding and b"\x00" in content):
        raise Refused(_NOT_TEXT)
    text = content.decode(encoding or "utf-8-sig", "replace")
    # A few bad bytes are damage. Many are another encoding.
    foreign = len(text) - len(text.encode("ascii", "ignore"))
    if text.count("\ufffd") > (1 if encoding else foreign // 20):
        if encoding:
            raise Refused(_NOT_TEXT)
        text = content.decode(_guess_encoding(content), "replace")
    sample = text[:_SAMPLE]
    if len(CONTROL.findall(sample)) * 10 > len(sample):
        raise Refused(_NOT_TEXT)
    return text


def _guess_encoding(content: bytes) -> str:
    import charset_normalizer  # noqa: PLC0415  # for few files only

    matches = charset_normalizer.from_bytes(content[:_SAMPLE], cp_isolation=list(OLD_ENCODINGS))
    guesses = [
        (match.chaos, -match.coherence, OLD_ENCODINGS.index(match.encoding))
        for match in matches
        if match.encoding in OLD_ENCODINGS
    ]
    return OLD_ENCODINGS[min(guesses)[2]] if guesses else OLD_ENCODINGS[0]
