"""Files that cannot or must not be read: each ends with a reason, within the limits."""

import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.domain.agents.knowledge import parsing
from app.domain.agents.knowledge.parsing import Kind, Unreadable
from app.domain.agents.knowledge.readers import formats, package, table
from app.domain.agents.knowledge.readers.cutting import Refused
from tests.agents.knowledge.sample_packages import (
    NAMESPACE,
    make_docx,
    make_docx_without_styles,
    make_raw_docx,
    make_zip,
    paragraph,
    replace_part,
    understate_sizes,
)
from tests.agents.knowledge.sample_pdfs import make_blank_pdf, make_pdf
from tests.lengths import IS_LONG, rounds

_MIB = 1024 * 1024
_SECRET = "the content of another file"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_PASSWORD = "is protected by a password; save it without one"
_NOT_TEXT = "is not a text file, although its name says so"
_NOT_DOCX = "is not a DOCX file, although its name says so"
_NOT_PDF = "is not a PDF file, although its name says so"
_DAMAGED = b"!is a damaged DOCX file\n"
_NO_TEXT = "has no text"
_LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 12))


def _pdfs() -> Iterator[tuple[str, bytes, str]]:
    pdf = make_pdf(["one", "two"])
    yield "encrypted", make_pdf(["secret"], password="open sesame"), "is encrypted; upload it"
    yield "without text", make_blank_pdf(3), "a scanned document needs text recognition"
    yield "many pages", make_blank_pdf(10_001), "has 10,001 pages; at most 10,000 are read"
    yield "truncated", pdf[: len(pdf) // 2], "is a damaged PDF file"
    yield "page missing", pdf.replace(b"/Count 2", b"/Count 3"), "page 3 cannot be read"
    yield "pages in a circle", pdf.replace(b"[4 0 R 6 0 R]", b"[2 0 R 2 0 R]"), "is a damaged PDF"
    yield "text", b"This is plain text.", _NOT_PDF


def _packages() -> Iterator[tuple[str, bytes, str]]:
    docx = make_docx(lambda document: document.add_paragraph("text"))
    blank = b" " * (_MIB + 1)
    yield "text", b"This is plain text.", _NOT_DOCX
    yield "plain zip", make_zip(readme=b"text"), _NOT_DOCX
    yield "other package", make_zip(**{"[Content_Types].xml": b"<Types/>"}), "DOCX"
    yield "old format", _OLE, "is a DOC file of an older program; save it as DOCX"
    yield "password", _OLE + _ENCRYPTED, _PASSWORD
    yield "truncated", docx[: len(docx) // 2], _NOT_DOCX
    # In the directory at the end: the version of the format that the first part needs.
    version = docx.find(b"PK\x01\x02") + 6
    yield "later version", docx[:version] + b"\x63" + docx[version + 1 :], _NOT_DOCX
    yield "broken XML", replace_part(docx, "word/document.xml", b"<w:document"), "is a damaged DOCX"
    yield "many parts", make_zip(**{f"p{n}": b"" for n in range(5001)}), "unpacks to more"
    yield "large part", replace_part(docx, "word/big.xml", blank), "unpacks to more"
    yield "many large parts", make_zip(**{f"p{n}.bin": blank for n in range(5)}), "unpacks to more"
    lie = understate_sizes(replace_part(docx, "word/document.xml", blank), 1000)
    yield "size understated", lie, "is a damaged DOCX file"
    yield "no text", make_docx(lambda document: document.add_paragraph(" ")), _NO_TEXT
    deep = "<w:tbl><w:tr><w:tc>" * 400 + paragraph("x") + "</w:tc></w:tr></w:tbl>" * 400
    yield "tables in tables", make_raw_docx(deep), "is a damaged DOCX file"


def _texts() -> Iterator[tuple[str, bytes, str]]:
    noise = random.Random(1).randbytes(5000)
    yield "PDF", make_pdf(["one"]), _NOT_TEXT
    yield "package", make_zip(readme=b"text"), _NOT_TEXT
    yield "binary", noise, _NOT_TEXT
    yield "binary without zeros", noise.replace(b"\x00", b"\x01"), _NOT_TEXT
    yield "binary with a byte order mark", b"\xff\xfe" + noise, _NOT_TEXT
    yield "blank lines", b"\n \r\n" * rounds(30_000, 300_000), _NO_TEXT
    yield "invisible", "\ufeff\u200b\u00ad".encode(), _NO_TEXT


def test_a_file_that_cannot_be_read_is_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(package, "MAX_XML_BYTES", _MIB)
    monkeypatch.setattr(package, "MAX_UNPACKED_BYTES", 4 * _MIB)
    kinds = {"pdf": _pdfs(), "docx": _packages(), "txt": _texts(), "md": _texts(), "csv": _texts()}
    for kind, cases in kinds.items():
        with subtests.test(f"empty {kind}"), pytest.raises(Refused, match="is empty"):
            formats.read_chunks(b"", kind)
        for name, content, reason in cases:
            with subtests.test(f"{kind}: {name}"), pytest.raises(Refused) as refusal:
                formats.read_chunks(content, kind)
            with subtests.test(f"{kind}: {name}, reason"):
                assert reason in str(refusal.value)


def test_a_csv_field_without_end_is_refused() -> None:
    content = b'a,b\n1,"' + b"word " * (table.MAX_FIELD_CHARS // 4)
    with pytest.raises(Refused, match="has a field of more than 1,000,000 characters"):
        formats.read_chunks(content, "csv")


def test_too_much_text_and_too_many_sections_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(formats, "MAX_CHARACTERS", 2000)
    monkeypatch.setattr(formats, "MAX_CHUNKS", 10)
    with pytest.raises(Refused, match="has too much text; at most 2,000 characters"):
        formats.read_chunks(b"word " * 1000, "txt")
    assert formats.read_chunks(b"word " * 399, "txt")
    with pytest.raises(Refused, match="has too many sections; at most 10 passages"):
        formats.read_chunks(b"# A\na\n" * 20, "md")


def test_entities_of_a_docx_are_not_resolved(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(_SECRET)
    external = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    body = paragraph("before &e; after")
    for chunk in formats.read_chunks(make_raw_docx(body, external), "docx"):
        assert "before" in chunk.text
        assert _SECRET not in chunk.text
    laughs = f'<!DOCTYPE x [<!ENTITY l0 "ha">{_LAUGHS}]>'
    package = make_raw_docx(paragraph("funny &l11;"), laughs)
    assert formats.respond(package, "docx") in {b'ok\n[["funny",null,null,null]]', _DAMAGED}


# In the child process, with its limits


async def _read(content: bytes, kind: Kind) -> str:
    """Returns the reason of a refusal, or the number of chunks."""
    try:
        return f"{len(await parsing.read_chunks(content, kind))} chunks"
    except Unreadable as error:
        return str(error)


async def test_a_process_without_rights_reads_all_formats_and_encodings(
    subtests: pytest.Subtests,
) -> None:
    """Libraries that load a part of theirs at its first use would fail here."""
    russian = "Правила внутреннего распорядка для сотрудников склада"
    japanese = "これは日本語の文章です。会社の規則について説明します。"
    xml = f'<?xml version="1.0" encoding="windows-1251"?><w:document {NAMESPACE}><w:body>'
    old_xml = f"{xml}{paragraph(russian)}</w:body></w:document>".encode("cp1251")
    cases: list[tuple[str, bytes, Kind, str]] = [
        ("cp1251", russian.encode("cp1251"), "txt", russian),
        ("shift_jis", japanese.encode("shift_jis"), "md", japanese),
        ("utf-16", f"word\n{russian}".encode("utf-16"), "csv", f"word: {russian}"),
        ("a PDF", make_pdf(["Grüße"]), "pdf", "Grüße"),
        ("an encrypted PDF", make_pdf(["Grüße"], password=""), "pdf", "Grüße"),
        ("no styles", make_docx_without_styles("a word"), "docx", "a word"),
        ("old XML", replace_part(make_raw_docx(""), "word/document.xml", old_xml), "docx", russian),
    ]
    for name, content, kind, text in cases:
        with subtests.test(name):
            assert [chunk.text for chunk in await parsing.read_chunks(content, kind)] == [text]


async def test_large_files_are_read_or_refused_within_the_memory_limit(
    subtests: pytest.Subtests,
) -> None:
    document = paragraph("a word ") * (rounds(1, 3) * _MIB // len(paragraph("a word ")))
    cases: list[tuple[str, bytes, Kind, str]] = [
        ("a text without spaces", b"x" * (_MIB // rounds(4, 1)), "txt", "chunks"),
        ("a PDF without pages", make_pdf([]), "pdf", "has no pages"),
        ("a large DOCX", make_raw_docx(document), "docx", "chunks"),
    ]
    if IS_LONG:
        words = b"some words " * (25 * _MIB // 11)
        cases.append(("25 MB of words", words, "txt", "has too much text"))
    for name, content, kind, outcome in cases:
        with subtests.test(name):
            assert outcome in await _read(content, kind)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak <= _MIB


async def test_a_script_that_a_limit_ends_gives_a_reason(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    long, short = b"x" * (6 * _MIB), b"word " * 1000
    cases: list[tuple[dict[str, Any], bytes]] = [
        ({"seconds": 0.3}, long),
        ({"output_bytes": 100}, short),
        ({"memory_mib": 32}, short),
    ]
    if IS_LONG:
        # The limit itself is tried with `child_process`; it takes this second.
        cases.append(({"cpu_seconds": 1}, long))
    limits = parsing._LIMITS
    for change, content in cases:
        with subtests.test(**change):
            monkeypatch.setattr(parsing, "_LIMITS", msgspec.structs.replace(limits, **change))
            assert await _read(content, "txt") == "takes too much time or memory to read"
