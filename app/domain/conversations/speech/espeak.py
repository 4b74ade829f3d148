"""The embedded voice: eSpeak NG, in a child process with limits."""

import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from app.kit import logs
from app.kit.errors import Invalid, Unavailable
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, ScriptRefused

log = logs.get("speech")

MODEL: Final = "local/espeak"
DEFAULT_VOICE: Final = "en-us"
# The library speaks from 80 to 450 words per minute.
MIN_SPEED: Final = 0.55
MAX_SPEED: Final = 3.0
_WORDS_PER_MINUTE = 150

_SCRIPT = Path(__file__).with_name("espeak_child.py")
_LIMITS = Limits(
    seconds=120.0,
    cpu_seconds=60,
    memory_mib=2048,
    output_bytes=16 * 1024 * 1024,
    open_files=64,
    niceness=5,
)
# The same text would end the process again. A process that cannot send itself a signal to abort
# ends by a trap.
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGTRAP)
_DATA_FOLDER = "espeak-ng-data"
_PROBLEMS = {
    "voice": ("voice", "is not a voice of eSpeak NG, like en-us, en-gb-x-rp or de"),
    "text": ("text", "has nothing that can be spoken"),
    "length": ("text", "takes more than half an hour to speak"),
}


async def speak(text: str, voice: str | None, speed: float = 1.0) -> bytes:
    """Returns an MP3 file. Raises Invalid for an unknown voice, and for a text that cannot be
    spoken.
    """
    package = find_spec("espeakng_loader")
    if package is None or package.origin is None:
        raise Unavailable("The embedded voice is not available: espeakng-loader is not installed")
    limits = msgspec.structs.replace(_LIMITS, readable=Path(package.origin).with_name(_DATA_FOLDER))
    try:
        arguments = (voice or DEFAULT_VOICE, str(round(_WORDS_PER_MINUTE * speed)))
        response = await child_process.request(_SCRIPT, text.encode(), *arguments, limits=limits)
    except ScriptRefused as error:
        raise Invalid.field(*_PROBLEMS[str(error)]) from None
    except ProcessFailed as error:
        log.warning("the embedded voice failed", reason=str(error))
        if error.exit_code in _CRASHES:
            raise Invalid.field("text", "cannot be spoken by the embedded voice") from error
        raise Unavailable("The embedded voice failed; try again, or with less text") from error
    return bytes(response.body)
