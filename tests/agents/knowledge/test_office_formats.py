"""What the readers take from sheets, slides, books, pages and JSON."""

import pytest

from app.domain.agents.knowledge.readers.cutting import Chunk
from tests.agents.knowledge.sample_office import (
    cell,
    make_epub,
    make_pptx,
    make_xlsx,
    row,
    shape,
    slide_table,
    text_rows,
)
from tests.agents.knowledge.test_parsing import read, texts

_PRICES = text_rows(("part", "price"), ("AX-1", "1,50"), ("AX-2", "2"))


# XLSX


def test_rows_of_a_sheet_carry_the_names_of_their_columns_and_of_the_sheet() -> None:
    content = make_xlsx({"Prices": _PRICES, "Notes": _PRICES, "Lists": _PRICES}, hidden="Lists")
    rows = "part: AX-1; price: 1,50\npart: AX-2; price: 2"
    assert read(content, "xlsx") == [
        Chunk(f"{name}\n\n{rows}", None, 2, name) for name in ("Prices", "Notes")
    ]


def test_cells_have_their_values_as_a_reader_of_the_sheet_knows_them(
    subtests: pytest.Subtests,
) -> None:
    strings = (
        "<t>plain</t>",
        "<r><t>rich </t></r><r><t>text</t></r><rPh><t>sound</t></rPh>",
    )
    cases = {
        "shared": (cell("B2", "0", "s"), "plain"),
        "rich": (cell("B2", "1", "s"), "rich text"),
        "inline": (cell("B2", "a &amp; b", "inlineStr"), "a & b"),
        "whole": (cell("B2", "12.0"), "12"),
        "decimal": (cell("B2", "0.10000000000000001"), "0.1"),
        "date": (cell("B2", "45352", style=1), "2024-03-01"),
        "moment": (cell("B2", "45352.604166666664", style=2), "2024-03-01T14:30:00"),
        "time": (cell("B2", "0.5", style=2), "12:00:00"),
        "percentage": (cell("B2", "0.19", style=3), "19%"),
        "duration": (cell("B2", "1.5", style=4), "36:00:00"),
        "number with letters of dates": (cell("B2", "3", style=5), "3"),
        "date out of range": (cell("B2", "99999999", style=1), "99999999"),
        "boolean": (cell("B2", "1", "b"), "TRUE"),
        "formula": ('<c r="B2" t="str"><f>A1&amp;"x"</f><v>kept</v></c>', "kept"),
        "ISO date": (cell("B2", "2024-03-01", "d"), "2024-03-01"),
    }
    header = row(1, cell("A1", "key", "inlineStr"), cell("B1", "value", "inlineStr"))
    for name, (xml, value) in cases.items():
        with subtests.test(name):
            rows = header + row(2, cell("A2", "k", "inlineStr"), xml)
            (chunk,) = texts(make_xlsx({"S": rows}, strings), "xlsx")
            assert chunk == f"S\n\nkey: k; value: {value}"
    for name, xml in {
        "error": cell("B2", "#N/A", "e"),
        "unknown string": cell("B2", "7", "s"),
        "formula without a value": '<c r="B2"><f>NOW()</f></c>',
    }.items():
        with subtests.test(name):
            rows = header + row(2, cell("A2", "k", "inlineStr"), xml)
            assert texts(make_xlsx({"S": rows}, strings), "xlsx") == ["S\n\nkey: k"]


