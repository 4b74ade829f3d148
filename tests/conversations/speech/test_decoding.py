"""Which recordings are decoded, and what of them."""

import random
from types import ModuleType
from typing import Any

import pytest

from app.domain.conversations.speech import audio
from app.domain.conversations.speech.errors import RecordingTooLarge
from app.kit.errors import UnsupportedFileType
from tests.conversations.speech.recordings import film, tone, with_cover
from tests.lengths import IS_LONG, rounds

RATE = 16_000
_NOISE = random.Random(1).randbytes(50_000)


@pytest.fixture
def child() -> ModuleType:
    """The script of the child process, which imports PyAV and NumPy."""
    from app.domain.conversations.speech import audio_child  # noqa: PLC0415  # every test process imports this

    return audio_child


@pytest.fixture
def np() -> Any:
    import numpy  # noqa: ICN001, PLC0415  # every test process imports this file

    return numpy


def _measure(np: Any, samples: Any) -> tuple[float, float]:
    """Returns the seconds and the frequency of samples."""
    spectrum = np.abs(np.fft.rfft(samples))
    return len(samples) / RATE, spectrum.argmax() * RATE / len(samples)


async def test_recordings_of_all_kinds_sound_as_before(
    child: ModuleType, np: Any, subtests: pytest.Subtests
) -> None:
    """One of each container in a process without rights, where a decoder that loads a part of its
    own would fail; all of them in long runs.
    """
    for name, media_type, is_isolated, content in (
        ("WAV, 8 bits", "audio/wav", False, tone(bits=8, rate=8_000)),
        ("WAV, 16 bits", "audio/wav", True, tone()),
        ("WAV, stereo, 44.1 kHz", "audio/wav", False, tone(channels=2, rate=44_100)),
        ("MP3", "audio/mpeg", False, tone("mp3", rate=44_100)),
        ("MP3 with a cover", "audio/mpeg", True, with_cover(tone("mp3", rate=44_100))),
        ("WebM with Opus", "audio/webm", False, tone("webm", rate=48_000)),
        ("WebM with a picture", "audio/webm", True, film(with_sound=True)),
    ):
        with subtests.test(name):
            if is_isolated or IS_LONG:
                recording = await audio.decode(content)
                kind = recording.media_type
                samples = np.frombuffer(b"".join(recording.pieces), np.float32)
            else:
                kind, samples = child.decode(content, 600)
            seconds, frequency = _measure(np, samples)
            assert kind == media_type
            assert seconds == pytest.approx(1.0, abs=0.1)
            assert frequency == pytest.approx(440, abs=5)


def test_an_mp3_whose_format_changes_midway_is_decoded_to_its_end(
    child: ModuleType, np: Any, subtests: pytest.Subtests
) -> None:
    stereo, mono = tone("mp3", rate=44_100, channels=2), tone("mp3", rate=22_050)
    high = tone("mp3", rate=48_000)
    for name, parts in (
        ("rate and channels", [stereo, mono]),
        ("rate", [mono, high]),
        ("several times", [stereo, mono, high, stereo]),
    ):
        with subtests.test(name):
            kind, samples = child.decode(b"".join(parts), 600)
            seconds, frequency = _measure(np, samples)
            assert kind == "audio/mpeg"
            assert seconds == pytest.approx(len(parts), abs=0.1 * len(parts))
            assert frequency == pytest.approx(440, abs=5)


def test_the_limit_is_for_all_formats_of_a_recording_together(child: ModuleType) -> None:
    first, second = tone("mp3", seconds=2, rate=8_000), tone("mp3", seconds=2, rate=16_000)
    for part in (first, second):
        child.decode(part, 2)
    with pytest.raises(child.Refused) as caught:
        child.decode(first + second, 2)
    assert caught.value.code == "file_too_large"


