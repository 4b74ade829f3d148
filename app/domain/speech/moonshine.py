"""The embedded recogniser: Moonshine, loaded at its first use and kept by the process."""

import asyncio
from array import array
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Final

from app.kit import logs, optional
from app.kit.errors import Unavailable

log = logs.get("speech")

MODEL: Final = "local/moonshine"
_RETRY_SECONDS = 3600
_OPTIONS = {"return_audio_data": "false", "identify_speakers": "false"}


class Recogniser:
    """Recognises English speech in a thread, one piece at a time. Several recordings take turns
    with their pieces.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._transcriber: Any = None

    async def transcribe(self, pieces: list[memoryview]) -> str:
        """Returns the text of 32-bit float samples, 16 kHz, mono; "" when nobody speaks."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="moonshine")
        loop = asyncio.get_running_loop()
        texts = [
            await loop.run_in_executor(self._thread, self._transcribe_piece, piece)
            for piece in pieces
        ]
        return " ".join(filter(None, texts))

    async def close(self) -> None:
        """Waits for the current piece."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
            self._thread = None
        if self._transcriber is not None:
            self._transcriber.close()
            self._transcriber = None

    def _transcribe_piece(self, piece: memoryview) -> str:
        if self._transcriber is None:
            self._transcriber = _load()
        samples = array("f")
        samples.frombytes(piece)
        transcript = self._transcriber.transcribe_without_streaming(samples)
        return " ".join(filter(None, (line.text.strip() for line in transcript.lines)))


def _load() -> Any:
    feature = optional.SPEECH_RECOGNITION
    if not optional.is_installed(feature):
        raise _unavailable(optional.read_missing_reason(feature))
    try:
        library: Any = import_module(feature.module)
        path, arch = library.get_model_path("tiny-en"), library.ModelArch.TINY
        return library.Transcriber(path, arch, options=_OPTIONS)
    except Exception as error:
        # A C library may miss another one; the reason is for the operator.
        log.exception("speech recognition cannot be loaded")
        raise _unavailable(f"it cannot be loaded: {type(error).__name__}") from error


def _unavailable(reason: str) -> Unavailable:
    message = f"Speech recognition is not available here: {reason}"
    return Unavailable(message, _RETRY_SECONDS)
