"""Reads EPUB books: the chapters in their order, with their names from the table of contents."""

import posixpath
import re
from collections.abc import Iterator
from html.entities import name2codepoint
from typing import Any

from . import hypertext
from .cutting import Chunk, Refused, cut_sections, flatten, put_below
from .package import Package, parse_xml, resolve

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_TEXT_TYPES = {"application/xhtml+xml", "text/html", "application/xml", "text/xml"}
_ENTITY = re.compile(r"&(\w{2,8});")
_XML_ENTITIES = {"amp", "lt", "gt", "quot", "apos"}
_DECLARATIONS = re.compile(r"\A\s*(?:<\?xml[^>]*\?>)?\s*(?:<!DOCTYPE[^>\[]*>)?", re.IGNORECASE)


def read(content: bytes) -> Iterator[Chunk]:
    package = Package(content, "EPUB")
    package.require(_CONTAINER)
    rootfile = next(_find(package.parse(_CONTAINER), "rootfile"), None)
    if rootfile is None:
        raise Refused("is a damaged EPUB file")
    path = rootfile.get("full-path", "")
    tree, folder = package.parse(path, "package"), posixpath.dirname(path)
    items = {item.get("id", ""): item for item in _find(tree, "item")}
    titles = _read_contents(package, folder, list(items.values()))
    encrypted = _list_encrypted(package)
    for reference in _find(tree, "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or item.get("media-type") not in _TEXT_TYPES or _is_contents(item):
            continue
        name = resolve(folder, item.get("href", ""))
        if name in encrypted:
            raise Refused("is protected against copying; upload a book without protection")
        root = _parse_page(package.read(name)) if package.has(name) else None
        if root is not None:
            yield from cut_sections(put_below(titles.get(name, ""), hypertext.lines_of(root)))


def _is_contents(item: Any) -> bool:
    return "nav" in item.get("properties", "").split()


def _find(tree: Any, name: str) -> Iterator[Any]:
    """Yields the elements with a name, in any namespace."""
    yield from tree.iter(f"{{*}}{name}")


def _list_encrypted(package: Package) -> set[str]:
    if not package.has(_ENCRYPTION):
        return set()
    references = _find(package.parse(_ENCRYPTION), "CipherReference")
    return {resolve("", reference.get("URI", "")) for reference in references}


def _parse_page(content: bytes) -> Any:
    """Pages are XML. One that is not is read as browsers read HTML."""
    text = hypertext.decode_page(content)
    body = _ENTITY.sub(_replace_entity, _DECLARATIONS.sub("", text, count=1))
    root = parse_xml(body.encode("utf-8", "replace"))
    return hypertext.parse(text) if root is None else root


def _replace_entity(match: re.Match[str]) -> str:
    name = match[1]
    is_known = name in name2codepoint and name not in _XML_ENTITIES
    return chr(name2codepoint[name]) if is_known else match[0]


# The table of contents


def _read_contents(package: Package, folder: str, items: list[Any]) -> dict[str, str]:
    """Returns the names of chapters by the names of their parts."""
    titles: dict[str, str] = {}
    for item in items:
        name = resolve(folder, item.get("href", ""))
        is_old = item.get("media-type") == "application/x-dtbncx+xml"
        if not (_is_contents(item) or is_old) or not package.has(name):
            continue
        links = _list_points(package, name) if is_old else _list_links(package, name)
        for target, title in links:
            titles.setdefault(resolve(posixpath.dirname(name), target), flatten(title))
    return titles


def _list_links(package: Package, name: str) -> Iterator[tuple[str, str]]:
    root = _parse_page(package.read(name))
    for link in _find(root, "a") if root is not None else ():
        yield link.get("href", ""), "".join(link.itertext())


def _list_points(package: Package, name: str) -> Iterator[tuple[str, str]]:
    for point in _find(package.parse(name), "navPoint"):
        label, source = point.find("{*}navLabel/{*}text"), point.find("{*}content")
        if label is not None and source is not None:
            yield source.get("src", ""), label.text or ""
