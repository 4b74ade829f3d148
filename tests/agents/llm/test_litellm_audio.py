"""Transcription and speech through litellm."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app.domain.agents.llm import litellm_adapter
from app.domain.agents.llm.errors import ModelFailed
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from app.domain.agents.llm.protocol import SpeechOptions, Transcription, TranscriptionOptions
from tests.agents.llm.answers import KEY
from tests.agents.llm.litellm_providers import make_target, wait_for_library_threads
from tests.model_server import SPEECH
from tests.peer import Handler, Peer

# litellm emits warnings at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")


class ElevenLabs(Peer):
    """Refuses with `status`."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.keys: list[str] = []
        self.spoken: list[dict[str, Any]] = []
        self.audio = b""
        self.fields: dict[str, Any] = {}

    def routes(self) -> dict[str, Handler]:
        return {
            "POST /v1/speech-to-text": self._transcribe,
            "POST /v1/text-to-speech/{voice}": self._speak,
        }

    async def _transcribe(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers["xi-api-key"])
        if self.status != 200:
            return self._refuse(request)
        self.fields = dict(await request.post())
        self.audio = self.fields["file"].file.read()
        return web.json_response({"text": "Good morning.", "language_code": "en"})

    async def _speak(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers["xi-api-key"])
        if self.status != 200:
            return self._refuse(request)
        self.spoken.append(await request.json())
        return web.Response(body=SPEECH, content_type="audio/mpeg")

    def _refuse(self, request: web.Request) -> web.Response:
        body = {"detail": f"no: {request.headers['xi-api-key']}"}
        return web.json_response(body, status=self.status)


@pytest.fixture
async def elevenlabs(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ElevenLabs]:
    server = ElevenLabs()
    await server.start()
    providers = litellm_adapter.LITELLM_PROVIDERS
    moved = msgspec.structs.replace(providers["elevenlabs"], audio_url=server.url)
    monkeypatch.setitem(providers, "elevenlabs", moved)
    yield server
    await wait_for_library_threads()
    await server.close()


async def test_a_recording_is_transcribed(litellm: LiteLLMAdapter, elevenlabs: ElevenLabs) -> None:
    target = make_target("elevenlabs/scribe_v1")
    options = TranscriptionOptions(language="de", temperature=0.5)
    answer = await litellm.transcribe(target, b"RIFF", "audio/wav", options)
    assert answer == Transcription("Good morning.")
    assert (elevenlabs.audio, elevenlabs.keys) == (b"RIFF", [KEY])
    assert (elevenlabs.fields["language_code"], elevenlabs.fields["temperature"]) == ("de", "0.5")


async def test_a_text_is_spoken(litellm: LiteLLMAdapter, elevenlabs: ElevenLabs) -> None:
    target = make_target("elevenlabs/eleven_multilingual_v2")
    assert await litellm.speak(target, "Good morning.", None, SpeechOptions(speed=1.1)) == SPEECH
    assert elevenlabs.spoken[0]["text"] == "Good morning."
    assert elevenlabs.spoken[0]["voice_settings"] == {"speed": 1.1}
    assert elevenlabs.keys == [KEY]


async def test_a_failure_does_not_contain_the_key(
    litellm: LiteLLMAdapter, elevenlabs: ElevenLabs
) -> None:
    elevenlabs.status = 429
    target = make_target("elevenlabs/any")
    for call in (
        litellm.transcribe(target, b"RIFF", "audio/wav", TranscriptionOptions()),
        litellm.speak(target, "a", "b", SpeechOptions()),
    ):
        with pytest.raises(ModelFailed) as caught:
            await call
        assert caught.value.reason == "rate_limited"
        assert KEY not in caught.value.message


async def test_a_provider_without_speech_refuses_without_a_request(
    litellm: LiteLLMAdapter,
) -> None:
    target = make_target("anthropic/claude")
    for call in (
        litellm.transcribe(target, b"RIFF", "audio/wav", TranscriptionOptions()),
        litellm.speak(target, "a", "b", SpeechOptions()),
    ):
        with pytest.raises(ModelFailed) as caught:
            await call
        assert caught.value.reason == "refused"
        assert caught.value.message == (
            "anthropic/claude: the provider anthropic has no speech models"
        )
