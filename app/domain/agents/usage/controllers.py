from typing import Annotated

from litestar import Controller, get
from litestar.params import QueryParameter

from app.http.dependencies import Context, Tx
from app.http.paging import From, To, parse_time

from .limits import build_limits_report
from .reports import build_report
from .schemas import LimitsReport, UsagePeriod, UsageReport
from .series import SeriesPeriod, SeriesQuery, build_series
from .series_queries import GroupBy, Interval, Measure
from .series_schemas import UsageSeries

_AgentId = Annotated[
    str | None, QueryParameter(max_length=64, description="Only what this agent used")
]
_Model = Annotated[str | None, QueryParameter(max_length=200, description="Only this model")]
_GroupBy = Annotated[GroupBy, QueryParameter(description="`key` is a service key or an embed key")]
_Interval = Annotated[
    Interval | None,
    QueryParameter(description="Chosen by the length of the period, if it is left out"),
]
_SeriesPeriod = Annotated[
    SeriesPeriod | None,
    QueryParameter(description="Ends now; 30d if neither this nor `from` is set"),
]
_Top = Annotated[int, QueryParameter(ge=1, le=20, description="How many groups are listed")]
_Measure = Annotated[Measure, QueryParameter(description="Which groups come first")]


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
        agent_id: _AgentId = None,
        model: _Model = None,
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

    @get("/series", summary="Get usage over time", needs="usage:read")
    async def get_usage_series(  # noqa: PLR0913  # the parameters of the route
        self,
        *,
        tx: Tx,
        group_by: _GroupBy = "none",
        interval: _Interval = None,
        period: _SeriesPeriod = None,
        since: From = None,
        until: To = None,
        agent_id: _AgentId = None,
        model: _Model = None,
        top: _Top = 5,
        measure: _Measure = "cost_usd",
    ) -> UsageSeries:
        """Requests, turns, tokens, cost and conversations by hour, day or month in UTC, in all or
        by agent, model, user, key or source. The period is widened to whole buckets, of which there
        are at most 750; hours go back 31 days.

        `cost_usd` is 0 for models whose price is not known. Requests are counted in all, by user
        and by key. A call that no user or key has made, for example one of a workflow, belongs to
        the group without an id.
        """
        query = SeriesQuery(
            group_by=group_by,
            interval=interval,
            period=period,
            since=parse_time("from", since),
            until=parse_time("to", until),
            agent_id=agent_id,
            model=model,
            top=top,
            measure=measure,
        )
        return await build_series(tx, query)

    @get("/limits", summary="Get limits and what remains", needs="usage:read")
    async def get_usage_limits(self, context: Context) -> LimitsReport:
        """The limits of the plan, those of visitors, the storage quota, the rows of data tables and
        the daily budgets of embed keys: how much is used and how much remains. Those of the
        caller's own tenant, or of the one that X-Tenant-ID selects.
        """
        return await build_limits_report(context)
