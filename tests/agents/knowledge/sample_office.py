"""Writes XLSX, PPTX and EPUB files, part by part, as programs write them."""

from tests.agents.knowledge.sample_packages import make_zip

_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_SHEETS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_SLIDES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)
_IDS = f'xmlns:r="{_OFFICE}"'
_CONTENT_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_MAIN_TYPE = "application/vnd.openxmlformats-officedocument.{}.main+xml"

# The styles that `cell` refers to: plain, date, date and time, percentage, duration.
_STYLES = (
    f'<styleSheet {_SHEETS}><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy\\ hh:mm"/>'
    '<numFmt numFmtId="165" formatCode="[h]:mm"/>'
    '<numFmt numFmtId="166" formatCode="&quot;days &quot;0.00;[Red]0"/></numFmts>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="9"/>'
    '<xf numFmtId="165"/><xf numFmtId="166"/></cellXfs></styleSheet>'
)


def _declare(part: str, kind: str) -> str:
    return (
        f'{_XML}<Types xmlns="{_CONTENT_TYPES}"><Default Extension="xml" '
        f'ContentType="application/xml"/><Default Extension="rels" ContentType="application/xml"/>'
        f'<Override PartName="/{part}" ContentType="{_MAIN_TYPE.format(kind)}"/></Types>'
    )


def _relate(**targets: tuple[str, str]) -> str:
    """Relations by their ids, each with its type and the part that it leads to."""
    entries = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'{_XML}<Relationships xmlns="{_RELATIONS}">{entries}</Relationships>'


# Sheets


def cell(place: str, value: str, kind: str = "n", style: int = 0) -> str:
    content = f"<is><t>{value}</t></is>" if kind == "inlineStr" else f"<v>{value}</v>"
    return f'<c r="{place}" t="{kind}" s="{style}">{content}</c>'


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def text_rows(*rows: tuple[str, ...]) -> str:
    """Rows of texts, from the first row and column on."""
    return "".join(
        row(number, *(cell(f"{chr(65 + n)}{number}", v, "inlineStr") for n, v in enumerate(values)))
        for number, values in enumerate(rows, 1)
    )


