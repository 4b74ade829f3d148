"""Script that reads one XML list of documents: a sitemap, a feed, or a page of a bucket's keys.

`xml_lists.py` runs it with limits. It reads the file, which may be packed as gzip, from standard
input, and its kind from the first argument. It writes one line, `ok` or `!` and an error, and then
JSON.
"""

import io
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from lxml import etree

MAX_BYTES = 50 * 1024 * 1024
MAX_ITEMS = 50_000
MAX_CONTENT_CHARS = 1_000_000
_MAX_TEXT_CHARS = 4000
_GZIP = b"\x1f\x8b"
_ANY_WRAPPER = 47
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "remove_comments": True,
    "remove_pis": True,
}


class Refused(Exception):
    pass


def _unpack(content: bytes) -> bytes:
    if content.startswith(_GZIP):
        unpacker = zlib.decompressobj(_ANY_WRAPPER)
        try:
            content = unpacker.decompress(content, MAX_BYTES + 1)
        except zlib.error:
            raise Refused("is damaged") from None
    if len(content) > MAX_BYTES:
        raise Refused(f"unpacks to more than {MAX_BYTES // 1024 // 1024} MB")
    return content


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _child(element: Any, *names: str) -> Any:
    """Returns the first child with one of these names, by their order."""
    for name in names:
        for child in element:
            if _name(child) == name:
                return child
    return None


def _text(element: Any, limit: int = _MAX_TEXT_CHARS) -> str:
    return "" if element is None else "".join(element.itertext())[:limit].strip()


def _iterate(content: bytes, *names: str) -> Iterator[tuple[str, Any]]:
    """Yields the name of the root and the elements with these names, each only until the next."""
    root = ""
    depth = 0
    for event, element in etree.iterparse(
        io.BytesIO(content.lstrip()), events=("start", "end"), **_OPTIONS
    ):
        if event == "start":
            depth += 1
            root = root or _name(element)
            _check_entities(element)
            continue
        depth -= 1
        if _name(element) in names:
            yield root, element
        if depth == 1:
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    if not root:
        raise Refused("is not XML")


def _check_entities(element: Any) -> None:
    """A list needs no entities of its own."""
    if element.getparent() is None:
        document = element.getroottree().docinfo.internalDTD
        if document is not None and next(document.iterentities(), None) is not None:
            raise Refused("declares entities, which are not read")


def read_sitemap(content: bytes) -> Any:
    """Returns whether it is an index of sitemaps, and the addresses."""
    addresses: list[str] = []
    is_index = False
    for root, element in _iterate(content, "url", "sitemap"):
        if root not in {"urlset", "sitemapindex"}:
            break
        is_index = root == "sitemapindex"
        address = _text(_child(element, "loc"))
        if address:
            addresses.append(address)
        if len(addresses) >= MAX_ITEMS:
            break
    return [is_index, addresses]


def read_feed(content: bytes) -> Any:
    """Returns address, title, id and HTML of each entry of RSS or Atom."""
    entries: list[list[str]] = []
    size = 0
    for _, element in _iterate(content, "item", "entry"):
        body = _child(element, "encoded", "content", "description", "summary")
        html = _read_html(body)[:MAX_CONTENT_CHARS]
        size += len(html)
        if size > MAX_BYTES // 4 or len(entries) >= MAX_ITEMS:
            break
        name = _text(_child(element, "guid", "id"))
        entries.append([_read_link(element), _text(_child(element, "title")), name, html])
    return entries


def _read_link(element: Any) -> str:
    """RSS has the address as text, Atom in an attribute; of several, the page itself."""
    links = [child for child in element if _name(child) == "link"]
    for link in links:
        if link.get("href") and link.get("rel", "alternate") == "alternate":
            return str(link.get("href"))[:_MAX_TEXT_CHARS].strip()
    return next((text for link in links if (text := _text(link))), "")


def _read_html(element: Any) -> str:
    if element is None:
        return ""
    if len(element):
        # XHTML in Atom.
        return "".join(
            etree.tostring(child, encoding="unicode", method="html") for child in element
        )
    return element.text or ""


def read_keys(content: bytes) -> Any:
    """Returns key, ETag and size of each object, and the token of the next page."""
    objects: list[list[str]] = []
    token = ""
    for root, element in _iterate(content, "Contents", "NextContinuationToken"):
        if root != "ListBucketResult":
            raise Refused("is not a list of objects")
        if _name(element) == "Contents":
            objects.append([_text(_child(element, name)) for name in ("Key", "ETag", "Size")])
        else:
            token = _text(element)
    return [objects[:MAX_ITEMS], token]


_READERS: dict[str, Callable[[bytes], Any]] = {
    "sitemap": read_sitemap,
    "feed": read_feed,
    "keys": read_keys,
}


def respond(content: bytes, kind: str) -> bytes:
    try:
        return b"ok\n" + json.dumps(_READERS[kind](_unpack(content))).encode()
    except Refused as problem:
        return f"!{problem}\n".encode()
    except (etree.XMLSyntaxError, MemoryError):
        return b"!is not well-formed XML\n"


def main() -> None:
    sys.stdout.buffer.write(respond(sys.stdin.buffer.read(), sys.argv[1]))
