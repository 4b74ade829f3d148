"""Speech of the embedded voice, with a stock OpenAI client."""

import io
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from app.services import Services
from tests.assertions import refused, wait_until
from tests.conversations.embed.factories import create_embed_key
from tests.conversations.embed.sites import ORIGIN
from tests.conversations.openai.completions import with_key
from tests.conversations.speech.calls import Voice, is_removed
from tests.scripted_agents import Talker
from tests.world import Client

PATH = "/v1/audio/speech"
MODEL = "local/espeak"
BODY = {"model": MODEL, "input": "Good morning.", "voice": "en-us"}
# The containers and codecs of the formats.
FORMATS: dict[Any, tuple[str, str, str]] = {
    "mp3": ("audio/mpeg", "mp3", "mp3float"),
    "opus": ("audio/ogg", "ogg", "opus"),
    "aac": ("audio/aac", "aac", "aac"),
    "flac": ("audio/flac", "flac", "flac"),
    "wav": ("audio/wav", "wav", "pcm_s16le"),
}

pytestmark = pytest.mark.usefixtures("speech_worker")


def _inspect(content: bytes) -> tuple[str, str, float]:
    """Returns the container, the codec and the seconds."""
    import av  # noqa: PLC0415  # every test process imports this file

    with av.open(io.BytesIO(content), "r") as file:
        stream = file.streams.audio[0]
        seconds = sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))
        return file.format.name, stream.codec_context.name, seconds


async def test_a_text_is_spoken_in_every_format(
    client: AsyncOpenAI, talk: Talker, services: Services, subtests: pytest.Subtests
) -> None:
    text, seconds = "Good morning, everybody.", 0.0
    for audio_format, (media_type, container, codec) in FORMATS.items():
        with subtests.test(format=audio_format):
            answer = await client.audio.speech.create(
                model=MODEL, input=text, voice="en-us", response_format=audio_format
            )
            assert answer.response.headers["content-type"] == media_type
            *kind, length = _inspect(answer.content)
            assert kind == [container, codec]
            seconds = seconds or length
            assert length == pytest.approx(seconds, abs=0.2)
    samples = await client.audio.speech.create(
        model=MODEL, input=text, voice="en-us", response_format="pcm"
    )
    assert len(samples.content) / 48_000 == pytest.approx(seconds, abs=0.2)
    await wait_until(lambda: is_removed(services, Voice(talk)))


async def test_the_speech_can_be_streamed_to_a_file(client: AsyncOpenAI) -> None:
    request = client.audio.speech.with_streaming_response.create(
        model="espeak", input="Good morning.", voice="de", stream_format="audio"
    )
    async with request as response:
        content = b"".join([chunk async for chunk in response.iter_bytes()])
    assert _inspect(content)[0] == "mp3"


async def test_the_speed_is_that_of_the_request(client: AsyncOpenAI) -> None:
    lengths = [
        _inspect(
            (
                await client.audio.speech.create(
                    model=MODEL, input="Good morning. " * 5, voice="en-us", speed=speed
                )
            ).content
        )[2]
        for speed in (0.55, 1.0, 3.0)
    ]
    assert lengths[0] > 1.5 * lengths[1] > 3 * lengths[2]


async def test_wrong_bodies_are_refused(talk: Talker) -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"input": ""}, "input"),
        ({"input": " \n"}, "input"),
        ({"input": "..."}, "input"),
        ({"input": "a" * 5001}, "input"),
        ({"input": None}, "input"),
        ({"voice": "alloy"}, "voice"),
        ({"voice": {"id": "voice_1"}}, "voice"),
        ({"response_format": "ogg"}, "response_format"),
        ({"speed": 0.5}, "speed"),
        ({"speed": 4}, "speed"),
        ({"speed": 5}, "speed"),
        ({"instructions": "Speak like a pirate."}, "instructions"),
        ({"stream_format": "sse"}, "stream_format"),
    )
    for change, field in cases:
        error = refused(await talk.client.post(PATH, BODY | change), 422, "validation_error")
        assert list(error["details"]) == [field], change
        assert (error["param"], error["type"]) == (field, "invalid_request_error")
        assert error["message"].startswith(f"{field}:")
    answer = await talk.client.post(PATH, BODY | {"instructions": "", "extra": 1})
    assert answer.status_code == 200, answer.text


async def test_a_model_that_does_not_speak_here_is_not_found(
    client: AsyncOpenAI, talk: Talker, base_client: AsyncOpenAI
) -> None:
    user = await talk.world.user("agent_user", talk.client.tenant_id)
    for caller, name in (
        (client, "local/moonshine"),
        (client, "local/piper"),
        (with_key(base_client, user.token), "openai/tts-1"),
        (with_key(base_client, user.token), "tts-1"),
    ):
        with pytest.raises(openai.NotFoundError) as refusal:
            await caller.audio.speech.create(model=name, input="Hello", voice="en-us")
        assert refusal.value.code == "model_not_found"
        assert MODEL in refusal.value.message


async def test_a_provider_without_a_key_is_named_with_a_model_that_needs_none(
    client: AsyncOpenAI,
) -> None:
    for name in ("openai/tts-1", "tts-1"):
        with pytest.raises(openai.ConflictError) as refusal:
            await client.audio.speech.create(model=name, input="Hello", voice="alloy")
        assert refusal.value.code == "model_not_configured"
        assert MODEL in refusal.value.message
        assert refusal.value.response.headers["x-should-retry"] == "false"


async def test_only_callers_with_the_permission_speak(
    base_client: AsyncOpenAI, talk: Talker, anonymous: Client
) -> None:
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    with pytest.raises(openai.PermissionDeniedError):
        await with_key(base_client, viewer.token).audio.speech.create(**BODY)
    user = await talk.world.user("agent_user", talk.client.tenant_id)
    assert (await with_key(base_client, user.token).audio.speech.create(**BODY)).content
    refused(await anonymous.post(PATH, BODY), 401, "unauthorized")


async def test_an_embed_key_speaks_where_it_allows_voice(
    base_client: AsyncOpenAI, talk: Talker, visitor: AsyncOpenAI
) -> None:
    with pytest.raises(openai.PermissionDeniedError) as refusal:
        await visitor.audio.speech.create(**BODY)
    assert refusal.value.code == "voice_not_allowed"
    fields = {"allow_voice": True, "max_messages_per_day": 1, "allowed_domains": [ORIGIN]}
    key = await create_embed_key(talk.client, talk.agent_id, "With voice", **fields)
    client = with_key(base_client, key["api_key"], origin=ORIGIN)
    answer = await client.audio.speech.create(**BODY)
    assert answer.response.headers["access-control-allow-origin"] == ORIGIN
    with pytest.raises(openai.RateLimitError) as limit:
        await client.audio.speech.create(**BODY)
    assert limit.value.code == "daily_limit_reached"
    await talk.client.put(talk.path, {"status": "draft"})
    with pytest.raises(openai.NotFoundError):
        await client.audio.speech.create(**BODY)


async def test_a_page_may_ask_before_it_sends_its_key(anonymous: Client) -> None:
    for path in (PATH, "/v1/audio/transcriptions"):
        headers = {"origin": ORIGIN, "access-control-request-method": "POST"}
        answer = await anonymous("OPTIONS", path, headers=headers)
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_a_repeated_request_gets_the_same_file_again(talk: Talker) -> None:
    headers = {"idempotency-key": "speak-1"}
    first, second = [await talk.client.post(PATH, BODY, headers=headers) for _ in range(2)]
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"
