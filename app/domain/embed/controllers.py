import html
from typing import Annotated

import msgspec
from litestar import Controller, HttpMethod, Response, delete, get, post, route
from litestar.params import JSONBody, QueryParameter

from app.domain.agents import service as agents
from app.domain.chat import service as chat
from app.domain.embed import keys, service
from app.domain.embed.schemas import (
    AssistantReply,
    CreatedEmbedKey,
    CreateEmbedKey,
    EmbedKeyList,
    PublicChatRequest,
    PublicReply,
    Snippet,
)
from app.http.authorization import embed_key_of, principal_of
from app.http.dependencies import HttpRequest, Id, Services, Tx
from app.http.sse import MEDIA_TYPE, EventStream
from app.kit import validation
from app.kit.errors import Invalid


class _KeyId(msgspec.Struct):
    id: str


class EmbedKeyController(Controller):
    path = "/api/v1/embed/api-keys"
    tags = ["Embedding"]

    @post(summary="Create an embed key", needs="agents:write")
    async def create_key(self, tx: Tx, data: JSONBody[CreateEmbedKey]) -> CreatedEmbedKey:
        """`api_key` is shown in this answer and never again."""
        return await keys.create(tx, data)

    @get(summary="List embed keys", needs="agents:read")
    async def list_keys(
        self,
        tx: Tx,
        agent_id: Annotated[
            str | None, QueryParameter(max_length=64, description="Only this agent's")
        ] = None,
    ) -> EmbedKeyList:
        return EmbedKeyList(await keys.list_all(tx, agent_id))

    @delete(summary="Revoke an embed key", needs="agents:write")
    async def revoke_key(
        self,
        tx: Tx,
        request: HttpRequest,
        key_id: Annotated[
            str | None,
            QueryParameter(name="id", max_length=64, description="Or as a JSON body { id }"),
        ] = None,
    ) -> None:
        """It stops working at once."""
        if key_id is None:
            body = await request.body()
            if not body:
                raise Invalid.field("id", "is required: the id of the key")
            key_id = validation.decode(body, _KeyId).id
        await keys.revoke(tx, key_id)


class PublicAgentController(Controller):
    """Routes for web sites, which authenticate with an embed key. Each route is for one agent."""

    path = "/api/v1/public/agents/{agent_id:str}"
    tags = ["Embedding"]
    # `service.admit` authenticates the key before the handler; the handler calls `agent_of`.
    opt = {"public": True, "keyed": "only"}

    @get("/embed", summary="Get the embed snippet", needs="agents:read", keyed="either")
    async def get_snippet(
        self, tx: Tx, services: Services, request: HttpRequest, agent_id: Id
    ) -> Snippet:
        """With a sign-in, or with the agent's embed key, which is then part of the snippet."""
        key = None
        if service.has_key(request):
            key = embed_key_of(request)
            name = service.agent_of(request, agent_id).runtime.name
        else:
            tx.enter(principal_of(request).scope)
            name = await agents.get_name(tx, agent_id)
        code = (
            f'<script async src="{html.escape(services.settings.public_url)}/embed/widget.js" '
            f'data-agent-id="{html.escape(agent_id)}" '
            f'data-api-key="{html.escape(key or "YOUR_EMBED_KEY")}"></script>'
        )
        return Snippet(code, agent_id, name)

    @post(
        "/chat",
        summary="Chat from a web site",
        cost="chat",
        status_code=200,
        idempotent="long_running",
        errors=(502,),
    )
    async def chat(
        self,
        services: Services,
        request: HttpRequest,
        agent_id: Id,
        data: JSONBody[PublicChatRequest],
    ) -> PublicReply:
        """One turn of the visitor's session, answered whole. The agent must be published."""
        agent = service.agent_of(request, agent_id)
        question = await service.create_visitor_question(
            services, agent, data.session_id, data.message
        )
        reply = await chat.answer(services, agent.runtime, question)
        message = reply.message
        answer = AssistantReply(message.id, message.role, message.content, message.created_at)
        return PublicReply(data.session_id, reply.conversation_id, answer, reply.sources)

    @post(
        "/chat/stream",
        summary="Chat from a web site, streamed",
        cost="chat",
        status_code=200,
        idempotent=False,
        media_type=MEDIA_TYPE,
    )
    async def chat_stream(
        self,
        services: Services,
        request: HttpRequest,
        agent_id: Id,
        data: JSONBody[PublicChatRequest],
    ) -> Response[bytes]:
        """Sends the same events as the console's stream, but without the arguments and results of
        tools: visitors see only the tools' names.
        """
        agent = service.agent_of(request, agent_id)
        question = await service.create_visitor_question(
            services, agent, data.session_id, data.message
        )
        events = await chat.stream(services, agent.runtime, question)
        return EventStream(chat.encode_stream(events, is_public=True))

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        ["/chat", "/chat/stream", "/embed"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest, agent_id: Id) -> Response[None]:
        headers = await service.preflight_headers(request, agent_id)
        return Response(None, status_code=204, headers=headers)
