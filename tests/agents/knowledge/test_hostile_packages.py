"""Sheets, slides, books, pages and JSON that nobody would write who wants them to be read."""

import itertools
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.domain.agents.knowledge import parsing
from app.domain.agents.knowledge.parsing import Kind, Unreadable
from app.domain.agents.knowledge.readers import formats, package
from app.domain.agents.knowledge.readers.cutting import Refused
from tests.agents.knowledge.sample_office import (
    cell,
    make_epub,
    make_pptx,
    make_xlsx,
    row,
    shape,
    text_rows,
)
from tests.agents.knowledge.sample_packages import (
    make_docx,
    make_zip,
    mark_encrypted,
    replace_part,
    understate_sizes,
)
from tests.agents.knowledge.sample_pdfs import make_pdf
from tests.lengths import rounds

_MIB = 1024 * 1024
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_PASSWORD = "is protected by a password; save it without one"
_LAUGHS = '<!ENTITY l0 "ha">' + "".join(
    f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 12)
)

_XLSX = make_xlsx({"S": text_rows(("a", "b"), ("1", "2"))})
_PPTX = make_pptx(shape("Title", kind="title") + shape("text"))
_EPUB = make_epub({"one": "<p>text</p>"}, {"one": "One"})
_FILES: dict[Kind, bytes] = {
    "xlsx": _XLSX,
    "pptx": _PPTX,
    "epub": _EPUB,
    "docx": make_docx(lambda document: document.add_paragraph("text")),
    "pdf": make_pdf(["text"]),
    "html": b"<p>text",
    "json": b'{"a": "text"}',
    "jsonl": b'{"a": "text"}',
    "md": b"# Title\n\ntext",
    "csv": b"a,b\n1,text",
    "txt": b"text",
}
_TEXT_KINDS = ("html", "json", "jsonl", "md", "csv", "txt")
_MAIN_PARTS = {
    "xlsx": ("xl/workbook.xml", "xl/worksheets/sheet1.xml"),
    "pptx": ("ppt/presentation.xml", "ppt/slides/slide0.xml"),
    "epub": ("OEBPS/book.opf",),
}