def make_xlsx(
    sheets: dict[str, str], strings: tuple[str, ...] = (), *, hidden: str = "", doctype: str = ""
) -> bytes:
    """Sheets by their names, each with the XML of its rows. `strings` are elements like <t>."""
    names = list(sheets)
    entries = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="s{n}" '
        f'state="{"hidden" if name == hidden else "visible"}"/>'
        for n, name in enumerate(names, 1)
    )
    targets = {f"s{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(names) + 1)}
    shared = "".join(f"<si>{string}</si>" for string in strings)
    parts = {
        "[Content_Types].xml": _declare("xl/workbook.xml", "spreadsheetml.sheet"),
        "_rels/.rels": _relate(main=("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {_SHEETS} {_IDS}><sheets>{entries}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relate(
            styles=("styles", "styles.xml"),
            strings=("sharedStrings", "/xl/sharedStrings.xml"),
            **targets,
        ),
        "xl/styles.xml": _STYLES,
        "xl/sharedStrings.xml": f"<sst {_SHEETS}>{shared}</sst>",
    }
    for n, rows in enumerate(sheets.values(), 1):
        dimension = '<dimension ref="A1:XFD1048576"/>'
        sheet = f"<worksheet {_SHEETS}>{dimension}<sheetData>{rows}</sheetData></worksheet>"
        parts[f"xl/worksheets/sheet{n}.xml"] = doctype + sheet
    return _zip(parts)


# Slides


def shape(*paragraphs: str, kind: str = "") -> str:
    placeholder = f'<p:ph type="{kind}"/>' if kind else ""
    texts = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in paragraphs)
    properties = f"<p:nvSpPr><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr>"
    return f"<p:sp>{properties}<p:txBody>{texts}</p:txBody></p:sp>"


def slide_table(*rows: tuple[str, ...]) -> str:
    def write(value: str) -> str:
        return f"<a:tc><a:txBody><a:p><a:r><a:t>{value}</a:t></a:r></a:p></a:txBody></a:tc>"

    lines = "".join(f"<a:tr>{''.join(map(write, values))}</a:tr>" for values in rows)
    return f"<p:graphicFrame><a:graphic><a:tbl>{lines}</a:tbl></a:graphic></p:graphicFrame>"


def make_pptx(*slides: str, notes: dict[int, str] | None = None, hidden: int = 0) -> bytes:
    """Slides of shapes. The parts are named in the reverse order; only the presentation has the
    right one. `notes` are shapes, by the numbers of slides.
    """
    count = len(slides)
    entries = "".join(f'<p:sldId id="{n}" r:id="s{n}"/>' for n in range(1, count + 1))
    targets = {f"s{n}": ("slide", f"slides/slide{count - n}.xml") for n in range(1, count + 1)}
    parts = {
        "[Content_Types].xml": _declare("ppt/presentation.xml", "presentationml.presentation"),
        "_rels/.rels": _relate(main=("officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": (
            f"<p:presentation {_SLIDES} {_IDS}><p:sldIdLst>{entries}</p:sldIdLst></p:presentation>"
        ),
        "ppt/_rels/presentation.xml.rels": _relate(**targets),
    }
    for n, shapes in enumerate(slides, 1):
        show = 'show="0"' if n == hidden else ""
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        parts[f"ppt/slides/slide{count - n}.xml"] = f"<p:sld {_SLIDES} {show}>{tree}</p:sld>"
    for n, shapes in (notes or {}).items():
        target = f"../notesSlides/notes{n}.xml"
        parts[f"ppt/slides/_rels/slide{count - n}.xml.rels"] = _relate(
            n=("notesSlide", target), web=("hyperlink", "missing.xml")
        )
        parts[f"ppt/notesSlides/notes{n}.xml"] = f"<p:notes {_SLIDES}>{shapes}</p:notes>"
    return _zip(parts)


# Books


_NAV = '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
_NCX = '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'


def make_epub(
    chapters: dict[str, str], titles: dict[str, str], *, old: bool = False, encrypted: str = ""
) -> bytes:
    """Chapters by the names of their files, each with the XHTML of its body. `titles` is the table
    of contents, in the format of EPUB 3 or of the older version.
    """
    items = "".join(
        f'<item id="{name}" href="text/{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in chapters
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in ("nav", *chapters))
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": (
            '<package xmlns="http://www.idpf.org/2007/opf">'
            f"<manifest>{items}{_NCX if old else _NAV}</manifest><spine>{order}</spine></package>"
        ),
        "OEBPS/nav.xhtml": _page(_write_links(titles)),
        "OEBPS/toc.ncx": _write_points(titles),
    }
    for name, body in chapters.items():
        parts[f"OEBPS/text/{name}.xhtml"] = _page(body)
    if encrypted:
        parts["META-INF/encryption.xml"] = (
            '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#">'
            f'<e:CipherReference URI="OEBPS/text/{encrypted}.xhtml"/></encryption>'
        )
    return _zip(parts)


def _write_links(titles: dict[str, str]) -> str:
    links = "".join(
        f'<li><a href="text/{name}.xhtml#top">{title}</a></li>' for name, title in titles.items()
    )
    return f"<nav><ol>{links}</ol></nav>"


def _write_points(titles: dict[str, str]) -> str:
    points = "".join(
        f"<navPoint><navLabel><text>{title}</text></navLabel>"
        f'<content src="text/{name}.xhtml"/></navPoint>'
        for name, title in titles.items()
    )
    namespace = "http://www.daisy.org/z3986/2005/ncx/"
    return f'<ncx xmlns="{namespace}"><navMap>{points}</navMap></ncx>'


def _page(body: str) -> str:
    return (
        f'{_XML}<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
        f'<script src="a.js"/></head><body>{body}</body></html>'
    )


def _zip(parts: dict[str, str]) -> bytes:
    return make_zip(**{name: content.encode() for name, content in parts.items()})
