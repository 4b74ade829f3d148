"""Script that converts an MP3 file to another format; `conversion.py` runs it with limits.

It imports nothing of Parley. It reads the file from standard input. Its arguments are the format,
or `mp3` to measure the file only, and the most bytes of the result. It writes one line, the seconds
of the speech or `!` and an error code, and then the converted file.
"""

import io
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

# PyAV imports its last two modules at their first use.
import av
import av.subtitles.codeccontext
import av.subtitles.stream

_OPTIONS = {
    "format_whitelist": "mp3",
    "codec_whitelist": "mp3,mp3float",
    "protocol_whitelist": "pipe",
}
_MAX_SECONDS = 3600
_BIT_RATE = 64_000


class Format(NamedTuple):
    container: str
    codec: str
    samples: str
    # None keeps the rate of the speech.
    rate: int | None = None
    is_compressed: bool = False


_FORMATS = {
    "opus": Format("ogg", "libopus", "s16", 48_000, is_compressed=True),
    "aac": Format("adts", "aac", "fltp", is_compressed=True),
    "flac": Format("flac", "flac", "s16"),
    "wav": Format("wav", "pcm_s16le", "s16"),
    "pcm": Format("s16le", "pcm_s16le", "s16", 24_000),
}


class Refused(Exception):
    """The argument is an error code: `damaged` or `length`."""


class Encoder:
    """Encodes frames of any rate and layout as one mono track."""

    def __init__(self, kind: Format, rate: int, max_bytes: int) -> None:
        self._output = io.BytesIO()
        self._rate = kind.rate or rate
        self._samples = kind.samples
        self._max_bytes = max_bytes
        self._container: Any = av.open(self._output, "w", format=kind.container)
        stream: Any = self._container.add_stream(kind.codec, self._rate, layout="mono")
        stream.codec_context.thread_count = 1
        if kind.is_compressed:
            stream.bit_rate = _BIT_RATE
        self._stream = stream
        self._format: object = None
        self._resampler: Any = None

    def add(self, frame: Any) -> None:
        frame_format = (frame.format.name, frame.layout.name, frame.sample_rate)
        if frame_format != self._format:
            self._resample(None)
            self._format = frame_format
            self._resampler = av.AudioResampler(
                format=self._samples, layout="mono", rate=self._rate
            )
        # Its time may start anew where the format changes.
        frame.pts = None
        self._resample(frame)

    def finish(self) -> bytes:
        self._resample(None)
        self._write(None)
        self._container.close()
        return self._output.getvalue()

    def _resample(self, frame: Any) -> None:
        if self._resampler is not None:
            for piece in self._resampler.resample(frame):
                piece.pts = None
                self._write(piece)

    def _write(self, frame: Any) -> None:
        self._container.mux(self._stream.encode(frame))
        if self._output.tell() > self._max_bytes:
            raise Refused("length")


def convert(content: bytes, kind: Format | None, max_bytes: int) -> tuple[float, bytes]:
    """Returns the seconds of the speech, and the converted file; nothing without a format."""
    seconds = 0.0
    encoder: Encoder | None = None
    with av.open(io.BytesIO(content), "r", options=_OPTIONS) as container:
        for frame in _read_frames(container):
            seconds += frame.samples / frame.sample_rate
            if seconds > _MAX_SECONDS:
                raise Refused("length")
            if kind is not None:
                encoder = encoder or Encoder(kind, frame.sample_rate, max_bytes)
                encoder.add(frame)
    return seconds, encoder.finish() if encoder is not None else b""


def _read_frames(container: Any) -> Iterator[Any]:
    """Skips damaged packets, such as the tags between joined files. Refuses a file with more of
    them than of sound ones.
    """
    stream = container.streams.audio[0]
    stream.codec_context.thread_count = 1
    sound = damaged = 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            damaged += 1
            continue
        sound += len(frames)
        yield from frames
    if not sound or damaged > sound:
        raise Refused("damaged")


def respond(content: bytes, kind: Format | None, max_bytes: int) -> bytes:
    try:
        seconds, converted = convert(content, kind, max_bytes)
    except Refused as problem:
        return f"!{problem}\n".encode()
    except (av.FFmpegError, ValueError, IndexError):
        return b"!damaged\n"
    return f"{seconds:.3f}\n".encode() + converted


def main() -> None:
    content = sys.stdin.buffer.read()
    sys.stdout.buffer.write(respond(content, _FORMATS.get(sys.argv[1]), int(sys.argv[2])))
