"""Script that decodes one audio file; `app.domain.conversations.speech.audio` runs it with limits.

It imports nothing of Parley. It reads the file from standard input. Its arguments are the longest
duration and the longest piece, in seconds. It writes one line, and then the samples: 32-bit floats,
16 kHz, mono. The line has the media type and the number of samples of each piece, or `!`, an error
code and an error. A silent file has no pieces.
"""

import io
import os
import sys
from typing import Any

# NumPy would start a thread per processor.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# PyAV imports its last two modules at their first use.
import av
import av.subtitles.codeccontext
import av.subtitles.stream
import numpy as np

Samples = np.ndarray[tuple[int], np.dtype[np.float32]]
RATE = 16_000
_MEDIA_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg", "matroska,webm": "audio/webm"}
# Other decoders are never run.
_CODECS = (
    "pcm_u8,pcm_s16le,pcm_s24le,pcm_s32le,pcm_f32le,pcm_f64le,pcm_alaw,pcm_mulaw,"
    "mp3,mp3float,opus,libopus,vorbis,libvorbis"
)
# Other demuxers are never tried. Some would read files or addresses that a playlist names.
_OPTIONS = {
    "format_whitelist": "wav,mp3,matroska,webm",
    # Only for the detection of the format; `_check_codec` is for the decoding.
    "codec_whitelist": _CODECS,
    "protocol_whitelist": "pipe",
}
_MIN_RATE, _MAX_RATE = 4_000, 192_000
_MAX_CHANNELS = 8
# Encoders add some padding.
_PADDING_SECONDS = 1
# Where a long recording may be cut: the quietest moment within the last seconds of a piece.
_PAUSE_SECONDS = 10
_WINDOW = RATE // 5
# The mean level of the loudest moment of silence. Recognisers make up words for silence.
_SILENCE = 0.001


class Refused(Exception):
    def __init__(self, message: str, code: str = "unsupported_file_type") -> None:
        super().__init__(message)
        self.code = code


def decode(content: bytes, max_seconds: int) -> tuple[str, Samples]:
    """Returns the media type and the samples."""
    try:
        container = av.open(io.BytesIO(content), options=_OPTIONS)
    except av.FFmpegError:
        raise Refused("is not a WAV, MP3 or WebM recording") from None
    with container:
        media_type = _MEDIA_TYPES.get(container.format.name)
        if media_type is None:
            raise Refused("is not a WAV, MP3 or WebM recording")
        stream = container.streams.best("audio")
        if stream is None:
            raise Refused("has no sound track")
        return media_type, _read_samples(container, stream, max_seconds)


def _read_samples(container: Any, stream: Any, max_seconds: int) -> Samples:
    """Skips damaged packets. Refuses a file with more damaged packets than sound ones."""
    _check_codec(stream.codec_context)
    stream.codec_context.thread_count = 1
    converter = Converter()
    sound = damaged = 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            damaged += 1
            continue
        for frame in frames:
            sound += 1
            converter.add(frame)
        if converter.length > (max_seconds + _PADDING_SECONDS) * RATE:
            raise Refused(f"is longer than {max_seconds // 60} minutes", "file_too_large")
    if not sound or damaged > sound:
        raise Refused("is a damaged recording")
    return converter.finish()


def _check_codec(context: Any) -> None:
    if context.name not in _CODECS.split(","):
        raise Refused(f"has sound of the kind {context.name}; send WAV, MP3 or WebM")
    _check_format(context.sample_rate, context.layout.nb_channels)


def _check_format(sample_rate: int, channels: int) -> None:
    if not _MIN_RATE <= sample_rate <= _MAX_RATE:
        raise Refused(f"has a sample rate of {sample_rate} Hz")
    if not 1 <= channels <= _MAX_CHANNELS:
        raise Refused(f"has {channels} channels")


class Converter:
    """Converts frames to samples. The format may change midway: some MP3 files are several joined
    ones.
    """

    def __init__(self) -> None:
        self.length = 0
        self._parts: list[Samples] = []
        self._format: object = None
        self._resampler: Any = None

    def add(self, frame: Any) -> None:
        frame_format = (frame.format.name, frame.layout.name, frame.sample_rate)
        if frame_format != self._format:
            self._flush()
            _check_format(frame.sample_rate, frame.layout.nb_channels)
            self._format = frame_format
            self._resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
        self._resample(frame)

    def finish(self) -> Samples:
        self._flush()
        return np.concatenate(self._parts)

    def _flush(self) -> None:
        if self._resampler is not None:
            self._resample(None)

    def _resample(self, frame: Any) -> None:
        for piece in self._resampler.resample(frame):
            samples = piece.to_ndarray()[0]
            self._parts.append(samples)
            self.length += len(samples)


def split_at_pauses(samples: Samples, max_length: int) -> list[int]:
    """Returns the lengths of pieces of at most `max_length` samples, cut where it is quiet."""
    lengths = []
    start, search = 0, min(_PAUSE_SECONDS * RATE, max_length // 2)
    while len(samples) - start > max_length:
        end = start + max_length
        quietest = int(_measure_levels(samples[end - search : end]).argmin())
        cut = end - search + quietest * _WINDOW + _WINDOW // 2
        lengths.append(cut - start)
        start = cut
    return [*lengths, len(samples) - start]


def is_silent(samples: Samples) -> bool:
    return not (_measure_levels(samples) > _SILENCE).any()


def _measure_levels(samples: Samples) -> Samples:
    """Returns the mean level of each fifth of a second; the end is filled up with silence."""
    padded = np.pad(np.abs(samples), (0, -len(samples) % _WINDOW))
    levels: Samples = padded.reshape(-1, _WINDOW).mean(axis=1)
    return levels


def respond(content: bytes, max_seconds: int, piece_seconds: int) -> bytes:
    try:
        media_type, samples = decode(content, max_seconds)
        if is_silent(samples):
            return f"{media_type}\n".encode()
        lengths = split_at_pauses(samples, piece_seconds * RATE)
    except Refused as problem:
        return f"!{problem.code} {problem}\n".encode()
    except MemoryError:
        return b"!unsupported_file_type takes too much memory to read\n"
    except Exception:  # noqa: BLE001  # a decoder's error means a bad file
        return b"!unsupported_file_type is a damaged recording\n"
    return f"{media_type} {' '.join(map(str, lengths))}\n".encode() + samples.tobytes()


def main() -> None:
    content = sys.stdin.buffer.read()
    sys.stdout.buffer.write(respond(content, int(sys.argv[1]), int(sys.argv[2])))
