"""The embedded recogniser: Moonshine, loaded at its first use and kept by the process."""

import asyncio
import ctypes
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, Final

from app.kit import logs, optional
from app.kit.errors import Unavailable

log = logs.get("speech")

MODEL: Final = "local/moonshine"
SAMPLE_RATE: Final = 16_000
_OPTIONS = {"return_audio_data": "false", "identify_speakers": "false"}


class Recogniser:
    """Recognises English speech in a thread, one piece at a time. Several recordings take turns
    with their pieces.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._model: Model | None = None

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
        if self._model is not None:
            self._model.close()
            self._model = None

    def _transcribe_piece(self, piece: memoryview) -> str:
        if self._model is None:
            self._model = _load()
        return self._model.transcribe(piece)


class Model:
    """A loaded model. It calls the C library itself: the package's own function makes an object of
    each sample, which stops all threads for a tenth of a second.
    """

    def __init__(self, library: Any) -> None:
        path, arch = library.get_model_path("tiny-en"), library.ModelArch.TINY
        self._transcriber = library.Transcriber(path, arch, options=_OPTIONS)
        self._result_type: Any = ctypes.POINTER(library.moonshine_api.TranscriptC)
        self._check: Any = library.errors.check_error

    def transcribe(self, piece: memoryview) -> str:
        count = piece.nbytes // ctypes.sizeof(ctypes.c_float)
        samples = (ctypes.c_float * count).from_buffer_copy(piece)
        result = self._result_type()
        library, handle = self._transcriber._lib, self._transcriber._handle  # noqa: SLF001  # see above
        call = library.moonshine_transcribe_without_streaming
        self._check(call(handle, samples, count, SAMPLE_RATE, 0, ctypes.byref(result)))
        lines = self._transcriber._parse_transcript(result).lines  # noqa: SLF001  # see above
        return " ".join(filter(None, (line.text.strip() for line in lines)))

    def close(self) -> None:
        self._transcriber.close()


def _load() -> Model:
    feature = optional.SPEECH_RECOGNITION
    if not optional.is_installed(feature):
        raise _unavailable(optional.read_missing_reason(feature))
    try:
        return Model(import_module(feature.module))
    except Exception as error:
        # A C library may miss another one; the reason is for the operator.
        log.exception("speech recognition cannot be loaded")
        raise _unavailable(f"it cannot be loaded: {type(error).__name__}") from error


def _unavailable(reason: str) -> Unavailable:
    return Unavailable(f"Speech recognition is not available here: {reason}")
