"""Decodes uploaded recordings. The files are untrusted, so the decoders run in a child process with
little time and memory. The format is what the decoder finds, whatever name or type was declared.
"""

from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

import msgspec

from app.kit import logs
from app.kit.errors import UnsupportedFileType
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

from .errors import RecordingTooLarge

log = logs.get("speech")

MAX_MB: Final = 25
MAX_SECONDS: Final = 600
# The recogniser takes one piece at a time, and other recordings in between.
_PIECE_SECONDS = 30
_SAMPLE_BYTES = 4
_SAMPLES_PER_SECOND = 16_000

_SCRIPT = Path(__file__).with_name("audio_child.py")
_LIMITS = Limits(
    seconds=90.0,
    cpu_seconds=30,
    memory_mib=2048,
    # A second more than the limit for the padding of encoders, and the first line.
    output_bytes=(MAX_SECONDS + 2) * _SAMPLES_PER_SECOND * _SAMPLE_BYTES,
    open_files=32,
    niceness=5,
)


class Recording(msgspec.Struct, frozen=True):
    """`pieces` are 32-bit floats, 16 kHz, mono; each is at most half a minute long. They are views
    of one buffer, which has up to 40 MB.
    """

    media_type: str
    pieces: list[memoryview]

    @property
    def seconds(self) -> float:
        return sum(piece.nbytes for piece in self.pieces) / _SAMPLE_BYTES / _SAMPLES_PER_SECOND


async def decode(content: bytes) -> Recording:
    """Raises UnsupportedFileType, or RecordingTooLarge for one that is too long."""
    arguments = (str(MAX_SECONDS), str(_PIECE_SECONDS))
    try:
        response = await child_process.request(_SCRIPT, content, *arguments, limits=_LIMITS)
    except ScriptRefused as error:
        code, _, message = str(error).partition(" ")
        if code == RecordingTooLarge.code:
            raise RecordingTooLarge(
                f"audio {message}", details={"max_seconds": MAX_SECONDS}
            ) from None
        raise _unsupported(message) from None
    except ProcessFailed as error:
        log.info("a recording could not be decoded", code=error.exit_code)
        raise _unsupported("takes too much time or memory to read") from error
    media_type, *lengths = response.head.split()
    ends = accumulate((int(length) * _SAMPLE_BYTES for length in lengths), initial=0)
    return Recording(media_type, [response.body[start:end] for start, end in pairwise(ends)])


def _unsupported(message: str) -> UnsupportedFileType:
    return UnsupportedFileType(f"audio {message}", details={"audio": message})
