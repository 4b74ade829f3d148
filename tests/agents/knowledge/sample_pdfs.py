"""Writes small PDF files, also encrypted ones."""

import hashlib
from collections.abc import Sequence

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_FILE_ID = bytes(range(16))
_PERMISSIONS = -4
_CATALOG, _PAGES, _FONT, _FIRST_PAGE = 1, 2, 3, 4


def make_pdf(pages: Sequence[str], *, password: str | None = None) -> bytes:
    """Returns a PDF file with a page for each text. With a password, even an empty one, it is
    encrypted with RC4 and 40 bits.
    """
    encryption = None if password is None else _Encryption(password.encode())
    kids = " ".join(f"{_FIRST_PAGE + 2 * number} 0 R" for number in range(len(pages)))
    objects: dict[int, bytes] = {
        _CATALOG: f"<< /Type /Catalog /Pages {_PAGES} 0 R >>".encode(),
        _PAGES: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        _FONT: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    }
    for number, text in enumerate(pages):
        page = _FIRST_PAGE + 2 * number
        objects[page] = (
            f"<< /Type /Page /Parent {_PAGES} 0 R /MediaBox [0 0 595 842] /Contents {page + 1} 0 R "
            f"/Resources << /Font << /F1 {_FONT} 0 R >> >> >>"
        ).encode()
        content = _draw(text)
        if encryption is not None:
            content = encryption.encrypt(page + 1, content)
        objects[page + 1] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    return _write(objects, encryption.entries if encryption is not None else b"")


def make_blank_pdf(page_count: int) -> bytes:
    """Returns a file whose many pages are one object."""
    kids = b"3 0 R " * page_count
    objects = {
        _CATALOG: b"<< /Type /Catalog /Pages 2 0 R >>",
        _PAGES: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, page_count),
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>",
    }
    return _write(objects, b"")


def _draw(text: str) -> bytes:
    lines = [
        line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("cp1252")
        for line in text.split("\n")
    ]
    shown = b" T* ".join(b"(%s) Tj" % line for line in lines)
    return b"BT /F1 8 Tf 9 TL 40 800 Td " + shown + b" ET"


def _write(objects: dict[int, bytes], trailer: bytes) -> bytes:
    output = bytearray(b"%PDF-1.4\n")
    offsets = {}
    for number, body in objects.items():
        offsets[number] = len(output)
        output += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start, size = len(output), max(objects) + 1
    output += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        output += b"%010d 00000 n \n" % offsets[number]
    output += b"trailer\n<< /Size %d /Root 1 0 R %s >>\n" % (size, trailer)
    return bytes(output + b"startxref\n%d\n%%%%EOF\n" % start)


class _Encryption:
    """The standard security handler, revision 2."""

    def __init__(self, password: bytes) -> None:
        padded = (password + _PADDING)[:32]
        owner = _rc4(hashlib.md5(padded, usedforsecurity=False).digest()[:5], padded)
        source = padded + owner + _PERMISSIONS.to_bytes(4, "little", signed=True) + _FILE_ID
        self._key = hashlib.md5(source, usedforsecurity=False).digest()[:5]
        self.entries = b"/ID [<%s> <%s>] /Encrypt << %s /O <%s> /U <%s> /P %d >>" % (
            _FILE_ID.hex().encode(),
            _FILE_ID.hex().encode(),
            b"/Filter /Standard /V 1 /R 2",
            owner.hex().encode(),
            _rc4(self._key, _PADDING).hex().encode(),
            _PERMISSIONS,
        )

    def encrypt(self, number: int, content: bytes) -> bytes:
        source = self._key + number.to_bytes(3, "little") + bytes(2)
        return _rc4(hashlib.md5(source, usedforsecurity=False).digest()[:10], content)


def _rc4(key: bytes, content: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    output = bytearray()
    i = j = 0
    for byte in content:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        output.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(output)
