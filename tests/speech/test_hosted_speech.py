"""Speech of a provider, with the tenant's key."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from litestar import Litestar

from app.main import create_app
from app.services import Services
from tests.asking import refused, wait_until
from tests.model_server import SPEECH, ModelServer, Reply
from tests.speech.calls import Voice, is_removed
from tests.speech.recordings import tone
from tests.stores import Stores
from tests.talk import give_key, talker
from tests.world import World
from workers.main import WorkerProcess

EAR, MOUTH = "ear-1", "mouth-1"


@pytest.fixture(scope="module")
async def hosted_world(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    """A web process whose speech models are those of the scripted provider `hearing`."""
    settings = msgspec.structs.replace(
        stores.settings, transcription_model=f"hearing/{EAR}", speech_model=f"hearing/{MOUTH}"
    )
    world = World(create_app(settings))
    yield world
    await world.services.close()


@pytest.fixture
async def voice_without_key(
    hosted_world: World, models: ModelServer, speech_worker: WorkerProcess
) -> Voice:
    return Voice(await talker(hosted_world, models))


@pytest.fixture
async def hosted_voice(voice_without_key: Voice, models: ModelServer) -> Voice:
    await give_key(voice_without_key.talk.client, models, "hearing")
    return voice_without_key


async def test_the_provider_receives_the_recording_as_it_was_sent(
    hosted_voice: Voice, models: ModelServer, services: Services
) -> None:
    recording = tone("webm", rate=48_000)
    models.script(EAR, Reply(texts=["What time is it?"]))
    reply = await hosted_voice.say(recording)
    assert reply["transcript"] == "What time is it?"
    assert models.asked(EAR)[-1]["file"] == ("audio.webm", "audio/webm", recording)
    assert hosted_voice.talk.asked[-1]["messages"][-1]["content"] == "What time is it?"
    await wait_until(lambda: is_removed(services, hosted_voice))


async def test_the_provider_speaks_the_text(
    hosted_voice: Voice, models: ModelServer, services: Services
) -> None:
    assert await hosted_voice.speak("Hello", voice="nova") == SPEECH
    request = models.asked(MOUTH)[-1]
    assert (request["input"], request["voice"]) == ("Hello", "nova")
    await wait_until(lambda: is_removed(services, hosted_voice))


async def test_an_unreadable_recording_is_not_sent_to_the_provider(
    hosted_voice: Voice, models: ModelServer
) -> None:
    count = len(models.asked(EAR))
    refused(await hosted_voice.send(b"text"), 415, "unsupported_file_type")
    refused(await hosted_voice.send(tone(volume=0.0)), 422, "validation_error")
    assert len(models.asked(EAR)) == count


async def test_a_blank_transcript_is_no_speech(hosted_voice: Voice, models: ModelServer) -> None:
    models.script(EAR, Reply(texts=[" "]))
    refused(await hosted_voice.send(tone()), 422, "validation_error")


async def test_without_a_key_nothing_is_stored(
    voice_without_key: Voice, services: Services
) -> None:
    refused(await voice_without_key.send(tone()), 409, "model_not_configured")
    refused(await voice_without_key.request_speech({"text": "Hello"}), 409, "model_not_configured")
    assert await is_removed(services, voice_without_key)


async def test_a_failure_of_the_provider_is_reported_without_the_key(
    hosted_voice: Voice, models: ModelServer, services: Services
) -> None:
    failure = Reply(status=401, message="bad key sk-scripted-0123456789")
    models.script(EAR, failure)
    models.script(MOUTH, failure)
    for answer in (
        await hosted_voice.send(tone()),
        await hosted_voice.request_speech({"text": "Hello"}),
    ):
        error = refused(answer, 502, "provider_error")
        assert error["details"]["provider_status"] == 401
        assert "sk-scripted" not in answer.text
    models.script(MOUTH, Reply())
    await wait_until(lambda: is_removed(services, hosted_voice))
