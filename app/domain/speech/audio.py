"""Decodes uploaded recordings. The files are untrusted, so the decoders run in a child process with
little time and memory. The format is what the decoder finds, whatever name or type was declared.
"""

import asyncio
import signal
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

import msgspec

from app.domain.speech.errors import RecordingTooLarge
from app.kit import child_process, logs
from app.kit.errors import UnsupportedFileType

log = logs.get("speech")

MAX_MB: Final = 25
MAX_SECONDS: Final = 600
# The recogniser takes one piece at a time, and other recordings in between.
_PIECE_SECONDS = 30
_SAMPLE_BYTES = 4
_SAMPLES_PER_SECOND = 16_000

_SCRIPT = Path(__file__).with_name("audio_child.py")
_SECONDS = 90.0
_CPU_SECONDS = 30
# Address space; each processor may add a thread with its stack.
_MEMORY_MIB = 2048
_OPEN_FILES = 32
_NICENESS = 5
# A second more than the limit for the padding of encoders, and the first line.
_MAX_OUTPUT_BYTES = (MAX_SECONDS + 2) * _SAMPLES_PER_SECOND * _SAMPLE_BYTES


class Recording(msgspec.Struct, frozen=True):
    """`pieces` are 32-bit floats, 16 kHz, mono; each is at most half a minute long. They are views
    of one buffer, which has up to 40 MB.
    """

    media_type: str
    pieces: list[memoryview]


async def decode(content: bytes) -> Recording:
    """Raises UnsupportedFileType, or RecordingTooLarge for one that is too long."""
    output = await _run_script(content)
    end = output.find(b"\n")
    if end < 0:
        raise _unsupported("takes too much time or memory to read")
    head, samples = output[:end], memoryview(output)[end + 1 :]
    if head.startswith(b"!"):
        code, _, message = head[1:].decode().partition(" ")
        if code == RecordingTooLarge.code:
            raise RecordingTooLarge(f"audio {message}", details={"max_seconds": MAX_SECONDS})
        raise _unsupported(message)
    media_type, *lengths = head.decode().split()
    ends = accumulate((int(length) * _SAMPLE_BYTES for length in lengths), initial=0)
    return Recording(media_type, [samples[start:end] for start, end in pairwise(ends)])


def _unsupported(message: str) -> UnsupportedFileType:
    return UnsupportedFileType(f"audio {message}", details={"audio": message})


async def _run_script(content: bytes) -> bytes:
    """Returns the script's output, or nothing when it was ended."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await child_process.run(
                _SCRIPT,
                content,
                str(MAX_SECONDS),
                str(_PIECE_SECONDS),
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
    log.info("a recording could not be decoded", code=exit_code)
    return b""