def test_unusual_sheets_are_read(subtests: pytest.Subtests) -> None:
    title = text_rows(("Prices of 2024",)) + row(
        3, cell("B3", "part", "inlineStr"), cell("C3", "price", "inlineStr")
    )
    cases = {
        "title above the header": (
            title + row(5, cell("B5", "AX-1", "inlineStr"), cell("C5", "2")),
            [Chunk("S\n\nPrices of 2024\npart: AX-1; price: 2", None, 1, "S")],
        ),
        "one column": (
            text_rows(("name",), ("Ada",), ("Grace",)),
            [Chunk("S\n\nname: Ada\nname: Grace", None, 2, "S")],
        ),
        "only a header": (text_rows(("a", "b")), [Chunk("S\n\na; b", None, 1, "S")]),
        "the last cell": (
            text_rows(("a", "b")) + row(1_048_576, cell("XFD1048576", "9")),
            [Chunk("S\n\ncolumn 16384: 9", None, 1_048_576, "S")],
        ),
        "no places": (
            "<row><c><v>1</v></c><c><v>2</v></c></row><row><c><v>3</v></c></row>",
            [Chunk("S\n\n1: 3", None, 2, "S")],
        ),
    }
    for name, (rows, chunks) in cases.items():
        with subtests.test(name):
            assert read(make_xlsx({"S": rows}), "xlsx") == chunks


# PPTX


def test_slides_have_their_number_and_title() -> None:
    content = make_pptx(
        shape("Delivery", kind="ctrTitle")
        + shape("Within", "three days")
        + shape("7", kind="sldNum"),
        shape("Hidden", kind="title") + shape("secret"),
        f"<p:grpSp>{shape('In a group')}</p:grpSp>"
        + shape("Prices", kind="title")
        + slide_table(("to", "price"), ("France", "9")),
        notes={3: shape("Slowly", kind="body") + shape("", kind="sldImg")},
        hidden=2,
    )
    assert read(content, "pptx") == [
        Chunk("Delivery\n\nWithin\nthree days", 1, None, "Delivery"),
        Chunk(
            "Prices\n\nIn a group\n\n| to | price |\n| --- | --- |\n| France | 9 |\n\nSlowly",
            3,
            None,
            "Prices",
        ),
    ]


# EPUB


def test_chapters_have_their_name_from_the_table_of_contents(subtests: pytest.Subtests) -> None:
    chapters = {
        "one": "<p>It was a dark&nbsp;night.</p>",
        "two": "<h1>The storm</h1><p>Rain &amp; wind</p><h2>At sea</h2><p>Waves</p>",
        "three": "<h2>Alone</h2><p>Silence</p>",
    }
    titles = {"one": "Beginning", "two": "The storm", "three": "III"}
    for old in (False, True):
        with subtests.test(old=old):
            chunks = read(make_epub(chapters, titles, old=old), "epub")
            assert [(chunk.heading, chunk.text.rpartition("\n")[2]) for chunk in chunks] == [
                ("Beginning", "It was a dark night."),
                ("The storm", "Rain & wind"),
                ("The storm > At sea", "Waves"),
                ("III > Alone", "Silence"),
            ]


# HTML


_PAGES: dict[str, tuple[str, list[Chunk]]] = {
    "hidden parts": (
        (
            "<head><title>T</title><style>x{}</style></head><h1>A</h1><nav>menu</nav>"
            "<script>evil()</script><p hidden>x</p><div style='display: none'>y</div>"
            "<div aria-hidden=true>z</div><template>t</template><!-- c --><p>seen</p>"
        ),
        [Chunk("A\n\nseen", heading="A")],
    ),
    "title without a heading": (
        "<title> Our  shop </title><p>a</p><h2>B</h2>b",
        [
            Chunk("Our shop\n\na", heading="Our shop"),
            Chunk("Our shop > B\n\nb", heading="Our shop > B"),
        ],
    ),
    "head and body without tags": (
        "<!doctype html><title>Bin</title><meta charset=utf-8><main><h1>Bin</h1><p>a</main>",
        [Chunk("Bin\n\na", heading="Bin")],
    ),
    "inline": (
        "<p>Read <a href='http://x.example'>our\n terms</a>, <b>please</b>.<br>Thanks",
        [Chunk("Read our terms, please.\nThanks")],
    ),
    "list": ("<ul><li>one<li><p>two</p></ul><p>end", [Chunk("- one\n- two\nend")]),
    "table": (
        (
            "<table><caption>Prices</caption><tr><th>part<th>price<tr><td rowspan=2>AX"
            "<td>1|2<tr><td>3</table>"
        ),
        [Chunk("Prices\n\n| part | price |\n| --- | --- |\n| AX | 1/2 |\n| AX | 3 |")],
    ),
    "layout": (
        "<table><tr><td><p>left<td><table><tr><td>a<td>b</table></table>",
        [Chunk("left\n\n| a | b |\n| --- | --- |")],
    ),
    "code": (
        "<pre>a = 1\n  b = ```2```</pre>",
        [Chunk("````\na = 1\n  b = ```2```\n````")],
    ),
    "no tags": ("just a text", [Chunk("just a text")]),
}


