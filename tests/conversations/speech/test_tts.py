"""Texts as speech."""

import io
from pathlib import Path

import msgspec
import pytest

from app.domain.conversations.speech import espeak
from app.domain.conversations.speech.espeak_child import split_text
from app.kit.errors import Invalid
from app.services import Services
from tests.assertions import refused, wait_until
from tests.conversations.speech.calls import Voice, create_archived, is_removed
from tests.lengths import rounds
from tests.model_server import ModelServer
from tests.sandbox.child_scripts import write_script
from tests.scripted_agents import talker
from tests.world import World


def _seconds(mp3: bytes) -> float:
    import av  # noqa: PLC0415  # every test process imports this file

    with av.open(io.BytesIO(mp3), "r", format="mp3") as file:
        return sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))


async def test_a_text_is_spoken_as_mp3_with_the_voice_of_the_request(
    served_voice: Voice, services: Services
) -> None:
    short, long = await served_voice.speak("Hello"), await served_voice.speak("Hello " * 20)
    assert 0.2 < _seconds(short) < 3
    assert _seconds(long) > 3 * _seconds(short)
    assert await served_voice.speak("Hello", voice="de") != short
    await wait_until(lambda: is_removed(services, served_voice))


async def test_texts_are_taken_literally(subtests: pytest.Subtests) -> None:
    """Neither markup nor control characters nor phonemes are commands: all of it is said. As a
    command, the first would take ten minutes, and the others less than a second.
    """
    for text, least, most in (
        ("<speak><break time='600s'/>Hi</speak>", 3, 10),
        ("\x01900S Hi there you are", 1.4, 4),
        ("[[h@'loU]] Hi", 1.4, 4),
    ):
        with subtests.test(text=text):
            assert least < _seconds(await espeak.speak(text, None)) < most


async def test_texts_without_spaces_are_spoken_to_their_end(subtests: pytest.Subtests) -> None:
    """The library by itself crashes on the first and the third, and loses the end of the others."""
    units = ((".a", 100), ("W", 20), ("U.S.A.", 50), ("\N{SNOWMAN}", 25))
    for unit, count in units[: rounds(1, 4)]:
        with subtests.test(unit=unit):
            short = _seconds(await espeak.speak(unit * count, None))
            long = _seconds(await espeak.speak(unit * count * 2, None))
            assert long == pytest.approx(2 * short, rel=0.1)


async def test_a_text_that_crashes_the_voice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code in ("import ctypes; ctypes.string_at(0)", "import os; os.abort()"):
        monkeypatch.setattr(espeak, "_SCRIPT", write_script(tmp_path, code))
        with pytest.raises(Invalid, match="cannot be spoken") as caught:
            await espeak.speak("Hello", None)
        assert set(caught.value.details or {}) == {"text"}


async def test_a_speech_of_more_than_half_an_hour_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short run tries the same script with a limit of 18 seconds."""
    script = espeak._SCRIPT.read_text(encoding="utf-8")
    limit, short = "_MAX_SECONDS = 1800\n", f"_MAX_SECONDS = {rounds(18, 1800)}\n"
    assert limit in script
    path = tmp_path / "espeak_child.py"
    path.write_text(script.replace(limit, short), encoding="utf-8")
    monkeypatch.setattr(espeak, "_SCRIPT", path)
    with pytest.raises(Invalid, match="half an hour"):
        await espeak.speak("1" * rounds(200, 5000), None)


def test_a_text_is_cut_after_sentences_then_clauses_then_words(subtests: pytest.Subtests) -> None:
    sentence, clause, words = "It is late. ", "It is late, ", "It is late "
    for name, text, first in (
        ("short", "It is late.", "It is late."),
        ("sentences", sentence * 9, sentence * 7),
        ("a sentence and clauses", sentence + clause * 9, sentence),
        ("a line and clauses", "Title\n" + clause * 9, "Title\n"),
        ("clauses", clause * 9, clause * 7),
        ("a clause and words", clause + words * 9, clause),
        ("words", words * 10, words * 8 + "It "),
        ("an abbreviation", "Fruit, e.g. " + "apple " * 20, "Fruit, "),
        ("letters", "a" * 200, "a" * 30),
        ("capital letters", "A" * 200, "A" * 15),
        ("symbols", "\N{SNOWMAN}" * 100, "\N{SNOWMAN}" * 5),
        ("Chinese", "\u4f60\u597d\u3002" * 40, "\u4f60\u597d\u3002" * 10),
    ):
        with subtests.test(name):
            chunks = split_text(text)
            assert "".join(chunks) == text
            assert chunks[0] == first


async def test_wrong_bodies_are_refused(served_voice: Voice, services: Services) -> None:
    for body, field in (
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 1}, "text"),
        ({"text": None}, "text"),
        ({"text": "a" * 5001}, "text"),
        ({"text": "..."}, "text"),
        ({"text": "Hello", "voice": ""}, "voice"),
        ({"text": "Hello", "voice": "../en"}, "voice"),
        ({"text": "Hello", "voice": "nonsense"}, "voice"),
    ):
        error = refused(await served_voice.request_speech(body), 422, "validation_error")
        assert set(error["details"]) == {field}, body
    await wait_until(lambda: is_removed(services, served_voice))


async def test_the_agent_must_exist_and_not_be_archived(
    voice: Voice, world: World, models: ModelServer, services: Services
) -> None:
    foreign, archived = await talker(world, models), await create_archived(voice.talk)
    for agent_id, status, code in (
        (foreign.agent_id, 404, "agent_not_found"),
        (archived.agent_id, 409, "agent_archived"),
    ):
        other = Voice(msgspec.structs.replace(voice.talk, agent_id=agent_id))
        refused(await other.request_speech({"text": "Hello"}), status, code)
    assert await is_removed(services, voice)


async def test_a_repeated_request_gets_the_same_file_again(served_voice: Voice) -> None:
    headers = {"idempotency-key": "speak-1"}
    first, second = [
        await served_voice.request_speech({"text": "Hello"}, headers=headers) for _ in range(2)
    ]
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"
    assert second.headers["content-type"] == "audio/mpeg"
