"""What the readers take from each format: text in its order, with pages, headings and rows."""

from typing import Any

import pytest

from app.domain.agents.knowledge.readers.cutting import Chunk
from tests.agents.knowledge.sample_packages import make_docx, make_raw_docx, paragraph
from tests.agents.knowledge.sample_pdfs import make_pdf
from tests.agents.knowledge.test_parsing import read, texts

_GERMAN = "Die Kündigungsfrist beträgt drei Monate; größere Änderungen müssen schriftlich erfolgen."


# PDF


def test_chunks_of_a_pdf_have_their_page_number() -> None:
    chunks = read(make_pdf(["First page", "", "Grüße von Seite drei (3)\nand more"]), "pdf")
    assert chunks == [Chunk("First page", 1), Chunk("Grüße von Seite drei (3)\nand more", 3)]


def test_a_long_page_becomes_several_chunks_of_that_page() -> None:
    page = "\n".join(
        f"Line {number} says that the hall is open to visitors." for number in range(80)
    )
    chunks = read(make_pdf(["Cover", page]), "pdf")
    assert [chunk.page for chunk in chunks] == [1, *[2] * (len(chunks) - 1)]
    assert len(chunks) > 2


def test_a_word_that_a_line_end_divides_is_joined() -> None:
    assert texts(make_pdf(["an exam-\nple of a state-of-the-art press"]), "pdf") == [
        "an example of a state-of-the-art press"
    ]


def test_a_pdf_with_an_empty_password_is_readable() -> None:
    assert texts(make_pdf(["Open to all"], password=""), "pdf") == ["Open to all"]


# DOCX


def _build_handbook(document: Any) -> None:
    document.add_paragraph("Before any heading")
    document.add_heading("Handbook", 0)
    document.add_heading("Leave", 1)
    document.add_paragraph("Thirty days a year.")
    document.add_heading("Illness", 2)
    document.add_paragraph("# of days: call before nine.")
    document.add_heading("Pay", 1)
    document.add_paragraph("On the last day.")


def test_chunks_of_a_docx_start_with_the_headings_above_them() -> None:
    assert texts(make_docx(_build_handbook), "docx") == [
        "Before any heading",
        "Handbook > Leave\n\nThirty days a year.",
        "Handbook > Leave > Illness\n\n# of days: call before nine.",
        "Handbook > Pay\n\nOn the last day.",
    ]


