from litestar import Controller, post
from litestar.params import JSONBody

from app.http.dependencies import HttpRequest, Id, Principal, Services

from . import evaluations
from .evaluation_schemas import RetrievalEvaluation, RetrievalEvaluationRequest
from .evaluations import EvaluationLimit


class EvaluationController(Controller):
    path = "/api/v1/agents/{agent_id:str}/evaluations"
    tags = ["Knowledge"]

    @post(
        "/retrieval",
        summary="Evaluate the search",
        needs="agents:write",
        status_code=200,
        idempotent=False,
        stops_when_gone=True,
    )
    async def evaluate_retrieval(
        self,
        request: HttpRequest,
        services: Services,
        principal: Principal,
        agent_id: Id,
        data: JSONBody[RetrievalEvaluationRequest],
    ) -> RetrievalEvaluation:
        """Asks up to 200 questions of the agent's documents and says how well the right passages
        are found, today and with changed settings. No model answers. A tenant runs one evaluation
        at a time. It costs 1 unit of the rate limit for 10 questions, and 2 with changed settings.
        """
        evaluation = await evaluations.prepare(services, principal, agent_id, data)
        async with services.get(EvaluationLimit).hold(evaluation.tenant_id):
            gate, state = request.app.state.gate, request.scope["state"]
            await gate.charge_caller(state, principal, evaluation.plan, evaluation.units)
            return await evaluations.run(services, evaluation)
