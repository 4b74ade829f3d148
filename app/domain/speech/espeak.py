"""The embedded voice: eSpeak NG, in a child process with limits."""

import asyncio
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from app.kit import child_process, logs
from app.kit.errors import Invalid, Unavailable

log = logs.get("speech")

MODEL: Final = "local/espeak"
DEFAULT_VOICE: Final = "en-us"

_SCRIPT = Path(__file__).with_name("espeak_child.py")
_SECONDS = 120.0
_CPU_SECONDS = 60
# Address space; each processor may add a thread with its stack.
_MEMORY_MIB = 2048
_OPEN_FILES = 64
_NICENESS = 5
_MAX_OUTPUT_BYTES = 16 * 1024 * 1024
# The same text would end the process again.
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT)
_PROBLEMS = {
    b"!voice": ("voice", "is not a voice of eSpeak NG, like en-us, en-gb-x-rp or de"),
    b"!text": ("text", "has nothing that can be spoken"),
    b"!length": ("text", "takes more than half an hour to speak"),
}


async def speak(text: str, voice: str | None) -> bytes:
    """Returns an MP3 file. Raises Invalid for an unknown voice, and for a text that cannot be
    spoken.
    """
    if find_spec("espeakng_loader") is None:
        raise Unavailable("The embedded voice is not available: espeakng-loader is not installed")
    try:
        async with asyncio.timeout(_SECONDS):
            output = await child_process.run(
                _SCRIPT,
                text.encode(),
                voice or DEFAULT_VOICE,
                cpu_seconds=_CPU_SECONDS,
                memory_mib=_MEMORY_MIB,
                file_mib=0,
                output_bytes=_MAX_OUTPUT_BYTES,
                open_files=_OPEN_FILES,
                niceness=_NICENESS,
            )
    except (TimeoutError, child_process.ProcessFailed) as error:
        log.warning("the embedded voice failed", reason=str(error))
        if getattr(error, "exit_code", None) in _CRASHES:
            raise Invalid.field("text", "cannot be spoken by the embedded voice") from error
        raise Unavailable("The embedded voice failed; try again, or with less text") from error
    head, _, mp3 = output.partition(b"\n")
    if head in _PROBLEMS:
        raise Invalid.field(*_PROBLEMS[head])
    return mp3
