import msgspec
from litestar import Controller, HttpMethod, Response, get, post, route
from litestar.params import JSONBody

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import Question, Speaker
from app.domain.conversations.embed import api as embed
from app.http import cors
from app.http.authorization import principal_of
from app.http.dependencies import HttpRequest, Services
from app.http.disconnect import while_connected
from app.http.sse import EventStream

from . import service
from .schemas import Completion, CompletionRequest, ModelCard, ModelCards


class OpenAiController(Controller):
    """OpenAI-compatible routes. The client's `api_key` is an access token or an embed key."""

    path = "/v1"
    tags = ["OpenAI-compatible"]
    # The token or key is authenticated before the handler; the handler authorizes the agent.
    opt = {"keyed": "either", "open_body": True}

    @post(
        "/chat/completions",
        summary="Chat in OpenAI's wire format",
        needs="agents:chat",
        cost="chat",
        status_code=200,
        idempotent=False,
        errors=(404, 502),
    )
    async def create_completion(
        self, services: Services, request: HttpRequest, data: JSONBody[CompletionRequest]
    ) -> Completion:
        """`model` is an agent's id. Point a stock OpenAI client here by its base URL
        (`…/v1`), with an access token or an embed key as its API key; `stream` works, too.
        """
        agent, question = await _load_agent_and_question(services, request, data)
        if not data.stream:
            reply = await chat.answer(services, agent, question, while_connected(request))
            return service.to_completion(agent.agent_id, reply)
        events = await chat.stream(services, agent, question)
        with_usage = data.stream_options is not None and data.stream_options.include_usage
        chunks = service.encode_chunks(agent.agent_id, events, with_usage=with_usage)
        return EventStream(chunks)  # type: ignore[return-value]  # the documented shape is above

    @get("/models", summary="List agents as models", needs="agents:read", errors=(404,))
    async def list_models(self, services: Services, request: HttpRequest) -> ModelCards:
        """The agents that can be chatted with; with an embed key, only its own agent."""
        if embed.has_key(request):
            runtime = embed.agent_of(request, None).runtime
            return ModelCards("list", [ModelCard(runtime.agent_id, "model", 0, runtime.name)])
        principal = principal_of(request)
        async with services.db.tx(principal.scope, autocommit=True) as tx:
            rows = await agents.list_usable(tx)
        cards = [
            ModelCard(row["id"], "model", int(row["created_at"].timestamp()), row["name"])
            for row in rows
        ]
        return ModelCards("list", cards)

    # The name must sort first in this class: litestar adds its own OPTIONS handler to a path that
    # has none yet.
    @route(
        ["/chat/completions", "/models"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        public=True,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        """Allows every site here; the request itself names the agent, and its key the sites."""
        return Response(None, status_code=204, headers=cors.preflight_headers(request))


async def _load_agent_and_question(
    services: Services, request: HttpRequest, data: CompletionRequest
) -> tuple[AgentRuntime, Question]:
    if embed.has_key(request):
        agent = embed.agent_of(request, data.model)
        question = service.to_question(Speaker(embed_key_id=agent.embed_key_id), data)
        on_tokens = await embed.start_use(services, agent)
        return agent.runtime, msgspec.structs.replace(question, on_tokens=on_tokens)
    principal = principal_of(request)
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, data.model)
    return runtime, service.to_question(Speaker(principal.user_id), data)