def test_a_page_is_read_as_its_reader_sees_it(subtests: pytest.Subtests) -> None:
    for name, (source, chunks) in _PAGES.items():
        with subtests.test(name):
            assert read(source, "html") == chunks


def test_a_page_is_decoded_as_it_declares(subtests: pytest.Subtests) -> None:
    text = "Grüße aus Łódź"
    cases = {
        "mark": ("<p>Łódź".encode("utf-16"), "Łódź"),
        "meta": (f"<meta charset=iso-8859-2><p>{text}".encode("iso8859_2"), text),
        "http-equiv": (
            b'<meta http-equiv="content-type" content="text/html; charset=windows-1251">'
            + "Да".encode("cp1251"),
            "Да",
        ),
        "latin 1": ("<meta charset='latin1'>\u20ac 5".encode("cp1252"), "\u20ac 5"),
        "declared wrongly": (f"<meta charset=utf-8><p>{text}".encode(), text),
        "unknown": (f"<meta charset=klingon><p>{text}".encode(), text),
        "nothing": (f"<p>{text}".encode(), text),
    }
    for name, (content, expected) in cases.items():
        with subtests.test(name):
            assert texts(content, "html") == [expected]


# JSON


def test_json_is_read_as_rows_and_lines(subtests: pytest.Subtests) -> None:
    cases: dict[str, tuple[str, list[Chunk]]] = {
        "objects": (
            '[{"part": "AX-1", "price": 1.50}, {"part": "AX-2", "sold": true, "x": null}]',
            [Chunk("part: AX-1; price: 1.50\npart: AX-2; sold: true", None, 1)],
        ),
        "one object": ('{"part": "AX-1", "price": 2}', [Chunk("part: AX-1; price: 2", None, 1)]),
        "nested rows": (
            '[{"name": "Ada", "home": {"city": "London"}, "tags": ["a", "b"], "pets": [{"n": 1}]}]',
            [Chunk("name: Ada; home.city: London; tags: a, b; pets.1.n: 1", None, 1)],
        ),
        "settings": (
            '{"shop": {"open": "9-17", "days": [1, 2]}, "note": "x"}',
            [Chunk("shop.open: 9-17\nshop.days: 1, 2\nnote: x")],
        ),
        "lists in an object": (
            '{"year": 2024, "data": {"items": [{"a": 1}, {"a": 2}]}}',
            [Chunk("year: 2024"), Chunk("data > items\n\na: 1\na: 2", None, 1, "data > items")],
        ),
        "text": ('"hello"', [Chunk("hello")]),
        "lines in a JSON file": ('{"a": 1}\n{"a": 2}', [Chunk("a: 1\na: 2", None, 1)]),
    }
    for name, (source, chunks) in cases.items():
        with subtests.test(name):
            assert read(source, "json") == chunks
    with subtests.test("lines"):
        assert read('{"a": 1}\n\n{"a": 2}\n', "jsonl") == [Chunk("a: 1\na: 2", None, 1)]


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_a_long_list_of_objects_is_cut_between_them(kind: str) -> None:
    rows = [f'{{"part": "AX-{n}", "place": "{"hall " * 20}"}}' for n in range(1, 41)]
    content = "\n".join(rows) if kind == "jsonl" else f"[{','.join(rows)}]"
    chunks = read(content, kind)
    assert len(chunks) > 4
    assert all(chunk.text.startswith(f"part: AX-{chunk.row};") for chunk in chunks)
