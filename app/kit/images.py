"""Pictures from outside: what is kept is a new picture, made from the pixels of the one sent.

Nothing else of the file survives: no metadata, no trailing bytes, no second format hidden inside.
Decoders are large and the files are strangers', so they run in a child with little time and memory.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from app.kit import logs

log = logs.get("images")

_PROGRAM = Path(__file__).with_name("image_child.py")
_SECONDS = 15.0
# A few at a time, so that pictures never take all of a machine.
_turn = asyncio.Semaphore(2)


class NotAPicture(ValueError):
    """The message says why, for the one who sent it."""


class Picture(msgspec.Struct, frozen=True):
    content: bytes
    media_type: str


async def redraw(content: bytes, max_side: int) -> Picture:
    """A PNG, JPEG or WebP, told by its content, at most `max_side` pixels wide and high."""
    async with _turn:
        head, newline, picture = (await _run(content, max_side)).partition(b"\n")
    if not newline:
        # Out of time or memory, or worse: killed, and nothing else is harmed.
        raise NotAPicture("takes too much time or memory to read")
    if head.startswith(b"!"):
        raise NotAPicture(head[1:].decode())
    return Picture(picture, head.decode())


async def _run(content: bytes, max_side: int) -> bytes:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(_PROGRAM),
        str(max_side),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, _ = await child.communicate(content)
    except TimeoutError:
        out = b""
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        log.info("a picture was given up", code=child.returncode)
        return b""
    return out