def _build_tables(document: Any) -> None:
    table = document.add_table(rows=3, cols=3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"cell {row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    inner = table.cell(2, 0).add_table(rows=1, cols=1)
    inner.cell(0, 0).text = "inner table"
    document.add_paragraph("After the table")


def test_tables_keep_merged_cells_once_per_row_and_tables_in_cells() -> None:
    (chunk,) = texts(make_docx(_build_tables), "docx")
    assert [line for line in chunk.splitlines() if line] == [
        "| wide | cell 02 |",
        "| --- | --- |",
        "| cell 10 | cell 11 | tall |",
        "| cell 20 inner table | cell 21 | tall |",
        "After the table",
    ]


def test_text_of_a_docx_outside_plain_paragraphs_is_read(subtests: pytest.Subtests) -> None:
    text = "<w:r><w:t>needle</w:t></w:r>"
    cases = {
        "content control": f"<w:sdt><w:sdtContent>{paragraph('needle')}</w:sdtContent></w:sdt>",
        "insertion": f"<w:p><w:ins>{text}</w:ins></w:p>",
        "hyperlink": f"<w:p><w:hyperlink>{text}</w:hyperlink></w:p>",
        "text box": f"<w:p><w:r><w:pict><w:txbxContent><w:p>{text}</w:p></w:txbxContent></w:pict>"
        "</w:r></w:p>",
        "row in a content control": "<w:tbl><w:sdt><w:sdtContent><w:tr><w:tc>"
        f"{paragraph('needle')}</w:tc></w:tr></w:sdtContent></w:sdt></w:tbl>",
    }
    for name, body in cases.items():
        with subtests.test(name):
            assert "needle" in texts(make_raw_docx(body), "docx")[0]
    with subtests.test("deleted text is left out"):
        body = "<w:p><w:del><w:r><w:delText>needle</w:delText></w:r></w:del></w:p>"
        chunks = texts(make_raw_docx(paragraph("kept") + body), "docx")
        assert chunks == ["kept"]


def test_a_column_that_is_merged_over_thousands_of_rows_is_read() -> None:
    merged = "<w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc>"
    rows = "".join(
        f"<w:tr>{merged}<w:tc>{paragraph(f'item{n}')}</w:tc></w:tr>" for n in range(3000)
    )
    chunks = texts(make_raw_docx(f"<w:tbl>{rows}</w:tbl>"), "docx")
    assert "item2999" in chunks[-1]


# Markdown


def test_chunks_of_markdown_start_with_the_headings_above_them(subtests: pytest.Subtests) -> None:
    cases: dict[str, tuple[str, list[str]]] = {
        "nested": (
            "intro\n# A #\na\n## B\nb\n### C ##\nc\n## D\nd",
            ["intro", "A\n\na", "A > B\n\nb", "A > B > C\n\nc", "A > D\n\nd"],
        ),
        "a level left out": ("# A\n### C\nc\n## B\nb", ["A > C\n\nc", "A > B\n\nb"]),
        "underlined": (
            "Title\n=====\na\n\nPart\n---\nb\n\ntwo lines\nof text\n---\nc",
            ["Title\n\na", "Title > Part\n\nb\n\ntwo lines\nof text\n---\nc"],
        ),
        "no heading": ("#tag is text\n\n- item\n---\n", ["#tag is text\n\n- item\n---"]),
        "code": (
            "# A\n```sh\n# comment\n~~~\n```\n~~~\n# more\n```\n~~~~\n# B\nb",
            ["A\n\n```sh\n# comment\n~~~\n```\n\n~~~\n# more\n```\n~~~~", "B\n\nb"],
        ),
        "front matter": (
            "---\ntitle: 'Guide'\ntags: [x]\n---\nb\n# A\na",
            ["Guide\n\nb", "Guide > A\n\na"],
        ),
        "front matter with the first heading": (
            '+++\ntitle = "Guide"\n+++\n# Guide\na\n## B\nb',
            ["Guide\n\na", "Guide > B\n\nb"],
        ),
        "front matter without a title": ("---\nlang: en\n---\na", ["a"]),
        "headings without text": ("# A\n## B\n## C\nc\n# D", ["A > B", "A > C\n\nc", "D"]),
        "Windows lines": ("# A\r\n\r\na\r\n", ["A\n\na"]),
    }
    for name, (source, chunks) in cases.items():
        with subtests.test(name):
            assert texts(source, "md") == chunks


def test_a_chunk_has_the_headings_above_it(subtests: pytest.Subtests) -> None:
    headings = [None, "Handbook > Leave", "Handbook > Leave > Illness", "Handbook > Pay"]
    markdown = "Before\n# Handbook\n## Leave\na\n### Illness\nb\n## Pay\nc"
    for kind, content in (("docx", make_docx(_build_handbook)), ("md", markdown.encode())):
        with subtests.test(kind):
            assert [chunk.heading for chunk in read(content, kind)] == headings


def test_blocks_of_code_that_fit_are_whole_and_long_tables_repeat_their_head() -> None:
    prose = "A sentence about the delivery of goods to the north hall. " * 12
    functions = [f"def function_{n}(a, b):\n    return a + {n}" for n in range(20)]
    code = "```python\n" + "\n\n".join(functions) + "\n```"
    rows = [f"| AX-{n} | {n}.50 for each piece |" for n in range(120)]
    table = "\n".join(["| part | price |", "| --- | --- |", *rows])
    # So long that the code stands where a long text is divided.
    chunks = texts(f"# A\n\n{(prose + chr(10) * 2) * 14}{code}\n\n{prose}\n\n{table}", "md")
    assert sum(code in chunk for chunk in chunks) == 1
    tables = [chunk for chunk in chunks if "AX-" in chunk]
    assert len(tables) > 2
    assert all("| part | price |\n| --- | --- |\n" in chunk for chunk in tables)
    assert all("\n".join(tables).count(row) == 1 for row in rows)
    assert max(len(chunk) for chunk in chunks) <= 1700


def test_a_heading_as_long_as_a_paragraph_is_read_as_text() -> None:
    heading = " ".join(f"word{number}" for number in range(400))
    chunks = texts(f"# Short\n## {heading}\nbody", "md")
    assert all(chunk.startswith("Short\n\n") for chunk in chunks)
    assert {"word0", "word399", "body"} <= set(" ".join(chunks).split())


def test_deep_paths_of_headings_lose_no_heading() -> None:
    headings = [f"{'#' * level} level{level} {'long ' * 25}" for level in range(1, 7)]
    chunks = texts("\n".join([*headings, "body"]), "md")
    assert {f"level{level}" for level in range(1, 7)} <= set(" ".join(chunks).split())
    assert max(map(len, chunks)) < 1700


# Text


def test_text_is_read_in_the_usual_encodings(subtests: pytest.Subtests) -> None:
    german = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "cp1250"]
    cases = [(encoding, _GERMAN) for encoding in german] + [
        ("cp1252", "Les employés reçoivent une prime à Noël, où que le siège soit situé."),
        ("cp1252", "Räksmörgås på Åland"),
        ("cp1252", "The \u201cquick\u201d fox \u2013 it\u2019s 5 \u20ac\u2026"),
        ("cp1252", "Grüße"),
        ("cp1250", "Zażółć gęślą jaźń, proszę przynieść świeże łososie"),
        ("cp1251", "Правила внутреннего распорядка для сотрудников склада"),
        ("shift_jis", "これは日本語の文章です。会社の規則について説明します。"),
        ("gb18030", "这是中文的文章。我们公司的规定是每天八小时工作。"),
    ]
    for encoding, text in cases:
        with subtests.test(f"{encoding}: {text[:12]}"):
            assert texts(text.encode(encoding), "txt") == [text]
    for byte_order, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        with subtests.test(byte_order):
            assert texts(mark + _GERMAN.encode(byte_order), "txt") == [_GERMAN]


