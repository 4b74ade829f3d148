"""Texts spoken by the embedded voice are understood by the embedded recogniser."""

import asyncio
from itertools import cycle

import pytest

from app.services import Services
from tests.assertions import wait_until
from tests.conversations.speech.calls import Voice, is_removed, needs_recogniser
from tests.conversations.speech.recordings import SENTENCES, convert, count_word_errors
from tests.lengths import rounds

pytestmark = [needs_recogniser, pytest.mark.timeout(120)]
_CONTAINERS = {"mp3": 22_050, "webm": 48_000, "wav": 44_100}
_MAX_ERROR_RATE = 0.25


async def _repeat(voice: Voice, sentence: str, container: str) -> tuple[int, int]:
    """Returns the number of words that the agent was asked wrongly, and that of all words."""
    mp3 = await voice.speak(sentence)
    reply = await voice.say(convert(mp3, container, _CONTAINERS[container]))
    questions = [request["messages"][-1]["content"] for request in voice.talk.asked]
    assert reply["transcript"] in questions
    return count_word_errors(sentence, reply["transcript"])


async def test_the_agent_is_asked_what_was_said(served_voice: Voice, services: Services) -> None:
    """As MP3, in long runs also as WebM and WAV, with at most a quarter of the words wrong."""
    sentences = SENTENCES[: rounds(1, 10)]
    results = await asyncio.gather(
        *(
            _repeat(served_voice, sentence, container)
            for sentence, container in zip(sentences, cycle(_CONTAINERS), strict=False)
        )
    )
    errors, words = (sum(counts) for counts in zip(*results, strict=True))
    assert errors / words <= _MAX_ERROR_RATE, f"{errors} of {words} words"
    await wait_until(lambda: is_removed(services, served_voice))


@pytest.mark.long
async def test_a_long_recording_is_understood_to_its_end(served_voice: Voice) -> None:
    text = " ".join(SENTENCES)
    reply = await served_voice.say(await served_voice.speak(text))
    wrong, total = count_word_errors(text, reply["transcript"])
    assert wrong / total <= _MAX_ERROR_RATE, reply["transcript"]


def test_the_error_rate_counts_words_to_change_add_and_remove(subtests: pytest.Subtests) -> None:
    for actual, errors in (
        ("One two, three.", 0),
        ("one too three", 1),
        ("one three", 1),
        ("one two two three", 1),
        ("", 3),
        ("four", 3),
    ):
        with subtests.test(actual):
            assert count_word_errors("One two three", actual) == (errors, 3)
