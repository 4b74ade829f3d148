"""Converts speech from MP3 to other formats. The decoder runs in a child process with little time
and memory, because a provider's file is untrusted.
"""

from pathlib import Path
from typing import Final, Literal

from app.kit import logs
from app.kit.errors import Invalid, ProviderError
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed, Response, ScriptRefused

log = logs.get("speech")

AudioFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
MEDIA_TYPES: Final[dict[AudioFormat, str]] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
MAX_MB: Final = 24

_MEGABYTE = 1024 * 1024
_SCRIPT = Path(__file__).with_name("conversion_child.py")
_LIMITS = Limits(
    seconds=120.0,
    cpu_seconds=60,
    memory_mib=2048,
    # The script may write a frame more than it counts, and the first line.
    output_bytes=(MAX_MB + 1) * _MEGABYTE,
    open_files=32,
    niceness=5,
)


async def convert(mp3: bytes, audio_format: AudioFormat) -> bytes:
    """Raises Invalid for speech that is too long for the format, and ProviderError for a file that
    cannot be read.
    """
    if audio_format == "mp3":
        return mp3
    try:
        return bytes((await _run(mp3, audio_format)).body)
    except ScriptRefused as error:
        if str(error) == "length":
            problem = f"the speech takes more than {MAX_MB} MB as {audio_format}; ask for mp3"
            raise Invalid.field("response_format", problem) from None
        raise ProviderError("The voice did not return an MP3 file that can be read") from None
    except ProcessFailed as error:
        log.warning("speech could not be converted", format=audio_format, reason=str(error))
        raise ProviderError(f"The speech could not be converted to {audio_format}") from error


async def measure(mp3: bytes) -> float:
    """Returns the seconds of the speech; 0 for a file that cannot be read."""
    try:
        return float((await _run(mp3, "mp3")).head)
    except (ScriptRefused, ProcessFailed) as error:
        log.warning("speech could not be measured", reason=str(error))
        return 0.0


async def _run(mp3: bytes, audio_format: AudioFormat) -> Response:
    arguments = (audio_format, str(MAX_MB * _MEGABYTE))
    return await child_process.request(_SCRIPT, mp3, *arguments, limits=_LIMITS)
