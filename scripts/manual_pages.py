"""Turns pages of manuals into the HTML that a user would upload: the text without the frame."""

from collections.abc import Callable
from functools import partial
from typing import Any

from lxml import etree

# Elements of Mallard that are no part of the text that a reader sees.
_UNSEEN = frozenset({"info", "links", "media", "comment", "thumbs"})
# What HTML calls the elements of Mallard. Others are part of a line.
_MALLARD_TAGS = {
    **{tag: tag for tag in ("p", "section", "table", "thead", "tbody", "tr", "td", "th", "code")},
    "page": "body",
    "steps": "ol",
    "list": "ul",
    "item": "li",
    "screen": "pre",
    **dict.fromkeys(("note", "terms", "tree", "example", "figure", "quote", "synopsis"), "div"),
    **dict.fromkeys(("choose", "when", "else", "if"), "div"),
}
_TITLED = ("page", "section")
# The folders of LibreOffice's help, with the names of their programs.
_PROGRAMS = {
    "swriter": "WRITER",
    "scalc": "CALC",
    "simpress": "IMPRESS",
    "sdraw": "DRAW",
    "shared": "WRITER",
}
_DOCBOOK_FRAME = "//div[@class='navheader' or @class='navfooter' or @class='toc']"
_SPHINX_MAIN = ".//div[@class='document clearer body']"
_SPHINX_FRAME = "//a[@class='headerlink'] | //div[contains(@class, 'toctree-wrapper')]"
_ASCIIDOC_FRAME = "//div[@id='footer']"

Convert = Callable[[bytes], bytes | None]


def convert_mallard(content: bytes) -> bytes | None:
    """Returns None for a page that only lists other pages."""
    page = etree.fromstring(content, etree.XMLParser(resolve_entities=False, remove_comments=True))
    for element in list(page.iter("{*}*")):
        if _local_name(element) in _UNSEEN:
            _remove(element)
    if next(page.iter("{*}p"), None) is None:
        return None
    names = {element: _local_name(element) for element in page.iter("{*}*")}
    for element, name in names.items():
        parent = element.getparent()
        if name in {"keyseq", "guiseq"}:
            _join_parts(element, "+" if name == "keyseq" else " ▸ ")
        if name == "title":
            element.tag = _find_title_tag(element, names.get(parent, ""))
        elif name == "code" and names.get(parent) in {*_TITLED, "item", "note", "example"}:
            element.tag = "pre"
        else:
            element.tag = _MALLARD_TAGS.get(name, "span")
        element.attrib.clear()
    return _serialize(page)


def _find_title_tag(title: Any, parent_name: str) -> str:
    """Returns the tag of a heading for the title of a page or a section, else of a paragraph."""
    if parent_name not in _TITLED:
        return "p"
    return f"h{min(sum(1 for _ in title.iterancestors()), 6)}"


def _join_parts(element: Any, separator: str) -> None:
    """Puts the separator that a viewer shows between keys, or between the levels of a menu."""
    for part in list(element)[:-1]:
        part.tail = separator


def convert_libreoffice(content: bytes) -> bytes | None:
    root = _parse(content)
    area = root.find(".//div[@id='DisplayArea']")
    if area is None:
        return None
    for switch in area.xpath(".//span[@class='switch' or @class='switchinline']"):
        _show_choice(switch)
    return _serialize(area, root.findtext("head/title"))


def _show_choice(switch: Any) -> None:
    """Keeps what a browser shows on Linux, where a script chooses by the program and the system."""
    choices = list(switch)
    ids = [choice.get("id", "") for choice in choices]
    program = next((name for folder, name in _PROGRAMS.items() if f"text{folder}" in ids[0]), "-")
    kept = next(
        (id_ for start in (program, "default", "UNIX") for id_ in ids if id_.startswith(start)),
        ids[0],
    )
    for choice in choices:
        if choice.get("id", "") == kept:
            choice.attrib.pop("hidden", None)
        else:
            _remove(choice)


def _convert_html(content: bytes, *, main: str, frame: str) -> bytes | None:
    root = _parse(content)
    area = root.find(main)
    if area is None:
        return None
    for element in area.xpath(frame):
        _remove(element)
    return _serialize(area, root.findtext("head/title"))


convert_docbook: Convert = partial(_convert_html, main="body", frame=_DOCBOOK_FRAME)
convert_sphinx: Convert = partial(_convert_html, main=_SPHINX_MAIN, frame=_SPHINX_FRAME)
convert_asciidoc: Convert = partial(_convert_html, main="body", frame=_ASCIIDOC_FRAME)


def _parse(content: bytes) -> Any:
    return etree.fromstring(content, etree.HTMLParser(encoding="utf-8", remove_comments=True))


def _serialize(area: Any, title: str | None = None) -> bytes:
    page = etree.Element("html")
    head = etree.SubElement(page, "head")
    etree.SubElement(head, "meta", charset="utf-8")
    if title:
        etree.SubElement(head, "title").text = title
    area.tag = "body"
    area.tail = None
    page.append(area)
    etree.cleanup_namespaces(page)
    content: bytes = etree.tostring(page, method="html", encoding="utf-8")
    return content


def _remove(element: Any) -> None:
    """Removes an element, but not the text after it."""
    parent, before = element.getparent(), element.getprevious()
    if parent is None:
        return
    if element.tail and before is not None:
        before.tail = (before.tail or "") + element.tail
    elif element.tail:
        parent.text = (parent.text or "") + element.tail
    parent.remove(element)


def _local_name(element: Any) -> str:
    name: str = etree.QName(element).localname
    return name
