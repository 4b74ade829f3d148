"""Transcription and speech of the OpenAI adapter."""

import json

import pytest

from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.openai_adapter import OpenAIAdapter
from app.domain.agents.llm.protocol import (
    SpeechOptions,
    Transcription,
    TranscriptionOptions,
    UsedTokens,
)
from tests.agents.llm.answers import KEY, STATUS_REASONS
from tests.agents.llm.openai_provider import JSON, MIB, make_target, serve_endlessly, serve_packets
from tests.model_server import SPEECH, ModelServer, Reply

AUDIO = b"RIFF\r\n--not a boundary\r\n\x00\xff"


async def _transcribe(adapter: OpenAIAdapter, url: str) -> Transcription:
    return await adapter.transcribe(make_target(url), AUDIO, "audio/wav", TranscriptionOptions())


async def test_a_recording_is_sent_as_a_file_and_its_text_comes_back(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for media_type, name in (
        ("audio/wav", "audio.wav"),
        ("audio/mpeg", "audio.mp3"),
        ("audio/webm", "audio.webm"),
    ):
        with subtests.test(media_type):
            model = f"ear-of-{name}"
            models.script(model, Reply(texts=["Good ", "morning."]))
            target = make_target(models.url, f"scripted/{model}")
            answer = await adapter.transcribe(target, AUDIO, media_type, TranscriptionOptions())
            assert answer == Transcription("Good morning.")
            (request,) = models.asked(model)
            assert request["file"] == (name, media_type, AUDIO)
            assert request["response_format"] == "json"
            assert models.headers[-1]["Authorization"] == f"Bearer {KEY}"


async def test_a_text_is_spoken_as_mp3_with_the_chosen_voice(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for voice, sent_voice in ((None, "alloy"), ("nova", "nova")):
        with subtests.test(voice):
            model = f"voice-{voice}"
            target = make_target(models.url, f"scripted/{model}")
            assert await adapter.speak(target, "Good morning.", voice, SpeechOptions()) == SPEECH
            (request,) = models.asked(model)
            expected = {"input": "Good morning.", "voice": sent_voice, "response_format": "mp3"}
            assert request == {"model": model, **expected}


async def test_parameters_are_passed_on(adapter: OpenAIAdapter, models: ModelServer) -> None:
    target = make_target(models.url, "scripted/with-parameters")
    await adapter.speak(target, "Hi", None, SpeechOptions(speed=2.0, instructions="Whisper."))
    options = TranscriptionOptions(
        language="de",
        prompt="Parley\r\n",
        temperature=0.5,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    await adapter.transcribe(target, AUDIO, "audio/wav", options)
    spoken, heard = models.asked("with-parameters")
    assert (spoken["speed"], spoken["instructions"]) == (2.0, "Whisper.")
    assert (heard["language"], heard["prompt"], heard["temperature"]) == ("de", "Parley\r\n", "0.5")
    assert heard["response_format"] == "verbose_json"
    # The last of both.
    assert heard["timestamp_granularities[]"] == "segment"
    assert heard["file"][2] == AUDIO


async def test_a_verbose_transcript_comes_with_what_can_be_read(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    words = [{"word": "a", "start": 0, "end": 0.5}]
    cases: list[tuple[dict[str, object], tuple[object, ...]]] = [
        ({"language": "german", "duration": 2, "words": words}, ("german", 2.0, None, words)),
        ({"duration": "2.5", "segments": words}, (None, 2.5, words, None)),
        ({"language": 1, "duration": "long", "words": [1]}, (None, None, None, None)),
        ({"duration": 2, "usage": {"seconds": 3}}, (None, 3.0, None, None)),
    ]
    for fields, expected in cases:
        with subtests.test(fields=fields):
            async with serve_packets(JSON, json.dumps({"text": "a"} | fields).encode()) as url:
                answer = await _transcribe(adapter, url)
            assert (answer.language, answer.seconds, answer.segments, answer.words) == expected


async def test_a_transcript_without_text_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    bodies: list[object] = [{}, {"text": None}, {"text": ["a"]}, []]
    for body in bodies:
        with subtests.test(body=body):
            async with serve_packets(JSON, json.dumps(body).encode()) as url:
                with pytest.raises(ModelFailed) as caught:
                    await _transcribe(adapter, url)
            assert caught.value.reason == "broken"


async def test_a_transcript_has_no_nul_characters(adapter: OpenAIAdapter) -> None:
    async with serve_packets(JSON, json.dumps({"text": "a\0b"}).encode()) as url:
        assert (await _transcribe(adapter, url)).text == "ab"


async def test_a_transcript_comes_with_tokens_or_seconds_or_without_figures(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[object, tuple[UsedTokens | None, float | None]]] = [
        ({"type": "tokens", "input_tokens": 14, "output_tokens": 3}, (UsedTokens(14, 3), None)),
        ({"type": "duration", "seconds": 9}, (None, 9.0)),
        ({"type": "duration", "seconds": -1}, (None, 0.0)),
        ({"input_tokens": "many"}, (None, None)),
        ("none", (None, None)),
        (None, (None, None)),
    ]
    for usage, expected in cases:
        with subtests.test(usage=usage):
            body = json.dumps({"text": "a", "usage": usage}).encode()
            async with serve_packets(JSON, body) as url:
                answer = await _transcribe(adapter, url)
            assert (answer.used, answer.seconds) == expected


async def test_speech_that_is_not_mp3_is_broken(
    adapter: OpenAIAdapter, subtests: pytest.Subtests
) -> None:
    for body in (b"", b"\xff", b"RIFF0000WAVE", b'{"error": "none"}'):
        with subtests.test(body=body):
            async with serve_packets(JSON, body) as url:
                with pytest.raises(ModelFailed) as caught:
                    await adapter.speak(make_target(url), "Hello", None, SpeechOptions())
            assert caught.value.reason == "broken"


async def test_a_refusal_has_its_reason_and_not_the_key(
    adapter: OpenAIAdapter, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for status, reason, _ours in STATUS_REASONS:
        with subtests.test(status=status):
            models.script("refusing", Reply(status=status, message=f"no: {KEY}"))
            target = make_target(models.url, "scripted/refusing")
            for call in (
                adapter.transcribe(target, AUDIO, "audio/wav", TranscriptionOptions()),
                adapter.speak(target, "Hello", None, SpeechOptions()),
            ):
                with pytest.raises(ModelFailed) as caught:
                    await call
                assert caught.value.reason == reason
                assert "***" in caught.value.message
                assert KEY not in caught.value.message


async def test_an_endless_answer_is_cut_off(adapter: OpenAIAdapter) -> None:
    async with serve_endlessly(JSON, b"\xff\xfb" * 32_768) as (url, sent_bytes):
        for call in (
            adapter.transcribe(make_target(url), AUDIO, "audio/wav", TranscriptionOptions()),
            adapter.speak(make_target(url), "Hello", None, SpeechOptions()),
        ):
            sent_bytes[0] = 0
            with pytest.raises(ModelFailed, match="too long"):
                await call
            assert sent_bytes[0] < 60 * MIB
