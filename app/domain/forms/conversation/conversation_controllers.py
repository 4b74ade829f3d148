"""Routes for visitors who fill in a form by chat, or continue it later."""

from functools import partial

from litestar import Controller, HttpMethod, Response, get, post, route
from litestar.params import JSONBody

from app.domain.forms.submissions.admission import admit, describe_origin
from app.domain.identity.tenants import api as tenants
from app.http import cors, idempotency
from app.http.dependencies import HttpRequest, Id, Services
from app.http.disconnect import while_connected
from app.http.sse import MEDIA_TYPE, EventStream
from app.kit.languages import ENGLISH, find_language, negotiate
from app.kit.views import Data
from db.session import Tx

from . import conversations
from .conversation_schemas import (
    FormConversationView,
    FormMessageView,
    FormTurn,
    SendFormMessage,
    StartedFormConversation,
    StartFormConversation,
)
from .conversation_stream import EVENTS, stream

_MAX_BODY_BYTES = 1024 * 1024


class FormConversationController(Controller):
    """Anyone who has the id of a conversation can read and continue it."""

    path = "/api/v1/public/forms/{slug:str}/conversations"
    tags = ["Public forms"]
    opt = {"public": True, "tenant_pays": True}

    @post(
        summary="Start a conversation with a form",
        cost="write",
        idempotent="long_running",
        errors=(400, 409),
        request_max_body_size=_MAX_BODY_BYTES,
    )
    async def start_form_conversation(
        self,
        request: HttpRequest,
        services: Services,
        slug: Id,
        data: JSONBody[StartFormConversation | None] = None,
    ) -> StartedFormConversation:
        """`message` is the first question. The conversation can be continued by its id for 30
        days after its last message. It is held in `language`, else in the language of the form's
        settings, else in that of Accept-Language, else in English.
        """
        form = await admit(request, slug, action="message")
        body = data if data is not None else StartFormConversation()
        language = (
            find_language(body.language)
            or form.settings.language
            or negotiate(request.headers.get("accept-language"))
            or ENGLISH
        )
        store = partial(idempotency.store_answer, request)
        return await conversations.start(services, form, body.data, language, store)

    @get("/{conversation_id:str}", summary="Get a conversation with a form", cost="read")
    async def get_form_conversation(
        self, request: HttpRequest, services: Services, slug: Id, conversation_id: Id
    ) -> Data[FormConversationView]:
        """How far the form is filled in."""
        form = await admit(request, slug)
        return Data(await conversations.get(services, form, conversation_id))

    @get("/{conversation_id:str}/messages", summary="List its messages", cost="read")
    async def list_form_messages(
        self, request: HttpRequest, services: Services, slug: Id, conversation_id: Id
    ) -> Data[list[FormMessageView]]:
        """The oldest first."""
        form = await admit(request, slug)
        return Data(await conversations.list_messages(services, form, conversation_id))

    @post(
        "/{conversation_id:str}/messages",
        summary="Answer a question of a form",
        cost="write",
        status_code=200,
        idempotent="long_running",
        errors=(400, 409),
        request_max_body_size=_MAX_BODY_BYTES,
    )
    async def send_form_message(
        self,
        request: HttpRequest,
        services: Services,
        slug: Id,
        conversation_id: Id,
        data: JSONBody[SendFormMessage],
    ) -> Data[FormTurn]:
        """A message may answer several questions, correct earlier answers ("actually my e-mail is
        …"), or skip an optional one ("skip"). The last answer submits the form. Of two messages at
        the same time, one gets 409 `message_conflict`. A form that was withdrawn meanwhile: 409
        `form_not_published`. A client that disconnects while a model reads its message ends that;
        the message is then not stored.
        """
        form = await admit(request, slug, action="message", is_published=False)

        async def store(tx: Tx, turn: FormTurn) -> None:
            await idempotency.store_answer(request, tx, Data(turn))

        turn = await conversations.open_turn(
            services, form, conversation_id, data.content, describe_origin(request), store
        )
        tenants.keep_charges(request)
        async with while_connected(request):
            return Data(await conversations.take(turn))

    @post(
        "/{conversation_id:str}/messages/stream",
        summary="Answer a question of a form, streamed",
        cost="write",
        status_code=200,
        idempotent=False,
        errors=(409,),
        media_type=MEDIA_TYPE,
        events=EVENTS,
        request_max_body_size=_MAX_BODY_BYTES,
    )
    async def stream_form_message(
        self,
        request: HttpRequest,
        services: Services,
        slug: Id,
        conversation_id: Id,
        data: JSONBody[SendFormMessage],
    ) -> Response[bytes]:
        """Server-sent events: `message_start`, `content_delta`, `form_progress`, `message_stop`, or
        `error` with what went wrong.
        """
        form = await admit(request, slug, action="message", is_published=False)

        async def store(_tx: Tx, _turn: FormTurn) -> None:
            return

        turn = await conversations.open_turn(
            services, form, conversation_id, data.content, describe_origin(request), store
        )
        return EventStream(stream(turn))

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        [
            "/",
            "/{conversation_id:str}",
            "/{conversation_id:str}/messages",
            "/{conversation_id:str}/messages/stream",
        ],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
    )
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        return Response(None, status_code=204, headers=cors.preflight_headers(request))
