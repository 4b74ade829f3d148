"""Reads archives of repositories in a child process with limits: they come from servers of others.
The functions raise DocumentSkipped for an archive that cannot be read.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from app.domain.agents.knowledge.api import MIME_TYPES
from app.kit import logs
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

from .failures import DocumentSkipped

log = logs.get("sources")

# It is in memory during a turn.
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_BATCH_BYTES: Final = 32 * 1024 * 1024
_SCRIPT = Path(__file__).with_name("archive_child.py")
_LIMITS = Limits(
    seconds=120.0,
    cpu_seconds=60,
    memory_mib=1024,
    # Base64 takes a third more.
    output_bytes=64 * 1024 * 1024,
    open_files=64,
    niceness=10,
)


class ArchivedFile(msgspec.Struct, frozen=True, array_like=True):
    """`sha256` is empty for a file that is too large."""

    path: str
    size_bytes: int
    sha256: str


class FileContent(msgspec.Struct, frozen=True, array_like=True):
    path: str
    body: bytes


async def list_files(archive: bytes, folder: str, max_bytes: int) -> list[ArchivedFile]:
    """Returns the files of a folder that have the formats of documents."""
    request = {"folder": folder, "endings": _list_endings(), "max_bytes": max_bytes}
    files: list[ArchivedFile] = await _run(archive, request, list[ArchivedFile])
    return files


async def read_files(archive: bytes, folder: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Returns the contents of these files, as many as fit into one batch."""
    request = {
        "folder": folder,
        "endings": _list_endings(),
        "max_bytes": MAX_BATCH_BYTES,
        "paths": list(paths),
    }
    files: list[FileContent] = await _run(archive, request, list[FileContent])
    return {file.path: file.body for file in files}


def _list_endings() -> list[str]:
    return [*MIME_TYPES, "htm", "markdown", "text"]


async def _run(archive: bytes, request: dict[str, Any], struct: Any) -> Any:
    encoded = msgspec.json.encode(request)
    content = b"%d\n" % len(encoded) + encoded + archive
    try:
        response = await child_process.request(_SCRIPT, content, limits=_LIMITS)
    except ScriptRefused as error:
        raise DocumentSkipped(str(error)) from None
    except ProcessFailed as error:
        log.info("an archive could not be read", code=error.exit_code)
        raise DocumentSkipped("takes too much time or memory to read") from None
    return await asyncio.to_thread(msgspec.json.decode, response.body, type=struct)
