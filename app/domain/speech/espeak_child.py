"""Script that speaks a text with eSpeak NG; `app.domain.speech.espeak` runs it with limits.

It imports nothing of Parley. It reads the text from standard input and the name of the voice from
its first argument. It writes one line, `ok` or `!` and an error code, and then an MP3 file.

eSpeak NG is a C library with global state, so each text has a process of its own.
"""

import ctypes
import io
import re
import sys
from importlib import import_module
from typing import Any

_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_RATE = 1
_WORDS_PER_MINUTE = 150
_BIT_RATE = 64_000
# LAME's quality from 0 to 9: this one takes half the time of the default.
_ENCODER = {"compression_level": "7"}
# Control characters start commands within the text, such as a change of speed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class Refused(Exception):
    """The argument is an error code: `voice` or `text`."""


def synthesize(text: str, voice: str) -> tuple[int, bytes]:
    """Returns the sample rate, and 16-bit samples."""
    library_files: Any = import_module("espeakng_loader")
    library = ctypes.CDLL(library_files.get_library_path())
    samples = bytearray()

    def collect(wave: Any, count: int, _events: Any) -> int:
        if wave and count > 0:
            samples.extend(ctypes.string_at(wave, count * 2))
        return 0

    callback = _Callback(collect)
    data_path = library_files.get_data_path().encode()
    rate: int = library.espeak_Initialize(_SYNCHRONOUS, 0, data_path, _DO_NOT_EXIT)
    if rate <= 0:
        raise RuntimeError("eSpeak NG does not start")
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise Refused("voice")
    library.espeak_SetParameter(_RATE, _WORDS_PER_MINUTE, 0)
    raw = _CONTROL.sub(" ", text).encode("utf-8", "replace") + b"\0"
    library.espeak_Synth(raw, ctypes.c_size_t(len(raw)), 0, 1, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    if not any(samples):
        raise Refused("text")
    return rate, bytes(samples)


def encode_mp3(rate: int, samples: bytes) -> bytes:
    import av  # noqa: PLC0415  # the longest import comes after the checks

    output = io.BytesIO()
    with av.open(output, "w", format="mp3") as container:
        stream = container.add_stream("libmp3lame", rate, _ENCODER, layout="mono")
        stream.bit_rate = _BIT_RATE
        frame = av.AudioFrame("s16", "mono", len(samples) // 2)
        frame.sample_rate = rate
        # The plane is longer than the samples.
        plane = frame.planes[0]
        plane.update(samples.ljust(plane.buffer_size, b"\0"))
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return output.getvalue()


def respond(text: str, voice: str) -> bytes:
    try:
        return b"ok\n" + encode_mp3(*synthesize(text, voice))
    except Refused as problem:
        return f"!{problem}\n".encode()


def main() -> None:
    sys.stdout.buffer.write(respond(sys.stdin.buffer.read().decode(), sys.argv[1]))


if __name__ == "__main__":
    main()