def _packages(kind: str) -> Iterator[tuple[str, bytes, str]]:
    content, parts = _FILES[kind], _MAIN_PARTS[kind]  # type: ignore[index]
    name, blank = kind.upper(), b" " * (_MIB + 1)
    yield "text", b"This is plain text.", f"{name} file, although its name says so"
    yield "plain zip", make_zip(readme=b"text"), f"{name} file, although its name says so"
    yield "truncated", content[: len(content) // 2], f"{name} file, although its name says so"
    yield "password", mark_encrypted(content), _PASSWORD
    yield "many parts", make_zip(**{f"p{n}": b"" for n in range(5001)}), "unpacks to more"
    yield "large part", replace_part(content, "big.xml", blank), "unpacks to more"
    yield "many large parts", make_zip(**{f"p{n}.bin": blank for n in range(5)}), "unpacks to more"
    for part in parts:
        yield f"broken {part}", replace_part(content, part, b"<a"), f"is a damaged {name} file"
        large = replace_part(content, part, b"<a>" + b" " * 5000 + b"</a>")
        yield f"understated {part}", understate_sizes(large, 1000), f"is a damaged {name} file"
        deep = b"<a>" * 1000 + b"</a>" * 1000
        yield f"deep {part}", replace_part(content, part, deep), f"is a damaged {name} file"


def _office() -> Iterator[tuple[str, bytes, str, str]]:
    for kind, older in (("xlsx", "an XLS"), ("pptx", "a PPT")):
        yield f"older {kind}", _OLE, kind, f"is {older} file of an older program; save it as "
        yield f"{kind} with a password", _OLE + _ENCRYPTED, kind, _PASSWORD
    yield "OLE as EPUB", _OLE, "epub", "is not an EPUB file, although its name says so"
    yield "empty sheet", make_xlsx({"S": ""}), "xlsx", "has no text"
    yield "empty slide", make_pptx(""), "pptx", "has no text"
    book = make_epub({"one": "<p>x</p>"}, {}, encrypted="one")
    yield "copy protection", book, "epub", "is protected against copying"
    yield "no chapters", make_epub({}, {}), "epub", "has no text"
    yield "a script", b"<script>text</script>", "html", "has no text"
    deep = b"<div>" * 5000 + b"text"
    yield "deep page", deep, "html", "has too many levels of elements in each other"
    yield "deep JSON", b"[" * 100_000 + b"]" * 100_000, "json", "more than 100 levels of values"
    levels = b'{"a":' * 101 + b"1" + b"}" * 101
    yield "JSON of 101 levels", levels, "json", "more than 100 levels of values"
    yield "broken JSON", b'{"a": 1,\n"b"}', "json", "is not valid JSON: Expecting ':'"
    yield "broken line", b'{"a": 1}\n{"a"', "jsonl", "in line 2"
    yield "empty values", b'{"a": null, "b": []}', "json", "has no text"


def test_a_file_that_cannot_be_read_is_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setattr(package, "MAX_XML_BYTES", _MIB)
    monkeypatch.setattr(package, "MAX_UNPACKED_BYTES", 4 * _MIB)
    cases = [
        (f"{kind}: {name}", content, kind, reason)
        for kind in _MAIN_PARTS
        for name, content, reason in _packages(kind)
    ]
    for name, content, kind, reason in itertools.chain(cases, _office()):
        with subtests.test(name):
            with pytest.raises(Refused) as refusal:
                formats.read_chunks(content, kind)
            assert reason in str(refusal.value)


def test_a_file_with_the_ending_of_another_format_is_refused(subtests: pytest.Subtests) -> None:
    """Texts of one format are texts of another, too."""
    for kind, other in itertools.permutations(_FILES, 2):
        if kind in _TEXT_KINDS and other in _TEXT_KINDS:
            continue
        with subtests.test(f"{other} as {kind}"), pytest.raises(Refused, match="name says so"):
            formats.read_chunks(_FILES[other], kind)


def test_entities_and_references_are_not_resolved(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the content of another file")
    external = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    sheet = text_rows(("a", "b"), ("before &e;", "&e;"))
    page = f"{external}<html><body><p>before &e;</p></body></html>".encode()
    slide = (
        f'{external}<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
        ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
        f"{shape('before &e;')}</p:sld>"
    ).encode()
    cases = {
        "xlsx": make_xlsx({"S": sheet}, doctype=external),
        "pptx": replace_part(_PPTX, "ppt/slides/slide0.xml", slide),
        "epub": replace_part(_EPUB, "OEBPS/text/one.xhtml", page),
        "html": page + f'<iframe src="{secret.as_uri()}"></iframe>'.encode(),
    }
    for kind, content in cases.items():
        with subtests.test(kind):
            answer = formats.respond(content, kind)
            assert b"before" in answer
            assert b"another" not in answer
    laughs = make_xlsx({"S": text_rows(("a", "&l11;"))}, doctype=f"<!DOCTYPE x [{_LAUGHS}]>")
    with subtests.test("laughs"):
        assert len(formats.respond(laughs, "xlsx")) < 100


# In the child process, with its limits


async def test_a_process_without_rights_reads_each_format(subtests: pytest.Subtests) -> None:
    page = "<meta charset=iso-8859-2><p>Łódź".encode("iso8859_2")
    for kind, content in {**_FILES, "html": page}.items():
        with subtests.test(kind):
            chunks = await parsing.read_chunks(content, kind)
            assert len(chunks) == 1
            assert chunks[0].text


async def test_bombs_end_with_a_reason_within_the_memory_limit(subtests: pytest.Subtests) -> None:
    size = rounds(_MIB // 2, 47 * _MIB)
    cases: list[tuple[str, bytes, Kind]] = [
        ("a row of cells", make_xlsx({"S": row(1, "<c/>" * (size // 4))}), "xlsx"),
        ("cells in the last column", make_xlsx({"S": _wide_rows(rounds(500, 20_000))}), "xlsx"),
        ("shapes", make_pptx("<p:sp/>" * (size // 8)), "pptx"),
        ("tags", b"<b>" * (rounds(1, 8) * _MIB), "html"),
        ("lists", b"[" + b"[]," * (size // 4) + b"[]]", "json"),
        ("cells that span", b"<table><tr>" + b"<td colspan=99 rowspan=99>x" * 500, "html"),
    ]
    for name, content, kind in cases:
        with subtests.test(name), suppress(Unreadable):
            assert await parsing.read_chunks(content, kind)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= 1.1 * _MIB


def _wide_rows(count: int) -> str:
    return "".join(row(number, cell(f"XFD{number}", "1")) for number in range(1, count))
