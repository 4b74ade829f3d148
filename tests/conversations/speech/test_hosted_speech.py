"""Speech of a provider, with the tenant's key."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import msgspec
import pytest
from litestar import Litestar

from app.domain.agents.llm import prices
from app.domain.agents.usage import queries as usage_queries
from app.services import Services
from tests.agents.usage.rows import get_usage
from tests.assertions import refused, wait_until
from tests.conversations.speech.calls import Voice, is_removed
from tests.conversations.speech.hosted import serve_hosted
from tests.conversations.speech.recordings import tone
from tests.database import run_sql
from tests.model_server import SPEECH, ModelServer, Reply
from tests.scripted_agents import give_key, talker
from tests.stores import Stores
from tests.world import World
from workers.main import WorkerProcess

pytestmark = pytest.mark.usefixtures("scripts_here")
EAR, MOUTH = "ear-1", "mouth-1"


@pytest.fixture(scope="module")
async def hosted_world(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    del app
    async with serve_hosted(stores, EAR, MOUTH) as world:
        yield world


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


async def _list_usage(services: Services, voice: Voice, source: str) -> list[dict[str, Any]]:
    sql = """
        SELECT agent_id, model, prompt_tokens, completion_tokens, cost_usd::float AS cost
        FROM usage WHERE tenant_id = $1 AND source = $2 ORDER BY created_at
    """
    return await run_sql(services, sql, voice.talk.client.tenant_id, source)


async def test_calls_to_the_provider_are_stored_as_usage(
    hosted_voice: Voice, models: ModelServer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {
        EAR: prices.Price(input_cost_per_audio_token=0.001, output_cost_per_token=0.01),
        MOUTH: prices.Price(input_cost_per_character=0.002),
    }
    monkeypatch.setattr(prices, "find", lambda _prices, model: table.get(model.split("/")[1]))
    usage = {"type": "tokens", "input_tokens": 30, "output_tokens": 4}
    models.script(EAR, Reply(raw=msgspec.json.encode({"text": "Hello", "usage": usage})))
    await hosted_voice.say(tone())
    await hosted_voice.speak("Hello")
    ids = {"agent_id": hosted_voice.talk.agent_id}
    assert await _list_usage(services, hosted_voice, "transcription") == [
        {
            **ids,
            "model": f"hearing/{EAR}",
            "prompt_tokens": 30,
            "completion_tokens": 4,
            "cost": 0.07,
        }
    ]
    assert await _list_usage(services, hosted_voice, "speech") == [
        {
            **ids,
            "model": f"hearing/{MOUTH}",
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "cost": 0.01,
        }
    ]
    report = await get_usage(hosted_voice.talk.client)
    by_model = {row["model"]: (row["total_tokens"], row["cost_usd"]) for row in report["by_model"]}
    assert by_model[f"hearing/{EAR}"] == (34, 0.07)
    assert by_model[f"hearing/{MOUTH}"] == (0, 0.01)


async def test_a_call_whose_usage_is_not_stored_is_not_made_again(
    hosted_voice: Voice, models: ModelServer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object) -> None:
        raise asyncpg.PostgresError

    monkeypatch.setattr(usage_queries, "add", fail)
    calls = len(models.asked(EAR)), len(models.asked(MOUTH))
    models.script(EAR, Reply(texts=["What time is it?"]))
    assert (await hosted_voice.say(tone()))["transcript"] == "What time is it?"
    assert await hosted_voice.speak("Hello") == SPEECH
    assert (len(models.asked(EAR)), len(models.asked(MOUTH))) == (calls[0] + 1, calls[1] + 1)
    assert await _list_usage(services, hosted_voice, "speech") == []


async def test_a_transcription_without_tokens_costs_by_the_second(
    hosted_voice: Voice, models: ModelServer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = prices.Price(input_cost_per_second=0.5)
    monkeypatch.setattr(prices, "find", lambda _prices, _model: price)
    for body, cost in (({"seconds": 3}, 1.5), (None, pytest.approx(0.5, rel=0.2))):
        models.script(EAR, Reply(raw=msgspec.json.encode({"text": " ", "usage": body})))
        # The provider charges for a recording without words as well.
        refused(await hosted_voice.send(tone(seconds=1.0)), 422, "validation_error")
        assert (await _list_usage(services, hosted_voice, "transcription"))[-1]["cost"] == cost


async def test_a_failed_call_is_not_stored_as_usage(
    hosted_voice: Voice, models: ModelServer, services: Services
) -> None:
    models.script(EAR, Reply(status=401))
    refused(await hosted_voice.send(tone()), 409, "model_not_configured")
    models.script(EAR, Reply())
    assert await _list_usage(services, hosted_voice, "transcription") == []


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
        error = refused(answer, 409, "model_not_configured")
        assert error["details"]["provider_status"] == 401
        assert "sk-scripted" not in answer.text
    models.script(MOUTH, Reply())
    await wait_until(lambda: is_removed(services, hosted_voice))