def test_a_few_damaged_bytes_do_not_change_the_other_letters() -> None:
    (text,) = texts(_GERMAN.encode() * 5 + "ü".encode()[:1], "txt")
    assert text.startswith(_GERMAN)


# CSV


def test_each_row_of_a_csv_file_carries_the_names_of_its_columns(subtests: pytest.Subtests) -> None:
    cases = {
        "comma": 'part,price\nAX-1,"1,50"\nAX-2,2\n',
        "semicolon": 'part;price\nAX-1;"1,50"\nAX-2;2\n',
        "tab": "part\tprice\nAX-1\t1,50\nAX-2\t2\n",
        "bar": "part|price\nAX-1|1,50\nAX-2|2\n",
        "old Mac lines": 'part,price\rAX-1,"1,50"\rAX-2,2',
        "Excel": '\ufeffpart;price\r\nAX-1;"1,50"\r\nAX-2;2\r\n',
        "blank lines": '\n\npart,price\n\nAX-1,"1,50"\n,\n\nAX-2,2\n',
    }
    for name, source in cases.items():
        with subtests.test(name):
            assert texts(source, "csv") == ["part: AX-1; price: 1,50\npart: AX-2; price: 2"]


def test_unusual_rows_are_read(subtests: pytest.Subtests) -> None:
    cases = {
        "quoted newline": ('a,b\n"x\ny",2', ["a: x y; b: 2"]),
        "quotation marks": ('a,b\n"say ""hi""",2', ['a: say "hi"; b: 2']),
        "apostrophes": ("a,b\n'x', it's", ["a: 'x'; b: it's"]),
        "ragged": ("a,b\n1\n1,2,3", ["a: 1\na: 1; b: 2; column 3: 3"]),
        "empty name": ("a,,c\n1,2,3", ["a: 1; column 2: 2; c: 3"]),
        "one column": ("name\nAda\nGrace", ["name: Ada\nname: Grace"]),
        "only a header": ("name,price", ["name; price"]),
    }
    for name, (source, chunks) in cases.items():
        with subtests.test(name):
            assert texts(source, "csv") == chunks


def test_chunks_of_a_csv_file_have_the_number_of_their_first_row() -> None:
    rows = [f"AX-{number},{'a hall ' * 20}" for number in range(1, 41)]
    chunks = read("\n".join(["part,place", *rows]), "csv")
    assert len(chunks) > 5
    for chunk in chunks:
        assert (chunk.page, chunk.heading) == (None, None)
        assert chunk.text.startswith(f"part: AX-{chunk.row};")
        assert len(chunk.text) <= 1000


def test_each_piece_of_a_long_row_starts_with_its_first_cell() -> None:
    note = " ".join(f"word{number}" for number in range(900))
    chunks = read(f"part,note\nAX-1,x\nAX-2,{note}\nAX-3,y", "csv")
    assert [chunk.row for chunk in chunks] == [1, *[2] * (len(chunks) - 2), 3]
    assert all(chunk.text.startswith("part: AX-2") for chunk in chunks if chunk.row == 2)
    assert {f"word{number}" for number in range(900)} <= set(
        " ".join(chunk.text for chunk in chunks).split()
    )
