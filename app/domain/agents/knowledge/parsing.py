"""Reads documents in a child process with limits, because parsers are large and files untrusted."""

import asyncio
from pathlib import Path, PurePath
from typing import Final, Literal

import msgspec

from app.kit import logs
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, Response, ScriptRefused

from .chunks import Chunk

log = logs.get("knowledge")

Kind = Literal["pdf", "docx", "xlsx", "pptx", "epub", "html", "md", "txt", "csv", "json", "jsonl"]
_OFFICE = "application/vnd.openxmlformats-officedocument"
MIME_TYPES: Final[dict[Kind, str]] = {
    "pdf": "application/pdf",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "epub": "application/epub+zip",
    "html": "text/html",
    "md": "text/markdown",
    "txt": "text/plain",
    "csv": "text/csv",
    "json": "application/json",
    "jsonl": "application/jsonl",
}
_KINDS: Final[dict[str, Kind]] = {
    **{f".{kind}": kind for kind in MIME_TYPES},
    ".htm": "html",
    ".markdown": "md",
    ".text": "txt",
}
_NAMES = [kind.upper() for kind in MIME_TYPES]
# For messages.
FORMATS: Final = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"
_SCRIPT = Path(__file__).with_name("parse_child.py")
_LIMITS = Limits(
    seconds=180.0,
    cpu_seconds=120,
    memory_mib=1024,
    # More than the longest text that the script accepts takes with its overlaps.
    output_bytes=160 * 1024 * 1024,
    open_files=64,
    niceness=10,
)
# For senders who wait: less than a document may take that workers read.
_TEXT_LIMITS = Limits(
    seconds=30.0,
    cpu_seconds=20,
    memory_mib=1024,
    output_bytes=4 * 1024 * 1024,
    open_files=64,
    niceness=10,
)
_decoder = msgspec.json.Decoder(list[Chunk])


class FileText(msgspec.Struct, frozen=True, array_like=True):
    """The text of a file, or its start."""

    text: str
    is_truncated: bool


class Unreadable(ValueError):
    """The message continues a sentence that starts with: The file."""


def kind_of(name: str) -> Kind | None:
    """Returns the format that a file's name promises; the content is checked when it is read."""
    return _KINDS.get(PurePath(name).suffix.lower())


async def read_chunks(content: bytes, kind: Kind) -> list[Chunk]:
    """Returns the document's chunks in their order, at least one. Raises Unreadable."""
    response = await _request(content, kind, limits=_LIMITS)
    return await asyncio.to_thread(_decoder.decode, response.body)


async def read_text(content: bytes, kind: Kind, max_characters: int) -> FileText:
    """Returns the text of a file, cut to so many characters, at least one. Raises Unreadable."""
    response = await _request(content, kind, str(max_characters), limits=_TEXT_LIMITS)
    return msgspec.json.decode(response.body, type=FileText)


async def _request(content: bytes, *arguments: str, limits: Limits) -> Response:
    try:
        return await child_process.request(_SCRIPT, content, *arguments, limits=limits)
    except ScriptRefused as error:
        raise Unreadable(str(error)) from None
    except ProcessFailed as error:
        log.info("a document could not be read", code=error.exit_code)
        raise Unreadable("takes too much time or memory to read") from error
