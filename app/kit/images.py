"""Redraws uploaded pictures: the stored picture is a new file with the pixels of the uploaded one.

No metadata, trailing bytes or second format of the upload remains. The decoders are large and the
files untrusted, so they run in a child process with little time and memory.
"""

import asyncio
import signal
from pathlib import Path

import msgspec

from app.kit import child_process, logs

log = logs.get("images")

_SCRIPT = Path(__file__).with_name("image_child.py")
_SECONDS = 15.0
_CPU_SECONDS = 3
_MEMORY_MIB = 768
_OPEN_FILES = 32
_NICENESS = 10
# More than the largest picture that the script accepts takes without compression.
_MAX_OUTPUT_BYTES = 128 * 1024 * 1024
# Bounds the share of the machine that pictures take.
_slots = asyncio.Semaphore(2)


class NotAPicture(ValueError):
    """The message tells the uploader what is wrong with the file."""


class Picture(msgspec.Struct, frozen=True):
    content: bytes
    media_type: str


async def redraw(content: bytes, max_side: int) -> Picture:
    """Returns a PNG, JPEG or WebP, as the content is, at most `max_side` pixels wide and high."""
    async with _slots:
        head, newline, picture = (await _run_script(content, max_side)).partition(b"\n")
    if not newline:
        raise NotAPicture("takes too much time or memory to read")
    if head.startswith(b"!"):
        raise NotAPicture(head[1:].decode())
    return Picture(picture, head.decode())


async def _run_script(content: bytes, max_side: int) -> bytes:
    """Returns the script's output, or nothing when it was ended."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await child_process.run(
                _SCRIPT,
                content,
                str(max_side),
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
    log.info("a picture could not be decoded", code=exit_code)
    return b""
