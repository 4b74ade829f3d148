"""Recordings for tests, encoded with PyAV.

The functions import PyAV and NumPy themselves, since every test process imports this file.
"""
# ruff: noqa: PLC0415

import io
from typing import Any

SENTENCES = [
    "The library is open from nine in the morning until eight in the evening.",
    "Please send the report to my manager before the end of the week.",
    "We are looking for a small house with a garden near the city.",
    "The children played football in the park after school yesterday.",
    "I forgot my password and cannot open my account any more.",
    "There is a good restaurant on the other side of the street.",
    "My sister is going to visit our grandmother next month.",
    "The price of the ticket is higher at the weekend.",
    "He drinks a cup of coffee every morning before he goes to work.",
    "You can pay with cash or with a credit card.",
]
_CODECS = {
    "wav": "pcm_s16le",
    "mp3": "libmp3lame",
    "webm": "libopus",
    "matroska": "aac",
    "mp4": "aac",
    "ogg": "libopus",
}


def tone(
    container: str = "wav",
    *,
    seconds: float = 1.0,
    rate: int = 16_000,
    channels: int = 1,
    bits: int = 16,
    volume: float = 0.5,
) -> bytes:
    """Returns a recording of one tone."""
    import numpy as np

    times = np.arange(int(seconds * rate)) / rate
    wave = np.sin(2 * np.pi * 440 * times) * volume
    if bits == 8:
        samples, kind, codec = (wave * 127 + 128).astype(np.uint8), "u8", "pcm_u8"
    else:
        samples, kind, codec = (wave * 32767).astype(np.int16), "s16", _CODECS[container]
    interleaved = np.repeat(samples, channels)[None]
    layout = "mono" if channels == 1 else "stereo"
    return _encode(container, codec, [_build_frame(interleaved, kind, layout, rate)], rate, layout)


def _build_frame(samples: Any, kind: str, layout: str, rate: int) -> Any:
    import av

    frame = av.AudioFrame.from_ndarray(samples, format=kind, layout=layout)
    frame.sample_rate = rate
    return frame


def _encode(container: str, codec: str, frames: list[Any], rate: int, layout: str) -> bytes:
    import av

    output = io.BytesIO()
    with av.open(output, "w", format=container) as file:
        stream: Any = file.add_stream(codec, rate, layout=layout)
        for frame in [*frames, None]:
            file.mux(stream.encode(frame))
    return output.getvalue()


def convert(recording: bytes, container: str, rate: int) -> bytes:
    """Returns the same recording in another container and at another sample rate."""
    import av

    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
    frames = []
    with av.open(io.BytesIO(recording), "r") as file:
        for frame in file.decode(audio=0):
            frames += resampler.resample(frame)
        frames += resampler.resample(None)
    for frame in frames:
        frame.pts = None
    return _encode(container, _CODECS[container], frames, rate, "mono")


def film(*, with_sound: bool) -> bytes:
    """Returns a WebM file with a picture, and with a tone of one second or without sound."""
    import av
    import numpy as np

    output = io.BytesIO()
    samples = (np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000) * 16_000).astype(np.int16)
    with av.open(output, "w", format="webm") as file:
        pictures: Any = file.add_stream("libvpx", 10, options={"deadline": "realtime"})
        pictures.width, pictures.height, pictures.pix_fmt = 64, 64, "yuv420p"
        sound: Any = file.add_stream("libopus", 48_000, layout="mono") if with_sound else None
        picture = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        for item in [picture, None]:
            file.mux(pictures.encode(item))
        if sound is not None:
            for frame in [_build_frame(samples[None], "s16", "mono", 48_000), None]:
                file.mux(sound.encode(frame))
    return output.getvalue()


def with_cover(mp3: bytes) -> bytes:
    """Returns an MP3 file with a tag that has a picture."""
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (64, 64)).save(picture, "PNG")
    frame = b"\x00image/png\x00\x03\x00" + picture.getvalue()
    content = b"APIC" + len(frame).to_bytes(4, "big") + b"\0\0" + frame
    size = bytes((len(content) >> shift) & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x03\0\0" + size + content + mp3


def count_word_errors(expected: str, actual: str) -> tuple[int, int]:
    """Returns the least number of words to change, add or remove, and the number of words."""
    words, heard = _split_words(expected), _split_words(actual)
    row = list(range(len(heard) + 1))
    for position, word in enumerate(words, start=1):
        diagonal, row[0] = row[0], position
        for column, other in enumerate(heard, start=1):
            cost = diagonal + (word != other)
            diagonal = row[column]
            row[column] = min(row[column] + 1, row[column - 1] + 1, cost)
    return row[-1], len(words)


def _split_words(text: str) -> list[str]:
    letters = "".join(char if char.isalnum() or char == "'" else " " for char in text.lower())
    return letters.split()
