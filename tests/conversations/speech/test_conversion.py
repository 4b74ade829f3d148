"""Speech in other formats than MP3."""

import asyncio
import io
from typing import get_args

import pytest

from app.domain.conversations.speech import conversion
from app.domain.conversations.speech.conversion import AudioFormat, convert, measure
from app.kit.errors import Invalid, ProviderError
from tests.conversations.speech.recordings import tone
from tests.model_server import SPEECH

RATE = 24_000


def _samples(wav: bytes) -> int:
    import av  # noqa: PLC0415  # every test process imports this file

    with av.open(io.BytesIO(wav), "r") as file:
        assert file.streams.audio[0].rate == RATE
        return sum(frame.samples for frame in file.decode(audio=0))


async def test_mp3_stays_as_it_is() -> None:
    assert await convert(SPEECH, "mp3") is SPEECH


async def test_speech_is_measured() -> None:
    assert await measure(tone("mp3", seconds=2.0, rate=RATE)) == pytest.approx(2.0, abs=0.1)
    assert await measure(SPEECH) == 0.0


async def test_each_format_has_a_media_type() -> None:
    assert set(conversion.MEDIA_TYPES) == set(get_args(AudioFormat))


async def test_stereo_and_joined_files_become_one_mono_track() -> None:
    """Each part has the padding of its encoder."""
    stereo = tone("mp3", seconds=2.0, rate=RATE, channels=2)
    other = tone("mp3", seconds=1.0, rate=44_100)
    whole, joined = await asyncio.gather(convert(stereo, "wav"), convert(stereo + other, "wav"))
    assert _samples(whole) == pytest.approx(2 * RATE, rel=0.05)
    assert _samples(joined) == pytest.approx(3 * RATE, rel=0.05)


async def test_what_is_no_mp3_file_is_an_error_of_the_provider(
    subtests: pytest.Subtests,
) -> None:
    for name, content in (
        ("nothing", b""),
        ("an MP3 file without sound", SPEECH),
        ("another format", tone("wav")),
        ("a playlist", b"#EXTM3U\nfile:///etc/passwd\n"),
    ):
        with subtests.test(name), pytest.raises(ProviderError):
            await convert(content, "wav")


async def test_speech_that_is_too_large_for_its_format_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversion, "MAX_MB", 1)
    mp3 = tone("mp3", seconds=30.0, rate=RATE)
    with pytest.raises(Invalid, match="ask for mp3") as refusal:
        await convert(mp3, "wav")
    assert set(refusal.value.details or {}) == {"response_format"}
    assert len(await convert(mp3, "opus")) < 1024 * 1024
