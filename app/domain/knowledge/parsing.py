"""Reads documents in a child process with limits, because parsers are large and files untrusted."""

import asyncio
import signal
from pathlib import Path, PurePath
from typing import Final, Literal

import msgspec

from app.domain.knowledge.chunks import Chunk
from app.kit import child_process, logs

log = logs.get("knowledge")

Kind = Literal["pdf", "docx", "md", "txt", "csv"]
MIME_TYPES: Final[dict[Kind, str]] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "md": "text/markdown",
    "txt": "text/plain",
    "csv": "text/csv",
}
_KINDS: Final[dict[str, Kind]] = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".md": "md",
    ".markdown": "md",
    ".txt": "txt",
    ".text": "txt",
    ".csv": "csv",
}
_SCRIPT = Path(__file__).with_name("parse_child.py")
_SECONDS = 180.0
_CPU_SECONDS = 120
_MEMORY_MIB = 1024
_OPEN_FILES = 64
_NICENESS = 10
# More than the longest text that the script accepts takes with its overlaps.
_MAX_OUTPUT_BYTES = 160 * 1024 * 1024
_decoder = msgspec.json.Decoder(list[Chunk])


class Unreadable(ValueError):
    """The message continues a sentence that starts with: The file."""


def kind_of(name: str) -> Kind | None:
    """Returns the format that a file's name promises; the content is checked when it is read."""
    return _KINDS.get(PurePath(name).suffix.lower())


async def read_chunks(content: bytes, kind: Kind) -> list[Chunk]:
    """Returns the document's chunks in their order, at least one. Raises Unreadable."""
    head, newline, chunks = (await _run_script(content, kind)).partition(b"\n")
    if not newline:
        raise Unreadable("takes too much time or memory to read")
    if head.startswith(b"!"):
        raise Unreadable(head[1:].decode())
    return await asyncio.to_thread(_decoder.decode, chunks)


async def _run_script(content: bytes, kind: Kind) -> bytes:
    """Returns the script's output, or nothing when it was ended."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await child_process.run(
                _SCRIPT,
                content,
                kind,
                cpu_seconds=_CPU_SECONDS,
                memory_mib=_MEMORY_MIB,
                file_mib=0,
                output_bytes=_MAX_OUTPUT_BYTES,
                open_files=_OPEN_FILES,
                niceness=_NICENESS,
            )
    except TimeoutError:
        exit_code: int | None = -signal.SIGKILL
    except child_process.ProcessFailed as error:
        exit_code = error.exit_code
    log.info("a document could not be read", code=exit_code)
    return b""
