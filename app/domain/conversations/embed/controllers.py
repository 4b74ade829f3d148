from functools import partial
from typing import Annotated

import msgspec
from litestar import Controller, HttpMethod, Response, delete, get, post, put, route
from litestar.di import Provide
from litestar.params import JSONBody, MultipartBody, QueryParameter

from app.domain.agents.definition import api as agents
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.schemas import AttachmentView, RatedMessage, RateMessage
from app.domain.conversations.chat.upload_schemas import AttachmentUpload
from app.http import cors, refunds
from app.http.authorization import embed_key_of, principal_of
from app.http.dependencies import HttpRequest, Id, Page, Services, Tx
from app.http.disconnect import while_connected
from app.http.paging import provide_full_page
from app.http.records import Record, lock_row
from app.http.sse import MEDIA_TYPE, EventStream
from app.kit import validation
from app.kit.errors import Invalid
from app.kit.paging import Paged

from . import keys, service, sessions, snippet
from .schemas import (
    AssistantReply,
    CreatedEmbedKey,
    CreateEmbedKey,
    CustomerConversations,
    EmbedKeyView,
    NewIdentitySecret,
    OpenSession,
    PublicChatRequest,
    PublicReply,
    SessionState,
    Snippet,
    UpdateEmbedKey,
    VisitorSession,
)

_KEY = Record(lock_row("embed_keys", id="key_id"))


class _KeyId(msgspec.Struct):
    id: str


