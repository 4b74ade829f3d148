"""Opens the ZIP packages that DOCX, XLSX, PPTX and EPUB files are, and parses their XML.

What a package declares to unpack to is bounded, and nobody gets more than it declares: `zipfile`
ends a part there. The parser resolves no entities and loads nothing.
"""

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

from .cutting import Refused

_MIB = 1024 * 1024
MAX_UNPACKED_BYTES = 200 * _MIB
# A parsed tree takes several times the memory of its XML.
MAX_XML_BYTES = 48 * _MIB
_MAX_PARTS = 5000
_XML_ENDINGS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0"
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_IS_ENCRYPTED = 0x1
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_READ_ERRORS = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError)
_PASSWORD = "is protected by a password; save it without one"  # noqa: S105  # a message


class Relation(NamedTuple):
    """A part that another part refers to. `type` is the last word of the type's address."""

    type: str
    target: str


class Package:
    """The parts of a file of the format `name`. `streamed` parts are not parsed into a tree."""

    def __init__(self, content: bytes, name: str, older: str = "", streamed: str = "\0") -> None:
        self._not_this = f"is not {_with_article(name)} file, although its name says so"
        self._damaged = f"is a damaged {name} file"
        if content.startswith(_OLE_SIGNATURE):
            _refuse_older(content, name, older, self._not_this)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _READ_ERRORS:
            # NotImplementedError is how zipfile refuses a package of a later version of its format.
            raise Refused(self._not_this) from None
        parts = self._zip.infolist()
        _check_sizes(parts, streamed)
        if any(part.flag_bits & _IS_ENCRYPTED for part in parts):
            raise Refused(_PASSWORD)
        # The names of parts do not depend on capitals.
        self._names = {part.filename.lower(): part.filename for part in parts}

    def require(self, name: str) -> None:
        if not self.has(name):
            raise Refused(self._not_this)

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    def open(self, name: str) -> IO[bytes]:
        if not self.has(name):
            raise Refused(self._damaged)
        try:
            return self._zip.open(self._names[name.lower()])
        except _READ_ERRORS:
            raise Refused(self._damaged) from None

    def read(self, name: str) -> bytes:
        try:
            return self.open(name).read()
        except _READ_ERRORS:
            raise Refused(self._damaged) from None

    def parse(self, name: str, root: str = "") -> Any:
        """Returns the tree of a part. `root` is the name that its first element has to have."""
        tree = parse_xml(self.read(name))
        if tree is None:
            raise Refused(self._damaged)
        if root and tree.tag.rpartition("}")[2] != root:
            raise Refused(self._not_this)
        return tree

    def stream(self, name: str, tag: str) -> Iterator[Any]:
        """Yields the elements with a tag, one after the other, each only until the next."""
        from lxml import etree  # noqa: PLC0415  # for few formats only

        options = {"resolve_entities": False, "no_network": True, "load_dtd": False}
        try:
            for _, element in etree.iterparse(self.open(name), tag=tag, **options):
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except (etree.XMLSyntaxError, *_READ_ERRORS):
            raise Refused(self._damaged) from None

    def relations(self, name: str) -> dict[str, Relation]:
        """Returns the parts of the package that a part refers to, by the ids of the relations.
        External ones are left out.
        """
        folder, file = posixpath.split(name)
        path = posixpath.join(folder, "_rels", f"{file}.rels")
        if not self.has(path):
            return {}
        return {
            element.get("Id", ""): Relation(
                element.get("Type", "").rpartition("/")[2],
                resolve(folder, element.get("Target", "")),
            )
            for element in self.parse(path).iter(_RELATION)
            if element.get("TargetMode") != "External"
        }

    def find_main(self, root: str) -> tuple[str, Any]:
        """Returns the name and the tree of the main part of an office file."""
        self.require("[Content_Types].xml")
        targets = [
            relation.target
            for relation in self.relations("").values()
            if relation.type == "officeDocument"
        ]
        if not targets or not self.has(targets[0]):
            raise Refused(self._not_this)
        return targets[0], self.parse(targets[0], root)


def resolve(folder: str, target: str) -> str:
    """Returns the name of a part from a reference to it."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def parse_xml(content: bytes) -> Any:
    """Returns the tree; None when the content is not well-formed, or too deep."""
    from lxml import etree  # noqa: PLC0415  # for few formats only

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError:
        return None


def _check_sizes(parts: list[zipfile.ZipInfo], streamed: str) -> None:
    size = sum(part.file_size for part in parts)
    xml_size = sum(
        part.file_size
        for part in parts
        if part.filename.lower().endswith(_XML_ENDINGS)
        and not part.filename.lower().startswith(streamed)
    )
    if len(parts) > _MAX_PARTS or size > MAX_UNPACKED_BYTES or xml_size > MAX_XML_BYTES:
        raise Refused("unpacks to more than a document has; divide it, or save it as PDF")


def _refuse_older(content: bytes, name: str, older: str, not_this: str) -> None:
    """Files with a password, and those of older programs, are of another kind of package."""
    if not older:
        raise Refused(not_this)
    if _ENCRYPTED_STREAM in content:
        raise Refused(_PASSWORD)
    raise Refused(f"is {_with_article(older)} file of an older program; save it as {name}")


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "EX" else f"a {name}"
