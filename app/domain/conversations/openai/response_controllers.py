from typing import Annotated

from litestar import Controller, HttpMethod, Response, delete, get, post, route
from litestar.params import JSONBody, Parameter

from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import ClientAnswer, Speaker
from app.http import cors
from app.http.dependencies import Context, HttpRequest, Id, Services
from app.http.disconnect import while_connected
from app.http.sse import EventStream
from app.kit.errors import Invalid

from . import response_input, response_stream, responses
from .controllers import MAX_BODY_BYTES
from .questions import load_caller
from .response_events import EVENTS
from .response_schemas import DeletedResponse, ResponseObject, ResponseRequest


class ResponseController(Controller):
    """The responses of OpenAI's wire format, which newer clients use instead of completions."""

    path = "/v1/responses"
    tags = ["OpenAI-compatible"]
    # The token or key is authenticated before the handler; the handler authorizes the agent.
    opt = {"keyed": "either", "open_body": True, "checks_agent": True}

    @post(
        summary="Create a response in OpenAI's wire format",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent=False,
        errors=(400, 404, 409, 502),
        events=EVENTS,
        request_max_body_size=MAX_BODY_BYTES,
    )
    async def create_response(
        self, services: Services, request: HttpRequest, data: JSONBody[ResponseRequest]
    ) -> ResponseObject:
        """`model` is an agent's id. `previous_response_id` goes on with a conversation, whose
        history is kept here. With `stream`, the answer is the typed events of OpenAI's responses;
        with `background`, its status is `queued`. Parameters that cannot be honoured are refused
        with 422.
        """
        caller = await load_caller(services, request, data.model)
        settings = response_input.settings_of(caller, data)
        question = await response_input.build_question(services, caller, data, settings)
        headers = caller.max_tokens_headers(data.max_output_tokens)
        agent, connection = caller.runtime, while_connected(request)
        if data.background:
            message_id = await chat.accept_answer(services, agent, question)
            return responses.build(agent.agent_id, settings, message_id, status="queued")
        if not data.stream:
            reply = await chat.answer(services, agent, question, connection)
            response = responses.from_reply(agent.agent_id, settings, reply)
            return Response(response, headers=headers)  # type: ignore[return-value]  # as below
        events = await chat.stream(services, agent, question, connection)
        encoded = response_stream.encode_events(agent.agent_id, settings, events)
        return EventStream(encoded, headers)  # type: ignore[return-value]  # documented as above

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        """Allows every site here; the request itself names the agent, and its key the sites."""
        return Response(None, status_code=204, headers=cors.preflight_headers(request))


class StoredResponseController(Controller):
    path = "/v1/responses/{response_id:str}"
    tags = ["OpenAI-compatible"]
    # A key's own responses are answers of its agents.
    opt = {"signed_in": True, "checks_agent": True}

    @get(summary="Get a response")
    async def get_response(
        self,
        context: Context,
        response_id: Id,
        *,
        stream: Annotated[
            bool, Parameter(description="Must be false: events are not kept")
        ] = False,
    ) -> ResponseObject:
        """One of your own. A response in the background has the status `queued` or `in_progress`
        until it ends.
        """
        if stream:
            raise Invalid.field("stream", "must be false: events are not kept")
        return responses.from_answer(await _load(context, response_id))

    @post("/cancel", summary="Cancel a response", status_code=200, idempotent=False)
    async def cancel_response(self, context: Context, response_id: Id) -> ResponseObject:
        """Stops a response in the background; one that has ended stays as it is."""
        await chat.cancel_answer(context, await _load(context, response_id))
        return responses.from_answer(await _load(context, response_id))

    @delete(summary="Delete a response", status_code=200)
    async def delete_response(self, context: Context, response_id: Id) -> DeletedResponse:
        """Deletes the answer and its question; what else the conversation has stays."""
        await chat.delete_answer(context, await _load(context, response_id))
        return DeletedResponse(response_id)


async def _load(context: Context, response_id: str) -> ClientAnswer:
    speaker, message_id = Speaker(context.principal.user_id), responses.message_id_of(response_id)
    answer = await chat.find_answer(context.tx, speaker, message_id)
    if answer is None:
        raise responses.not_found(response_id)
    return answer
