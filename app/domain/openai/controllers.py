from litestar import Controller, HttpMethod, Response, get, post, route
from litestar.params import JSONBody

from app.domain.agents import brain as brains
from app.domain.agents import service as agents
from app.domain.agents.brain import Brain
from app.domain.chat import turn
from app.domain.chat.keep import WebKeeper
from app.domain.chat.turn import Who
from app.domain.embed import admission
from app.domain.openai import completions
from app.domain.openai.completions import Completion, CompletionRequest, ModelCard, ModelCards
from app.http.given import HttpRequest, Parts
from app.http.sse import EventStream
from app.security.principal import principal_of


class OpenAiController(Controller):
    """With a sign-in or an embed key as the client's `api_key`."""

    path = "/v1"
    tags = ["OpenAI-compatible"]  # noqa: RUF012  # litestar's own type
    # Who calls was found out before, by either; each handler asks what it opens.
    opt = {"public": True, "keyed": "either"}  # noqa: RUF012

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
        self, parts: Parts, request: HttpRequest, data: JSONBody[CompletionRequest]
    ) -> Completion:
        """`model` is an agent's id. Point a stock OpenAI client here by its base URL
        (`…/v1`), with an access token or an embed key as its API key; `stream` works, too.
        """
        brain, who = await _caller(parts, request, data.model)
        begun = await completions.begin(parts, brain, who, data)
        live = bool(data.stream)
        steps = turn.run(parts, begun, WebKeeper(parts, begun, live=live), live=live)
        if who.embed_key_id is not None:
            steps = admission.in_public(steps)
        if live:
            with_usage = data.stream_options is not None and data.stream_options.include_usage
            source = completions.chunks(begun, steps, with_usage=with_usage)
            return EventStream(source)  # type: ignore[return-value]  # the documented shape is above
        return completions.completion(brain.agent_id, await turn.reply_of(steps))

    @get("/models", summary="List agents as models", needs="agents:read", errors=(404,))
    async def list_models(self, parts: Parts, request: HttpRequest) -> ModelCards:
        """The agents that can be chatted with; with an embed key, its own alone."""
        if admission.keyed(request):
            admitted = admission.admit(request, None)
            brain = admitted.brain
            return ModelCards("list", [ModelCard(brain.agent_id, "model", 0, brain.name)])
        principal = principal_of(request)
        async with parts.db.tx(principal.scope, read_only=True) as tx:
            found = await agents.usable(tx)
        cards = [
            ModelCard(agent.id, "model", int(agent.created_at.timestamp()), agent.name)
            for agent in found
        ]
        return ModelCards("list", cards)

    # By its name the first of this class: litestar answers OPTIONS itself where nobody did before.
    @route(
        ["/chat/completions", "/models"],
        http_method=[HttpMethod.OPTIONS],
        include_in_schema=False,
        status_code=204,
        keyed=None,
    )
    async def answer_preflight(self, request: HttpRequest) -> Response[None]:
        """Which site may use which agent is told by the request itself, when it names one."""
        return Response(None, status_code=204, headers=admission.welcome(request))


async def _caller(parts: Parts, request: HttpRequest, agent_id: str) -> tuple[Brain, Who]:
    if admission.keyed(request):
        admitted = admission.admit(request, agent_id)
        await admission.check_model(parts, admitted.brain)
        return admitted.brain, Who(embed_key_id=admitted.embed_key_id)
    principal = principal_of(request)
    async with parts.db.tx(principal.scope, read_only=True) as tx:
        brain = await brains.load(tx, parts.keyring, agent_id)
    await parts.models.check(brain.target)
    return brain, Who(principal.user_id)
