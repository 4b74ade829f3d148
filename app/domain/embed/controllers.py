import html
from typing import Annotated

import msgspec
from litestar import Controller, HttpMethod, Response, delete, get, post, route
from litestar.params import JSONBody, QueryParameter

from app.domain.agents import service as agents
from app.domain.chat import stream, turn
from app.domain.chat.begin import Question, begin
from app.domain.chat.keep import WebKeeper
from app.domain.chat.turn import Turn, Who
from app.domain.embed import admission, keys
from app.domain.embed.schemas import (
    AssistantReply,
    CreatedEmbedKey,
    CreateEmbedKey,
    EmbedKeyList,
    PublicChatRequest,
    PublicReply,
    Snippet,
)
from app.http import bodies
from app.http.errors import Invalid
from app.http.given import HttpRequest, Id, Parts, Tx
from app.http.sse import MEDIA_TYPE, EventStream
from app.security.principal import embed_key_of, principal_of


class _Named(msgspec.Struct):
    id: str


class EmbedKeyController(Controller):
    path = "/api/v1/embed/api-keys"
    tags = ["Embedding"]  # noqa: RUF012  # litestar's own type

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
        return EmbedKeyList(await keys.every(tx, agent_id))

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
                raise Invalid.field("id", "is required: say which key")
            key_id = bodies.decode(body, _Named).id
        await keys.revoke(tx, key_id)


class PublicAgentController(Controller):
    """For web sites: an embed key instead of a sign-in, each route for one agent."""

    path = "/api/v1/public/agents/{agent_id:str}"
    tags = ["Embedding"]  # noqa: RUF012
    # Whose key it is was found out before; each handler asks for the agent that it opens.
    opt = {"public": True, "keyed": "only"}  # noqa: RUF012

    @get("/embed", summary="Get the embed snippet", needs="agents:read", keyed="either")
    async def get_snippet(
        self, tx: Tx, parts: Parts, request: HttpRequest, agent_id: Id
    ) -> Snippet:
        """With a sign-in, or with the agent's embed key, which is then part of the snippet."""
        key = None
        if admission.keyed(request):
            key = embed_key_of(request)
            name = admission.admit(request, agent_id).brain.name
        else:
            tx.enter(principal_of(request).scope)
            name = (await agents.find(tx, agent_id)).name
        code = (
            f'<script async src="{html.escape(parts.settings.public_url)}/embed/widget.js" '
            f'data-agent-id="{html.escape(agent_id)}" '
            f'data-api-key="{html.escape(key or "YOUR_EMBED_KEY")}"></script>'
        )
        return Snippet(code, agent_id, name)

    @post(
        "/chat",
        summary="Chat from a web site",
        cost="chat",
        status_code=200,
        idempotent="apart",
        errors=(502,),
    )
    async def chat(
        self,
        parts: Parts,
        request: HttpRequest,
        agent_id: Id,
        data: JSONBody[PublicChatRequest],
    ) -> PublicReply:
        """One turn of the visitor's session, answered whole. The agent must be published."""
        begun = await _begun(parts, request, agent_id, data)
        steps = turn.run(parts, begun, WebKeeper(parts, begun, live=False), live=False)
        reply = await turn.reply_of(admission.in_public(steps))
        said = reply.message
        answer = AssistantReply(said.id, said.role, said.content, said.created_at)
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
        parts: Parts,
        request: HttpRequest,
        agent_id: Id,
        data: JSONBody[PublicChatRequest],
    ) -> Response[bytes]:
        """The same events as the console's stream. What tools were given and gave stays inside:
        visitors see their names only.
        """
        begun = await _begun(parts, request, agent_id, data)
        steps = turn.run(parts, begun, WebKeeper(parts, begun, live=True), live=True)
        return EventStream(stream.spoken(admission.in_public(steps), public=True))

    # By its name the first of this class: litestar answers OPTIONS itself where nobody did before.
    @route(
        ["/chat", "/chat/stream", "/embed"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest, agent_id: Id) -> Response[None]:
        headers = await admission.preflight(request, agent_id)
        return Response(None, status_code=204, headers=headers)


async def _begun(
    parts: Parts, request: HttpRequest, agent_id: str, data: PublicChatRequest
) -> Turn:
    admitted = admission.admit(request, agent_id)
    brain, key_id = admitted.brain, admitted.embed_key_id
    await admission.check_model(parts, brain)
    async with parts.db.tx(brain.tenant_id, read_only=True) as tx:
        question = Question(
            who=Who(embed_key_id=key_id, session_id=data.session_id),
            source="embed",
            text=data.message,
            conversation_id=admission.conversation_of(key_id, data.session_id),
        )
        return await begin(tx, brain, question)
