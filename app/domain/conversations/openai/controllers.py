from collections.abc import Collection

from litestar import Controller, HttpMethod, Response, get, post, route
from litestar.params import JSONBody

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.conversations.chat import api as chat
from app.domain.conversations.embed import api as embed
from app.http import cors
from app.http.authorization import principal_of
from app.http.dependencies import HttpRequest, Id, Services
from app.http.disconnect import while_connected
from app.http.sse import EventStream
from db.fast import Row
from db.session import Scope

from . import completions
from .completions import CompletionForm
from .questions import load_caller
from .schemas import Completion, CompletionRequest, ModelCard, ModelCards

# Images come as data URLs.
MAX_BODY_BYTES = 8 * 1024 * 1024


class OpenAiController(Controller):
    """OpenAI-compatible routes. The client's `api_key` is an access token or an embed key."""

    path = "/v1"
    tags = ["OpenAI-compatible"]
    # The token or key is authenticated before the handler; the handler authorizes the agent.
    opt = {"keyed": "either", "open_body": True, "checks_agent": True}

    @post(
        "/chat/completions",
        summary="Chat in OpenAI's wire format",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent=False,
        errors=(400, 404, 409, 502),
        events=completions.EVENTS,
        request_max_body_size=MAX_BODY_BYTES,
    )
    async def create_completion(
        self, services: Services, request: HttpRequest, data: JSONBody[CompletionRequest]
    ) -> Completion:
        """`model` is an agent's id. Point a stock OpenAI client here by its base URL
        (`…/v1`), with an access token or an embed key as its API key; `stream` works, too.
        Parameters that cannot be honoured are refused with 422.
        """
        caller = await load_caller(services, request, data.model)
        question = await completions.build_question(services, caller, data)
        headers = caller.max_tokens_headers(completions.max_tokens(data))
        form, connection = CompletionForm.of(caller, data), while_connected(request)
        agent = caller.runtime
        if not data.stream:
            reply = await chat.answer(services, agent, question, connection)
            completion = completions.to_completion(form, reply)
            return Response(completion, headers=headers)  # type: ignore[return-value]  # as below
        events = await chat.stream(services, agent, question, connection)
        with_usage = data.stream_options is not None and data.stream_options.include_usage
        chunks = completions.encode_chunks(form, events, with_usage=with_usage)
        return EventStream(chunks, headers)  # type: ignore[return-value]  # documented as above

    @get("/models", summary="List agents as models", needs="agents:read", errors=(404,))
    async def list_agent_models(self, services: Services, request: HttpRequest) -> ModelCards:
        """The agents that can be chatted with; with an embed key, only its own agent."""
        return ModelCards("list", await _list_cards(services, request))

    @get(
        "/models/{model_id:str}",
        summary="Get an agent as a model",
        needs="agents:read",
        errors=(404,),
    )
    async def get_agent_model(
        self, services: Services, request: HttpRequest, model_id: Id
    ) -> ModelCard:
        cards = await _list_cards(services, request, model_id)
        if not cards:
            raise AgentNotFound(f"There is no agent {model_id[:64]} to chat with")
        return cards[0]

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        ["/chat/completions", "/models", "/models/{model_id:str}"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        """Allows every site here; the request itself names the agent, and its key the sites."""
        return Response(None, status_code=204, headers=cors.preflight_headers(request))


async def _list_cards(
    services: Services, request: HttpRequest, agent_id: str | None = None
) -> list[ModelCard]:
    if embed.has_key(request):
        runtime = embed.agent_of(request, agent_id).runtime
        scope: Scope = runtime.tenant_id
        agent_ids: Collection[str] | None = [runtime.agent_id]
    else:
        principal = principal_of(request)
        scope, agent_ids = principal.scope, principal.agent_ids
        if agent_id is not None:
            agent_ids = [agent_id] if principal.may_use_agent(agent_id) else []
    async with services.db.tx(scope, autocommit=True) as tx:
        return [_card(row) for row in await agents.list_usable(tx, agent_ids)]


def _card(row: Row) -> ModelCard:
    created = int(row["created_at"].timestamp())
    return ModelCard(row["id"], "model", created, row["tenant_id"], row["name"])
