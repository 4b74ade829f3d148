from functools import partial

from litestar import Controller, Response, post
from litestar.params import JSONBody, MultipartBody

from app.domain.identity.tenants import api as tenants
from app.http.dependencies import Context, HttpRequest, Id
from app.http.disconnect import wait_for_disconnect, while_awaited

from . import service
from .recording_options import RECORDING
from .schemas import AudioReply, SpeakText
from .upload_schemas import AudioQuestion

_MP3 = "audio/mpeg"


class SpeechController(Controller):
    path = "/api/v1/agents/{agent_id:str}/chat"
    tags = ["Speech"]

    @post(
        "/audio",
        summary="Chat with an agent by voice",
        needs="agents:chat",
        cost="chat",
        **RECORDING,
    )
    async def chat_audio(
        self,
        request: HttpRequest,
        context: Context,
        agent_id: Id,
        data: MultipartBody[AudioQuestion],
    ) -> AudioReply:
        """A WAV, MP3 or WebM recording of at most 25 MB and 10 minutes; its type is detected from
        the content. It is transcribed, and then answered like a message. A recording without speech
        is refused with 422. If this instance cannot recognise speech, the answer is 503
        `unavailable` with the reason.
        """
        tenants.keep_charges(request)
        return await service.answer_recording(
            context.services,
            context.principal,
            agent_id,
            data.audio,
            data.conversation_id,
            partial(wait_for_disconnect, request),
            while_awaited(request),
        )

    @post(
        "/tts",
        summary="Speak a text",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent="long_running",
        errors=(400, 502),
        media_type=_MP3,
    )
    async def speak(
        self, request: HttpRequest, context: Context, agent_id: Id, data: JSONBody[SpeakText]
    ) -> Response[bytes]:
        """The text as an MP3 file."""
        tenants.keep_charges(request)
        mp3 = await service.speak(
            context.services,
            context.principal,
            agent_id,
            data,
            partial(wait_for_disconnect, request),
        )
        return Response(mp3, media_type=_MP3)
