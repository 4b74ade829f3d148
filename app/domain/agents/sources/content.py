"""The formats, titles and names of documents that a source has."""

import asyncio
import codecs
import hashlib
import html
import re
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from app.domain.agents.knowledge.api import (
    FORMATS,
    MIME_TYPES,
    Kind,
    Unreadable,
    kind_of,
    read_text,
)
from app.kit import filenames

from .failures import DocumentSkipped

_KINDS: Final[dict[str, Kind]] = {
    **{mime_type: kind for kind, mime_type in MIME_TYPES.items()},
    "application/xhtml+xml": "html",
    "text/x-markdown": "md",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
}
# What servers call files whose ending says more.
_VAGUE = {"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/zip"}
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
# Encodings that pages of the web have, besides UTF-8.
_WEB_ENCODINGS = re.compile(
    r"(iso-8859-\d{1,2}|windows-125\d|koi8-[ru]|shift_jis|euc-jp|euc-kr|gb2312|gbk|gb18030|big5)\Z",
    re.IGNORECASE,
)
_HEAD_BYTES = 64 * 1024
_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{1,2000})", re.IGNORECASE)
_MAX_TITLE_CHARS = 150
_HASHED_AT_ONCE = 256 * 1024
_MAX_TEXT_CHARS = 500_000
_SLASHES = re.compile(r"\s*[/\\]+\s*")


class Content(msgspec.Struct, frozen=True):
    """A document as it was read. The validators are those of its server."""

    body: bytes
    kind: Kind
    title: str = ""
    etag: str | None = None
    last_modified: str | None = None


def find_kind(content_type: str, url: str) -> Kind:
    """Returns the format by what the server says, or else by the ending of the address. Raises
    DocumentSkipped.
    """
    mime_type = content_type.partition(";")[0].strip().lower()
    by_ending = kind_of(PurePosixPath(unquote(urlsplit(url).path)).name)
    kind = _KINDS.get(mime_type)
    if mime_type in _VAGUE:
        kind = by_ending or kind
    if kind is None:
        described = mime_type[:80] or "a file without a type"
        raise DocumentSkipped(f"is {described}; {FORMATS} files are read")
    return kind


async def as_utf8(body: bytes, content_type: str) -> bytes:
    """Returns the text as UTF-8 when the server alone says how it is encoded."""
    match = _CHARSET.search(content_type)
    if match is None or not _WEB_ENCODINGS.match(match[1]):
        return body
    return await asyncio.to_thread(_transcode, body, match[1])


def _transcode(body: bytes, encoding: str) -> bytes:
    try:
        return codecs.BOM_UTF8 + body.decode(encoding, "replace").encode()
    except LookupError:
        return body


def find_title(body: bytes) -> str:
    """Returns the title of a page, "" if its beginning has none."""
    match = _TITLE.search(body[:_HEAD_BYTES].decode("utf-8", "replace"))
    return " ".join(html.unescape(match[1]).split()) if match else ""


async def hash_bytes(body: bytes) -> str:
    if len(body) <= _HASHED_AT_ONCE:
        return hashlib.sha256(body).hexdigest()
    return (await asyncio.to_thread(hashlib.sha256, body)).hexdigest()


async def hash_text(content: Content) -> str | None:
    """Returns the hash of what a reader of a page sees; None when that cannot be read."""
    try:
        file = await read_text(content.body, content.kind, _MAX_TEXT_CHARS)
    except Unreadable:
        return None
    return hashlib.sha256(file.text.encode()).hexdigest()


def list_names(title: str, path: str, kind: Kind) -> list[str]:
    """Returns names for a document, the best first; any of them may belong to another one. Without
    a title, the name comes from the path.
    """
    words = " - ".join(part for part in unquote(path).split("/") if part)
    title = _clean(title) or _clean(PurePosixPath(words).stem if kind_of(words) else words)
    title = title or "Page"
    full = f"{title} ({_clean(words)[-_MAX_TITLE_CHARS // 2 :]})" if _clean(words) else title
    numbered = [f"{full} {number}" for number in range(2, 5)]
    names = [title, full, *numbered]
    return list(dict.fromkeys(f"{name}.{kind}" for name in names))


def _clean(text: str) -> str:
    """Returns a part of a file's name: without slashes, and of a bounded length."""
    return filenames.clean(_SLASHES.sub(" - ", text)[: 4 * _MAX_TITLE_CHARS])[
        :_MAX_TITLE_CHARS
    ].strip(" .-")
