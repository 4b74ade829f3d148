"""Voice for visitors of web sites, where the embed key allows it."""

from functools import partial

import msgspec
from litestar import Controller, HttpMethod, Response, post, route
from litestar.params import JSONBody, MultipartBody

from app.domain.conversations.chat import api as chat
from app.domain.conversations.embed import api as embed
from app.domain.conversations.embed.schemas import AssistantReply
from app.domain.identity.tenants import api as tenants
from app.http.dependencies import HttpRequest, Id, Services
from app.http.disconnect import wait_for_disconnect, while_connected

from . import service
from .recording_options import RECORDING
from .schemas import PublicAudioReply, SpeakText
from .upload_schemas import VisitorRecording

_MP3 = "audio/mpeg"


class PublicSpeechController(Controller):
    path = "/api/v1/public/agents/{agent_id:str}/chat"
    tags = ["Embedding"]
    # As for the other routes of web sites, the key or token is checked before the handler.
    opt = {"keyed": "only", "visitor_token": True, "voice": True, "cost": "chat"}

    @post(
        "/audio",
        summary="Chat from a web site by voice",
        **RECORDING,
    )
    async def chat_audio_as_visitor(
        self,
        request: HttpRequest,
        services: Services,
        agent_id: Id,
        data: MultipartBody[VisitorRecording],
    ) -> PublicAudioReply:
        """A recording as in the console's chat by voice. Without the key's `allow_voice`: 403
        `voice_not_allowed`.
        """
        agent = embed.agent_of(request, agent_id)
        question = await embed.create_visitor_question(request, agent, data.session_id, "")
        tenants.keep_charges(request)
        client_gone = partial(wait_for_disconnect, request)
        with service.hide_provider_errors(agent_id):
            transcript = await service.transcribe(services, agent.runtime, data.audio, client_gone)
        question = msgspec.structs.replace(question, text=transcript)
        connection = while_connected(request)
        reply = await chat.answer(services, agent.runtime, question, connection)
        message = reply.message
        answer = AssistantReply(message.id, message.role, message.content, message.created_at)
        return PublicAudioReply(
            data.session_id,
            reply.conversation_id,
            answer,
            reply.sources,
            reply.finish_reason,
            transcript=transcript,
        )

    @post(
        "/tts",
        summary="Speak a text on a web site",
        status_code=200,
        idempotent="long_running",
        errors=(502,),
        media_type=_MP3,
    )
    async def speak_as_visitor(
        self, request: HttpRequest, services: Services, agent_id: Id, data: JSONBody[SpeakText]
    ) -> Response[bytes]:
        """The text as an MP3 file. It counts as a message of the key's daily budget."""
        agent = embed.agent_of(request, agent_id)
        await embed.start_use(services, agent)
        tenants.keep_charges(request)
        client_gone = partial(wait_for_disconnect, request)
        with service.hide_provider_errors(agent_id):
            mp3 = await service.synthesize(services, agent.runtime, data, client_gone)
        return Response(mp3, media_type=_MP3)

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        ["/audio", "/tts"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
        visitor_token=False,
        voice=False,
        cost="read",
    )
    async def answer_preflight(self, request: HttpRequest, agent_id: Id) -> Response[None]:
        headers = await embed.preflight_headers(request, agent_id)
        return Response(None, status_code=204, headers=headers)
