from functools import partial

from litestar import Controller, HttpMethod, MediaType, Response, post, route
from litestar.params import JSONBody, MultipartBody

from app.domain.agents.llm.api import TranscriptionOptions
from app.domain.conversations.embed import api as embed
from app.domain.conversations.speech.api import RECORDING, SpeechOwner
from app.domain.identity.tenants import api as tenants
from app.http import cors
from app.http.authorization import principal_of
from app.http.dependencies import HttpRequest, Services
from app.http.disconnect import wait_for_disconnect
from app.kit.errors import Invalid

from . import audio
from .audio import AudioCaller
from .audio_schemas import CreateSpeech, TranscriptionReply
from .audio_uploads import TranscriptionForm

# Those who see the models of providers may also choose one.
_CHOOSE_PERMISSION = "models:read"
_GRANULARITIES = "timestamp_granularities"


class AudioController(Controller):
    """OpenAI-compatible speech, for callers who are signed in and for embed keys with voice."""

    path = "/v1/audio"
    tags = ["OpenAI-compatible"]
    opt = {"keyed": "either", "voice": True, "open_body": True, "cost": "chat"}

    @post(
        "/speech",
        summary="Speak a text in OpenAI's wire format",
        needs="agents:chat",
        status_code=200,
        idempotent="long_running",
        errors=(400, 404, 502),
        media_type="audio/mpeg",
    )
    async def create_speech(
        self, services: Services, request: HttpRequest, data: JSONBody[CreateSpeech]
    ) -> Response[bytes]:
        """`model` is `local/espeak`, the speech model of this instance, or, for callers with the
        permission models:read, any model of a provider for which the tenant has a key, such as
        `openai/tts-1`. The voices are those of the model. Formats other than MP3 are converted.
        Parameters that the model lacks are refused with 422.
        """
        caller = await _load_caller(services, request)
        client_gone = partial(wait_for_disconnect, request)
        content, media_type = await audio.speak(services, caller, data, client_gone)
        return Response(content, media_type=media_type)

    @post(
        "/transcriptions",
        summary="Transcribe a recording in OpenAI's wire format",
        needs="agents:chat",
        **{**RECORDING, "errors": (*RECORDING["errors"], 404)},
    )
    async def create_transcription(
        self, services: Services, request: HttpRequest, data: MultipartBody[TranscriptionForm]
    ) -> TranscriptionReply:
        """`model` is `local/moonshine`, the transcription model of this instance, or, for callers
        with the permission models:read, any model of a provider for which the tenant has a key,
        such as `openai/whisper-1`. With `response_format=text`, the answer is the text alone. A
        recording without speech has an empty text.
        """
        options = _read_options(data)
        caller = await _load_caller(services, request)
        transcript = await audio.transcribe(
            services,
            caller,
            data.file,
            data.model,
            options,
            partial(wait_for_disconnect, request),
        )
        if data.response_format == "text":
            return Response(transcript.text, media_type=MediaType.TEXT)  # type: ignore[return-value]  # documented as JSON
        return audio.build_reply(transcript, is_verbose=data.response_format == "verbose_json")

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        ["/speech", "/transcriptions"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
        voice=False,
        cost="read",
    )
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        """Allows every site here; the request itself names the key, and the key its sites."""
        return Response(None, status_code=204, headers=cors.preflight_headers(request))


async def _load_caller(services: Services, request: HttpRequest) -> AudioCaller:
    """For an embed key, takes a message of its daily budget. Whatever the speech engines refuse
    has cost work.
    """
    tenants.keep_charges(request)
    if embed.has_key(request):
        agent = embed.agent_of(request, None)
        await embed.start_use(services, agent)
        return AudioCaller(SpeechOwner(agent.runtime.tenant_id, agent.runtime.agent_id))
    principal = principal_of(request)
    return AudioCaller(SpeechOwner(principal.home), principal.may(_CHOOSE_PERMISSION))


def _read_options(form: TranscriptionForm) -> TranscriptionOptions:
    """Raises Invalid for what would change the answer, but is not supported."""
    is_verbose = form.response_format == "verbose_json"
    granularities = form.granularities or []
    granularities = [granularities] if isinstance(granularities, str) else granularities
    if form.stream:
        raise Invalid.field("stream", "is not supported; leave it out")
    if form.include:
        raise Invalid.field("include", "is not supported; leave it out")
    if granularities and not is_verbose:
        raise Invalid.field(_GRANULARITIES, "needs the response_format verbose_json")
    if not {"word", "segment"}.issuperset(granularities):
        raise Invalid.field(_GRANULARITIES, "must be word, segment or both")
    return TranscriptionOptions(
        language=form.language or None,
        prompt=form.prompt or None,
        temperature=form.temperature,
        response_format="verbose_json" if is_verbose else "json",
        timestamp_granularities=granularities or None,
    )