class EmbedKeyController(Controller):
    path = "/api/v1/embed/api-keys"
    tags = ["Embedding"]

    @post(summary="Create an embed key", needs="agents:write")
    async def create_embed_key(
        self, tx: Tx, services: Services, data: JSONBody[CreateEmbedKey]
    ) -> CreatedEmbedKey:
        """`api_key`, `identity_secret` and `embed_code`, which has the key in it, are shown in this
        answer and never again. An agent that has 100 keys gets no more: 409.
        """
        return await keys.create(tx, services, data)

    @get(
        summary="List embed keys",
        needs="agents:write",
        dependencies={"page_in": Provide(provide_full_page, sync_to_thread=False)},
    )
    async def list_embed_keys(
        self,
        tx: Tx,
        page_in: Page,
        agent_id: Annotated[
            str | None, QueryParameter(max_length=64, description="Only this agent's")
        ] = None,
    ) -> Paged[EmbedKeyView]:
        """The newest first. An agent has at most 100 keys."""
        return await keys.list_page(tx, page_in, agent_id)

    @get("/{key_id:str}", summary="Get an embed key", needs="agents:write")
    async def get_embed_key(self, tx: Tx, key_id: Id) -> EmbedKeyView:
        return await keys.get(tx, key_id)

    @put("/{key_id:str}", summary="Change an embed key", needs="agents:write", record=_KEY)
    async def update_embed_key(
        self, tx: Tx, key_id: Id, data: JSONBody[UpdateEmbedKey]
    ) -> EmbedKeyView:
        """Applies from the next request on, also to visitors who already have a token."""
        return await keys.update(tx, key_id, data)

    @post(
        "/{key_id:str}/identity-secret",
        summary="Replace the identity secret of an embed key",
        needs="agents:write",
        status_code=200,
    )
    async def rotate_identity_secret(
        self, tx: Tx, services: Services, key_id: Id
    ) -> NewIdentitySecret:
        """Shown in this answer and never again. User tokens signed with the previous secret are
        refused at once.
        """
        return await keys.rotate_identity_secret(tx, services.keyring, key_id)

    @delete(summary="Revoke an embed key", needs="agents:write")
    async def revoke_embed_key(
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
    opt = {"keyed": "only"}

    @get("/embed", summary="Get the embed snippet", needs="agents:read", keyed="either")
    async def get_embed_snippet(
        self, tx: Tx, services: Services, request: HttpRequest, agent_id: Id
    ) -> Snippet:
        """With a sign-in, or with the agent's embed key, which is then part of the snippet. `hint`
        says where to get a key for a snippet without one.
        """
        key = None
        if service.has_key(request):
            key = embed_key_of(request)
            name = service.agent_of(request, agent_id).runtime.name
        else:
            tx.set_scope(principal_of(request).scope)
            name = await agents.get_name(tx, agent_id)
        code = snippet.build(services.settings.public_url, agent_id, key)
        return Snippet(code, agent_id, name, None if key else snippet.HINT)

    @post(
        "/session",
        summary="Open or renew a visitor's session",
        cost="write",
        status_code=200,
        idempotent=False,
        visitor_token=True,
        opens_session=True,
    )
    async def open_visitor_session(
        self, services: Services, request: HttpRequest, agent_id: Id, data: JSONBody[OpenSession]
    ) -> VisitorSession:
        """Exchanges the embed key for a token of 15 minutes, which is bound to key, agent, origin
        and session. The token itself renews the session before it expires; a `session_id` continues
        it later. Send it as `Authorization: Bearer vst_…`.
        """
        agent, claims = service.agent_of(request, agent_id), service.claims_of(request)
        if claims is not None:
            return await sessions.renew_session(services, agent, claims, data)
        origin = cors.page_origin(request) or ""
        return await sessions.open_session(services, agent, origin, data)

    @get(
        "/session",
        summary="Get a visitor's session",
        cost="read",
        visitor_token=True,
        takes_key=False,
    )
    async def get_visitor_session(
        self, services: Services, request: HttpRequest, agent_id: Id
    ) -> SessionState:
        """The agent's name and what was said so far. Needs a visitor token."""
        agent = service.agent_of(request, agent_id)
        return await sessions.load_state(services, agent, service.require_claims(request))

    @get(
        "/conversations",
        summary="List a customer's conversations",
        cost="read",
        visitor_token=True,
        takes_key=False,
    )
    async def list_conversations_as_visitor(
        self, services: Services, request: HttpRequest, agent_id: Id
    ) -> CustomerConversations:
        """The newest 20 of the customer whom the user token of the session named, under the same
        embed key; others get 401. Needs a visitor token. `conversation` of POST …/session opens
        one.
        """
        agent = service.agent_of(request, agent_id)
        return await sessions.list_conversations(services, agent, service.require_claims(request))

    @post(
        "/messages/{message_id:str}/feedback",
        summary="Rate an answer as a visitor",
        cost="write",
        status_code=200,
        idempotent=False,
        visitor_token=True,
        takes_key=False,
        errors=(409,),
    )
    async def rate_message_as_visitor(
        self,
        services: Services,
        request: HttpRequest,
        agent_id: Id,
        message_id: Id,
        data: JSONBody[RateMessage],
    ) -> RatedMessage:
        """For the answers of the visitor's own session; needs a visitor token. Without the key's
        `allow_feedback`: 403.
        """
        agent, claims = service.agent_of(request, agent_id), service.require_claims(request)
        return await sessions.rate_message(services, agent, claims, message_id, data)

    @post(
        "/attachments",
        summary="Attach a file as a visitor",
        visitor_token=True,
        takes_key=False,
        attachments=True,
        **chat.ATTACHMENT,
    )
    async def attach_file_as_visitor(
        self,
        services: Services,
        request: HttpRequest,
        agent_id: Id,
        data: MultipartBody[AttachmentUpload],
    ) -> AttachmentView:
        """Reads the text of a file, for `attachments` of the messages in the visitor's session;
        needs a visitor token. Without the key's `allow_attachments`: 403.
        """
        agent, claims = service.agent_of(request, agent_id), service.require_claims(request)
        keep_charges = partial(refunds.keep_charges, request.scope["state"])
        return await sessions.add_attachment(services, agent, claims, data.file, keep_charges)

    @post(
        "/chat",
        summary="Chat from a web site",
        cost="chat",
        visitor_token=True,
        status_code=200,
        idempotent="long_running",
        errors=(502,),
    )
    async def chat_as_visitor(
        self,
        services: Services,
        request: HttpRequest,
        agent_id: Id,
        data: JSONBody[PublicChatRequest],
    ) -> PublicReply:
        """One turn of the visitor's session, answered whole. The agent must be published. A client
        that disconnects ends the turn.
        """
        agent = service.agent_of(request, agent_id)
        question = await service.create_visitor_question(
            request, agent, data.session_id, data.message, data.replaces, data.attachments
        )
        async with service.count_unless_busy(services, agent):
            connection = while_connected(request)
            reply = await chat.answer(services, agent.runtime, question, connection)
        message = reply.message
        answer = AssistantReply(message.id, message.role, message.content, message.created_at)
        ids = (data.session_id, reply.conversation_id)
        return PublicReply(*ids, answer, reply.sources, reply.finish_reason)

    @post(
        "/chat/stream",
        summary="Chat from a web site, streamed",
        cost="chat",
        visitor_token=True,
        status_code=200,
        idempotent=False,
        media_type=MEDIA_TYPE,
        events=chat.EVENTS,
    )
    async def chat_stream_as_visitor(
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
            request, agent, data.session_id, data.message, data.replaces, data.attachments
        )
        async with service.count_unless_busy(services, agent):
            connection = while_connected(request)
            events = await chat.stream(services, agent.runtime, question, connection)
        return EventStream(chat.encode_stream(events, is_public=True))

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        [
            "/attachments",
            "/chat",
            "/chat/stream",
            "/conversations",
            "/embed",
            "/messages/{message_id:str}/feedback",
        ],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest, agent_id: Id) -> Response[None]:
        headers = await service.preflight_headers(request, agent_id)
        return Response(None, status_code=204, headers=headers)

    @route(
        "/session",
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
    )
    async def answer_session_preflight(self, request: HttpRequest, agent_id: Id) -> Response[None]:
        """Allows every site, so that a refusal can be read; the request itself is checked."""
        del agent_id
        return Response(None, status_code=204, headers=cors.preflight_headers(request))
