"""Speech and transcription of a provider's models, with the tenant's key."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import openai
import pytest
from litestar import Litestar
from openai import AsyncOpenAI

from app.domain.agents.llm import prices
from app.domain.agents.usage import service as usage
from app.domain.conversations.openai import audio
from app.domain.conversations.openai.audio import AudioCaller
from app.domain.conversations.openai.errors import ModelNotFound
from app.domain.conversations.speech.api import SpeechOwner
from tests.agents.usage.rows import get_usage
from tests.conversations.embed.factories import create_embed_key
from tests.conversations.openai.completions import code_of, with_key
from tests.conversations.openai.hosted import FAILURES, open_client, read_usage
from tests.conversations.speech.hosted import serve_hosted
from tests.conversations.speech.recordings import tone
from tests.model_server import SPEECH, ModelServer, Reply
from tests.scripted_agents import Talker, give_key, talker
from tests.stores import Stores
from tests.world import World
from workers.main import WorkerProcess

pytestmark = pytest.mark.usefixtures("scripts_here")
EAR, MOUTH, OTHER = "ear-of-clients", "mouth-of-clients", "other-of-clients"
SECRETS = ("hearing", EAR, MOUTH, "sk-")


@pytest.fixture(scope="module")
async def hosted_world(app: Litestar, stores: Stores) -> AsyncIterator[World]:
    del app
    async with serve_hosted(stores, EAR, MOUTH) as world:
        yield world


@pytest.fixture
async def hosted_talk(
    hosted_world: World, models: ModelServer, speech_worker: WorkerProcess
) -> Talker:
    """An agent whose tenant has a key of the provider."""
    models.requests.clear()
    models.script(EAR, Reply(texts=["What time is it?"]))
    for name in (MOUTH, OTHER):
        models.script(name, Reply())
    talk = await talker(hosted_world, models)
    await give_key(talk.client, models, "hearing")
    return talk


@pytest.fixture
async def in_process(hosted_world: World) -> AsyncIterator[AsyncOpenAI]:
    async with open_client(hosted_world) as client:
        yield client


@pytest.fixture
def hosted(in_process: AsyncOpenAI, hosted_talk: Talker) -> AsyncOpenAI:
    return with_key(in_process, hosted_talk.client.token)


async def test_the_model_of_the_instance_and_any_other_of_the_provider_speak(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    for name in (f"hearing/{MOUTH}", MOUTH, f"hearing/{OTHER}"):
        answer = await hosted.audio.speech.create(model=name, input="Hello", voice="nova")
        assert answer.content == SPEECH
    assert len(models.asked(MOUTH)) == 2
    assert models.asked(OTHER) == [
        {"model": OTHER, "input": "Hello", "voice": "nova", "response_format": "mp3"}
    ]


def test_a_name_is_looked_for_among_the_models_of_the_instance_first() -> None:
    owner = SpeechOwner("ten_1")
    member, developer = AudioCaller(owner), AudioCaller(owner, may_choose=True)
    own, embedded = "hearing/mouth", "local/espeak"
    for name, expected in (
        ("hearing/mouth", own),
        ("mouth", own),
        ("local/espeak", embedded),
        ("espeak", embedded),
    ):
        for caller in (member, developer):
            assert audio._choose_model(caller, name, own, embedded) == expected
    for name in ("openai/tts-1", "tts-1", "hearing/other"):
        assert audio._choose_model(developer, name, own, embedded) == name
    for caller, name in ((member, "tts-1"), (member, ""), (developer, "local/piper")):
        with pytest.raises(ModelNotFound):
            audio._choose_model(caller, name, own, embedded)


async def test_those_who_see_no_models_have_that_of_the_instance(
    in_process: AsyncOpenAI, hosted_talk: Talker, models: ModelServer
) -> None:
    user = await hosted_talk.world.user("agent_user", hosted_talk.client.tenant_id)
    client = with_key(in_process, user.token)
    assert (await client.audio.speech.create(model=MOUTH, input="Hi", voice="a")).content
    with pytest.raises(openai.NotFoundError) as refusal:
        await client.audio.speech.create(model=f"hearing/{OTHER}", input="Hi", voice="a")
    assert f"hearing/{MOUTH} or local/espeak" in refusal.value.message
    assert models.asked(OTHER) == []


async def test_speech_is_converted_and_its_parameters_are_passed_on(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    models.script(MOUTH, Reply(raw=tone("mp3", rate=24_000)))
    answer = await hosted.audio.speech.create(
        model=MOUTH,
        input="Hello",
        voice="nova",
        response_format="wav",
        speed=4.0,
        instructions="Whisper.",
    )
    assert answer.response.headers["content-type"] == "audio/wav"
    assert answer.content.startswith(b"RIFF")
    (request,) = models.asked(MOUTH)
    assert request["response_format"] == "mp3"
    assert (request["speed"], request["instructions"]) == (4.0, "Whisper.")
    models.script(MOUTH, Reply())
    with pytest.raises(openai.InternalServerError) as failure:
        await hosted.audio.speech.create(
            model=MOUTH, input="Hello", voice="nova", response_format="wav"
        )
    assert (failure.value.status_code, failure.value.code) == (502, "provider_error")


async def test_a_recording_is_transcribed_with_its_parameters(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    answer = await hosted.audio.transcriptions.create(
        model=f"hearing/{EAR}",
        file=("any.mp3", tone()),
        language="de",
        prompt="Parley",
        temperature=0.5,
    )
    assert answer.text == "What time is it?"
    assert answer.usage is not None
    assert answer.usage.to_dict() == {"type": "duration", "seconds": 1.0}
    (request,) = models.asked(EAR)
    assert (request["language"], request["prompt"]) == ("de", "Parley")
    assert (request["temperature"], request["response_format"]) == ("0.5", "json")


async def test_a_verbose_transcript_has_what_the_provider_returns(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    body: dict[str, Any] = {
        "text": "Hello.",
        "language": "german",
        "duration": "1.5",
        "words": [{"word": "Hello", "start": 0.1, "end": 0.4}],
        "segments": "none",
    }
    models.script(EAR, Reply(raw=msgspec.json.encode(body)))
    answer = await hosted.audio.transcriptions.create(
        model=EAR,
        file=("any.wav", tone()),
        response_format="verbose_json",
        timestamp_granularities=["word"],
    )
    assert (answer.text, answer.language, answer.duration) == ("Hello.", "german", 1.5)
    assert answer.words is not None
    assert [word.to_dict() for word in answer.words] == body["words"]
    assert answer.segments is None
    (request,) = models.asked(EAR)
    assert request["response_format"] == "verbose_json"
    assert request["timestamp_granularities[]"] == "word"


async def test_a_failure_is_one_call_and_says_what_the_provider_said(
    hosted: AsyncOpenAI, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for status, ours, code in FAILURES:
        models.requests.clear()
        headers = {"Retry-After": "7"} if status == 429 else {}
        for name in (EAR, MOUTH):
            models.script(name, Reply(status=status, message="no", headers=headers))
        for name, call in (
            (EAR, hosted.audio.transcriptions.create(model=EAR, file=("a.wav", tone()))),
            (MOUTH, hosted.audio.speech.create(model=MOUTH, input="Hello", voice="nova")),
        ):
            with subtests.test(status=status, model=name):
                with pytest.raises(openai.APIStatusError) as failure:
                    await call
                assert (failure.value.status_code, code_of(failure.value)) == (ours, code)
                assert len(models.asked(name)) == 1
                answered = failure.value.response.headers
                if status == 429:
                    assert answered["retry-after"] == "7"
                elif status < 500:
                    assert answered["x-should-retry"] == "false"
                else:
                    assert answered["retry-after"] == "5"


async def test_an_answer_that_is_no_speech_tells_clients_to_try_again(
    hosted: AsyncOpenAI, models: ModelServer
) -> None:
    models.script(MOUTH, Reply(raw=b"{}"))
    with pytest.raises(openai.InternalServerError) as failure:
        await hosted.audio.speech.create(model=MOUTH, input="Hello", voice="nova")
    assert failure.value.response.headers["retry-after"] == "5"
    assert isinstance(failure.value.body, dict)
    assert failure.value.body["details"]["reason"] == "broken"


async def test_usage_counts_for_the_tenant_or_for_the_agent_of_a_key(
    hosted: AsyncOpenAI,
    in_process: AsyncOpenAI,
    hosted_talk: Talker,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {
        EAR: prices.Price(input_cost_per_audio_token=0.001, output_cost_per_token=0.01),
        MOUTH: prices.Price(input_cost_per_character=0.002),
        OTHER: prices.Price(input_cost_per_token=0.01, output_cost_per_second=0.5),
    }
    monkeypatch.setattr(prices, "find", lambda _prices, model: table.get(model.split("/")[1]))
    used = {"type": "tokens", "input_tokens": 30, "output_tokens": 4}
    models.script(EAR, Reply(raw=msgspec.json.encode({"text": "Hello", "usage": used})))
    models.script(OTHER, Reply(raw=tone("mp3", seconds=2.0)))
    transcript = await hosted.audio.transcriptions.create(model=EAR, file=("a.wav", tone()))
    assert transcript.usage is not None
    assert transcript.usage.to_dict() == {**used, "total_tokens": 34}
    for name in (MOUTH, f"hearing/{OTHER}"):
        await hosted.audio.speech.create(model=name, input="Hello", voice="nova")
    key = await create_embed_key(hosted_talk.client, hosted_talk.agent_id, allow_voice=True)
    visitor = with_key(in_process, key["api_key"])
    await visitor.audio.speech.create(model=MOUTH, input="Hello", voice="nova")
    await usage.roll_up(hosted_talk.world.services)
    owner = hosted_talk.client
    sums = {name: await read_usage(owner, f"hearing/{name}") for name in table}
    for name, tokens, cost in ((EAR, 34, 0.07), (MOUTH, 0, 0.02), (OTHER, 2, 1.02)):
        row = sums[name]
        assert row is not None
        assert row["total_tokens"] == tokens
        assert row["cost_usd"] == pytest.approx(cost, abs=0.03), name
    report = await get_usage(owner)
    (by_agent,) = report["by_agent"]
    assert (by_agent["agent_id"], by_agent["cost_usd"]) == (hosted_talk.agent_id, 0.01)
    assert report["totals"]["cost_usd"] == pytest.approx(1.11, abs=0.03)


async def test_visitors_see_neither_models_nor_what_a_provider_says(
    in_process: AsyncOpenAI, hosted_talk: Talker, models: ModelServer
) -> None:
    key = await create_embed_key(hosted_talk.client, hosted_talk.agent_id, allow_voice=True)
    visitor = with_key(in_process, key["api_key"])
    with pytest.raises(openai.NotFoundError) as missing:
        await visitor.audio.speech.create(model=f"hearing/{OTHER}", input="Hi", voice="a")
    assert MOUTH not in missing.value.message
    for name in (EAR, MOUTH):
        models.script(name, Reply(status=401, message="no: sk-scripted-0123456789"))
    for call in (
        visitor.audio.transcriptions.create(model=EAR, file=("a.wav", tone())),
        visitor.audio.speech.create(model=MOUTH, input="Hello", voice="nova"),
    ):
        with pytest.raises(openai.InternalServerError) as failure:
            await call
        assert code_of(failure.value) == "provider_error"
        assert not any(secret in failure.value.response.text for secret in SECRETS)
    assert models.asked(OTHER) == []