def test_a_recording_with_a_damaged_part_keeps_the_rest(child: ModuleType, np: Any) -> None:
    content = tone("mp3", seconds=3.0, rate=44_100)
    damaged = content[:20_000] + _NOISE[:2_000] + content[22_000:]
    kind, samples = child.decode(damaged, 600)
    seconds, frequency = _measure(np, samples)
    assert kind == "audio/mpeg"
    assert 2.0 < seconds < 3.5
    assert frequency == pytest.approx(440, abs=5)


def test_other_files_are_refused_whatever_they_contain(
    child: ModuleType, subtests: pytest.Subtests
) -> None:
    wav, webm = tone(), tone("webm", rate=48_000)
    for name, content in (
        ("empty", b""),
        ("text", b"This is not a recording. " * 40),
        ("noise", _NOISE),
        ("zeros", bytes(50_000)),
        ("MP4", tone("mp4", rate=44_100)),
        ("Ogg", tone("ogg", rate=48_000)),
        ("Matroska with AAC", tone("matroska", rate=44_100)),
        ("a film without sound", film(with_sound=False)),
        ("the header of a WAV", wav[:44]),
        ("the beginning of a WebM", webm[:100]),
        ("a WebM with nothing intact", webm[:300] + _NOISE),
        ("a WAV with an impossible rate", wav[:24] + b"\x01\0\0\0" + wav[28:]),
        ("a playlist", b"#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"),
        ("a list of files", b"ffconcat version 1.0\nfile '/etc/passwd'\n"),
    ):
        with subtests.test(name):
            assert child.respond(content, 600, 30).startswith(b"!unsupported_file_type ")


async def test_a_file_that_is_refused_names_the_field() -> None:
    with pytest.raises(UnsupportedFileType) as caught:
        await audio.decode(b"This is not a recording.")
    assert set(caught.value.details or {}) == {"audio"}


async def test_recordings_of_the_longest_duration_are_decoded_and_longer_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    longest = rounds(60, 600)
    monkeypatch.setattr(audio, "MAX_SECONDS", longest)
    recording = await audio.decode(tone(seconds=longest, rate=8_000, bits=8))
    lengths = [len(piece) / 4 / RATE for piece in recording.pieces]
    assert sum(lengths) == pytest.approx(longest, abs=1)
    assert max(lengths) <= 30
    with pytest.raises(RecordingTooLarge) as caught:
        await audio.decode(tone(seconds=longest + 2, rate=8_000, bits=8))
    assert caught.value.details == {"max_seconds": longest}


def test_silence_has_no_pieces(child: ModuleType, subtests: pytest.Subtests) -> None:
    for volume, is_quiet in ((0.0, True), (0.0005, True), (0.01, False)):
        with subtests.test(volume=volume):
            assert (child.respond(tone(volume=volume), 600, 30) == b"audio/wav\n") == is_quiet


def test_a_long_recording_is_cut_in_its_pauses(child: ModuleType, np: Any) -> None:
    samples = np.ones(70 * RATE, np.float32)
    pauses = (25, 50)
    for second in pauses:
        samples[second * RATE : (second + 1) * RATE] = 0
    lengths = child.split_at_pauses(samples, 30 * RATE)
    assert sum(lengths) == len(samples)
    assert max(lengths) <= 30 * RATE
    cuts = np.cumsum(lengths)[:-1] / RATE
    for cut, second in zip(cuts, pauses, strict=True):
        assert second <= cut <= second + 1


def test_a_recording_that_never_pauses_is_cut_too(child: ModuleType, np: Any) -> None:
    lengths = child.split_at_pauses(np.ones(100 * RATE, np.float32), 30 * RATE)
    assert sum(lengths) == 100 * RATE
    assert max(lengths) <= 30 * RATE


def test_a_short_sound_is_not_silence(child: ModuleType, np: Any) -> None:
    samples = np.zeros(10 * RATE, np.float32)
    assert child.is_silent(samples)
    samples[: RATE // 10] = 0.1
    assert not child.is_silent(samples)
