"""Script that speaks a text with eSpeak NG; `espeak.py` runs it with limits.

It imports nothing of Parley. It reads the text from standard input. Its arguments are the name of
the voice and the words per minute. It writes one line, `ok` or `!` and an error code, and then an
MP3 file.

eSpeak NG is a C library with global state, so each text has a process of its own. Its buffers are
small: it loses the end of a long word or clause, or crashes. So it gets the text in short chunks.
"""

import ctypes
import io
import re
import sys
import unicodedata
from importlib import import_module
from typing import Any

# PyAV imports its last two modules at their first use.
import av
import av.subtitles.codeccontext
import av.subtitles.stream

_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_PAUSE_AT_END = 0x1000
_RATE = 1
_BIT_RATE = 64_000
# LAME's quality from 0 to 9: this one takes half the time of the default.
_ENCODER = {"compression_level": "7"}
# Control characters start commands within the text, such as a change of speed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# More than the longest text takes in the language of its voice.
_MAX_SECONDS = 1800

# A letter costs 1; see `_measure_cost`.
_MAX_CHUNK_COST = 100
_MAX_WORD_COST = 30
_CAPITAL_COST = 2
_SYMBOL_COST = 6
# eSpeak NG says a run of one symbol once, such as a line of dashes.
_SYMBOL_RUN = re.compile(r"([!-/:-@\[-`{-~])\1{10,}")
# Where a text is cut, the best first: after a sentence, after a clause, after a word.
_SENTENCE_END = re.compile(r"[.!?…][\"')\]”’»]*\s+(?![a-z])|[。！？]|\n\s*")  # noqa: RUF001  # full width
_CLAUSE_END = re.compile(r"[,;:)]\s+|[，；：、]|\s[-–—]\s")  # noqa: RUF001  # likewise
_WORD_END = re.compile(r"\s+")
_BORDERS = (_SENTENCE_END, _CLAUSE_END, _WORD_END)
# A chunk that ends so is followed by the pause of its punctuation.
_PAUSE = re.compile(r"\w\W{0,4}(?:[^\w\s]|\n)\s*$")

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)
_library: Any = None


class Refused(Exception):
    """The argument is an error code: `voice`, `text` or `length`."""


def load() -> None:
    global _library  # noqa: PLW0603  # one per process; tests import this file without it
    library_files: Any = import_module("espeakng_loader")
    _library = ctypes.CDLL(library_files.get_library_path())


def split_text(text: str) -> list[str]:
    """Returns chunks that eSpeak NG speaks completely; together they are the text."""
    chunks = []
    start = 0
    while start < len(text):
        end = _find_limit(text, start)
        if end < len(text):
            end = _find_border(text, start, end)
        chunks.append(text[start:end])
        start = end
    return chunks


def _find_limit(text: str, start: int) -> int:
    """Returns the end of the longest chunk that is cheap enough, and has no word that is not."""
    chunk_cost = word_cost = 0
    for position in range(start, len(text)):
        cost = _measure_cost(text[position])
        chunk_cost += cost
        word_cost = 0 if text[position].isspace() else word_cost + cost
        if chunk_cost > _MAX_CHUNK_COST or word_cost > _MAX_WORD_COST:
            return position
    return len(text)


def _measure_cost(char: str) -> int:
    """Capital letters may be spelled. Other symbols are said by their names or numbers."""
    if char.isascii() or (char <= "\uffff" and unicodedata.category(char)[0] not in "SC"):
        return _CAPITAL_COST if char.isupper() else 1
    return _SYMBOL_COST


def _find_border(text: str, start: int, limit: int) -> int:
    """Returns the end of the last sentence, clause or word before the limit, else the limit."""
    for border in _BORDERS:
        # A border may look at the next letter.
        matches = border.finditer(text, start, limit + 1)
        ends = [match.end() for match in matches if match.end() <= limit]
        if ends:
            return ends[-1]
    return limit


def synthesize(text: str, voice: str, words_per_minute: int) -> tuple[int, bytes]:
    """Returns the sample rate, and 16-bit samples."""
    # The working directory has the data: dictionaries are read when a text needs them.
    rate: int = _library.espeak_Initialize(_SYNCHRONOUS, 0, b".", _DO_NOT_EXIT)
    if rate <= 0:
        raise RuntimeError("eSpeak NG does not start")
    samples = bytearray()

    def collect(wave: Any, count: int, _events: Any) -> int:
        if wave and count > 0:
            samples.extend(ctypes.string_at(wave, count * 2))
        return 0

    callback = _Callback(collect)
    _library.espeak_SetSynthCallback(callback)
    if _library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise Refused("voice")
    _library.espeak_SetParameter(_RATE, words_per_minute, 0)
    *chunks, last = split_text(_clean(text))
    for chunk in chunks:
        _speak_chunk(chunk, with_pause=_PAUSE.search(chunk) is not None)
        if len(samples) > _MAX_SECONDS * rate * 2:
            raise Refused("length")
    _speak_chunk(last, with_pause=False)
    if not any(samples):
        raise Refused("text")
    return rate, bytes(samples)


def _clean(text: str) -> str:
    return _SYMBOL_RUN.sub(lambda run: run[0][:10], _CONTROL.sub(" ", text))


def _speak_chunk(chunk: str, *, with_pause: bool) -> None:
    raw = chunk.encode("utf-8", "replace") + b"\0"
    flags = _UTF8 | _PAUSE_AT_END if with_pause else _UTF8
    _library.espeak_Synth(raw, ctypes.c_size_t(len(raw)), 0, 1, 0, flags, None, None)
    _library.espeak_Synchronize()


def encode_mp3(rate: int, samples: bytes) -> bytes:
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


def respond(text: str, voice: str, words_per_minute: int) -> bytes:
    try:
        return b"ok\n" + encode_mp3(*synthesize(text, voice, words_per_minute))
    except Refused as problem:
        return f"!{problem}\n".encode()


def main() -> None:
    text = sys.stdin.buffer.read().decode()
    sys.stdout.buffer.write(respond(text, sys.argv[1], int(sys.argv[2])))
