"""Transcriptions of the embedded recogniser, with a stock OpenAI client."""

from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from app.services import Services
from tests.assertions import refused, wait_until
from tests.conversations.embed.factories import create_embed_key
from tests.conversations.openai.completions import with_key
from tests.conversations.speech.calls import Voice, is_removed, needs_recogniser
from tests.conversations.speech.recordings import count_word_errors, tone
from tests.scripted_agents import Talker
from tests.world import Client

PATH = "/v1/audio/transcriptions"
MODEL = "local/moonshine"
SENTENCE = "He drinks a cup of coffee every morning before he goes to work."

pytestmark = pytest.mark.usefixtures("speech_worker")


async def _send(client: Client, content: bytes = b"", **fields: Any) -> httpx.Response:
    files = {"file": ("recording.txt", content or tone(volume=0.0), "text/plain")}
    data = {"model": MODEL} | fields
    return await client.http.post(PATH, files=files, data=data, timeout=60)


@needs_recogniser
async def test_what_is_spoken_is_transcribed_in_every_form(
    client: AsyncOpenAI, talk: Talker, services: Services
) -> None:
    speech = await client.audio.speech.create(model="local/espeak", input=SENTENCE, voice="en-us")
    file = ("speech.mp3", speech.content)
    answer = await client.audio.transcriptions.create(
        model=MODEL, file=file, language="en", temperature=0
    )
    wrong, words = count_word_errors(SENTENCE, answer.text)
    assert wrong / words <= 0.25, answer.text
    assert answer.usage is not None
    assert answer.usage.type == "duration"
    assert 2 < answer.usage.seconds < 8
    text = await client.audio.transcriptions.create(
        model="moonshine", file=file, response_format="text"
    )
    assert text == answer.text
    verbose = await client.audio.transcriptions.create(
        model=MODEL, file=file, response_format="verbose_json"
    )
    assert (verbose.text, verbose.language) == (answer.text, "english")
    assert verbose.duration == answer.usage.seconds
    assert verbose.segments is None
    await wait_until(lambda: is_removed(services, Voice(talk)))


async def test_a_silent_recording_has_an_empty_text(client: AsyncOpenAI) -> None:
    file = ("silence.wav", tone(volume=0.0))
    answer = await client.audio.transcriptions.create(model=MODEL, file=file, prompt="")
    assert answer.text == ""
    text = await client.audio.transcriptions.create(model=MODEL, file=file, response_format="text")
    assert text == ""


async def test_wrong_fields_are_refused(talk: Talker) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"language": "de"}, "language"),
        ({"prompt": "Parley"}, "prompt"),
        ({"temperature": "0.2"}, "temperature"),
        ({"temperature": "2"}, "temperature"),
        ({"temperature": "warm"}, "temperature"),
        ({"response_format": "srt"}, "response_format"),
        ({"response_format": "vtt"}, "response_format"),
        ({"stream": "true"}, "stream"),
        ({"include[]": "logprobs"}, "include"),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities"),
        (
            {"response_format": "verbose_json", "timestamp_granularities[]": ["word", "segment"]},
            "timestamp_granularities",
        ),
        (
            {"response_format": "verbose_json", "timestamp_granularities[]": "line"},
            "timestamp_granularities",
        ),
    )
    for fields, field in cases:
        error = refused(await _send(talk.client, **fields), 422, "validation_error")
        assert (list(error["details"]), error["param"]) == ([field], field), fields
    fine = await _send(talk.client, language="en-US", stream="false", chunking_strategy="auto")
    assert fine.status_code == 200, fine.text
    assert fine.json()["text"] == ""


async def test_the_recording_must_be_a_file_that_can_be_read(talk: Talker) -> None:
    error = refused(await _send(talk.client, b"text"), 415, "unsupported_file_type")
    assert error["message"].startswith("file is not")
    assert list(error["details"]) == ["file"]
    missing = await talk.client.http.post(PATH, files={"other": b"x"}, data={"model": MODEL})
    assert refused(missing, 422, "validation_error")["param"] == "file"
    no_model = await talk.client.http.post(PATH, files={"file": tone()})
    assert refused(no_model, 422, "validation_error")["param"] == "model"


async def test_a_model_that_hears_nothing_here_is_not_found(
    client: AsyncOpenAI, talk: Talker, base_client: AsyncOpenAI
) -> None:
    user = await talk.world.user("agent_user", talk.client.tenant_id)
    for caller, name in (
        (client, "local/espeak"),
        (with_key(base_client, user.token), "whisper-1"),
    ):
        with pytest.raises(openai.NotFoundError) as refusal:
            await caller.audio.transcriptions.create(model=name, file=("a.wav", tone()))
        assert refusal.value.code == "model_not_found"
        assert MODEL in refusal.value.message
    with pytest.raises(openai.ConflictError) as conflict:
        await client.audio.transcriptions.create(model="whisper-1", file=("a.wav", tone()))
    assert conflict.value.code == "model_not_configured"
    assert MODEL in conflict.value.message


async def test_only_callers_with_the_permission_transcribe(
    base_client: AsyncOpenAI, talk: Talker, visitor: AsyncOpenAI, anonymous: Client
) -> None:
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    silence = ("a.wav", tone(volume=0.0))
    for client in (with_key(base_client, viewer.token), visitor):
        with pytest.raises(openai.PermissionDeniedError):
            await client.audio.transcriptions.create(model=MODEL, file=silence)
    refused(await _send(anonymous), 401, "unauthorized")
    key = await create_embed_key(talk.client, talk.agent_id, "With voice", allow_voice=True)
    client = with_key(base_client, key["api_key"])
    assert (await client.audio.transcriptions.create(model=MODEL, file=silence)).text == ""
