from typing import Annotated

from litestar import Controller, get
from litestar.params import QueryParameter

from app.http.dependencies import Context

from .reports import build_report
from .schemas import UsagePeriod, UsageReport


class UsageController(Controller):
    path = "/api/v1/usage"
    tags = ["Usage"]

    @get(summary="Get usage, cost and limits", needs="usage:read")
    async def get_usage(
        self,
        context: Context,
        period: Annotated[
            UsagePeriod,
            QueryParameter(description="Hours or days in UTC, with the current one"),
        ] = "30d",
        agent_id: Annotated[
            str | None, QueryParameter(max_length=64, description="Only what this agent used")
        ] = None,
        model: Annotated[
            str | None, QueryParameter(max_length=200, description="Only usage of this model")
        ] = None,
    ) -> UsageReport:
        """Tokens, cost, requests and executions, in all, by day, by agent and by model, and what
        remains of the plan's limits. `24h` has the current hour and the 23 before it; `7d`, `30d`
        and `90d` have today and the 6, 29 or 89 days before it, each listed; `all_time` lists the
        days with usage. `by_agent` and `by_model` have the 50 with the highest cost, or else the
        most tokens.

        A request counts when the rate limiter admitted it, and within seconds; an execution of a
        workflow when it starts, and a run of a tool when it ends. With a filter, what is not
        counted by agent or model is null. Calls without an agent, such as those of
        `/v1/embeddings`, are in the totals and by model.
        """
        return await build_report(context, period, agent_id, model)
