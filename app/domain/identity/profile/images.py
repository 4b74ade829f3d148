"""Redraws uploaded pictures: the stored picture is a new file with the pixels of the uploaded one.

No metadata, trailing bytes or second format of the upload remains. The decoders are large and the
files untrusted, so they run in a child process with little time and memory.
"""

import asyncio
from pathlib import Path

import msgspec

from app.kit import logs
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

log = logs.get("images")

_SCRIPT = Path(__file__).with_name("image_child.py")
_LIMITS = Limits(
    seconds=15.0,
    cpu_seconds=3,
    memory_mib=768,
    # More than the largest picture that the script accepts takes without compression.
    output_bytes=128 * 1024 * 1024,
    open_files=32,
    niceness=10,
)
# Bounds the share of the machine that pictures take.
_slots = asyncio.Semaphore(2)


class NotAPicture(ValueError):
    """The message tells the uploader what is wrong with the file."""


class Picture(msgspec.Struct, frozen=True):
    content: bytes
    media_type: str


async def redraw(content: bytes, max_side: int) -> Picture:
    """Returns a PNG, JPEG or WebP, as the content is, at most `max_side` pixels wide and high."""
    try:
        async with _slots:
            response = await child_process.request(_SCRIPT, content, str(max_side), limits=_LIMITS)
    except ScriptRefused as error:
        raise NotAPicture(str(error)) from None
    except ProcessFailed as error:
        log.info("a picture could not be decoded", code=error.exit_code)
        raise NotAPicture("takes too much time or memory to read") from error
    return Picture(bytes(response.body), response.head)
