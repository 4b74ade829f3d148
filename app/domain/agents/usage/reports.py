"""Builds the report on a tenant's usage in a period."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec

from app.context import RequestContext
from app.domain.area import Areas
from app.domain.platform.storage import api as storage
from app.kit import clock
from app.security.plans import plan_of
from db.fast import Row, tenant_of

from . import headroom, summary_queries
from .schemas import AgentUsage, DayUsage, ModelUsage, UsagePeriod, UsageReport, UsageSums
from .summary_queries import BY_AGENT, BY_DATE, BY_MODEL, KINDS, MODEL_SUMS, TOTAL

_DAYS: Final = {"7d": 7, "30d": 30, "90d": 90}
_HOURS: Final = 24
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMALS: Final = 6
_NO_USAGE: Final[dict[str, Any]] = dict.fromkeys((*MODEL_SUMS, *KINDS), 0)


async def build_report(
    context: RequestContext, period: UsagePeriod, agent_id: str | None, model: str | None
) -> UsageReport:
    """The limits are those of the caller's own tenant, or of the one that super_admin selected."""
    tx, tenant_id = context.tx, context.principal.home
    # Before the transaction takes a connection.
    state = await headroom.read_state(context.services.redis, tenant_id)
    now = clock.now()
    unit, since = _find_start(period, now)
    rows = await summary_queries.read_summary(
        tx, tenant_of(tx), unit, since or _FIRST, agent_id, model, tenant_id
    )
    load = await context.services.get(Areas).load_executions(tx, tenant_id)
    stored = await storage.get_limit(tx, tenant_id)
    total = next(row for row in rows if row["level"] == TOTAL)
    plan = plan_of(total["plan"], msgspec.json.decode(total["limits"]))
    hidden = _list_hidden(agent_id, model)
    return UsageReport(
        period=period,
        since=since,
        totals=UsageSums(**_build_sums(total, total["cost_usd"], hidden)),
        by_day=_build_days(_rows_of(rows, BY_DATE), since, now, hidden),
        by_agent=[
            AgentUsage(
                agent_id=row["agent_id"],
                agent_name=row["agent_name"],
                **_build_sums(row, row["cost_usd"], hidden, ("tool_executions",)),
            )
            for row in _rows_of(rows, BY_AGENT)
        ],
        by_model=[
            ModelUsage(model=row["model"], **_build_sums(row, row["cost_usd"], hidden, ()))
            for row in _rows_of(rows, BY_MODEL)
        ],
        limits=headroom.build_limits(total["plan"], plan, state, load, stored),
    )


def _find_start(
    period: UsagePeriod, now: datetime
) -> tuple[Literal["hour", "day"], datetime | None]:
    """A period has whole hours or days in UTC, the current one included. Returns that unit, and
    None as the start of all time.
    """
    now = now.astimezone(UTC)
    if period == "24h":
        hour = now.replace(minute=0, second=0, microsecond=0)
        return "hour", hour - timedelta(hours=_HOURS - 1)
    if period == "all_time":
        return "day", None
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return "day", day - timedelta(days=_DAYS[period] - 1)


def _list_hidden(agent_id: str | None, model: str | None) -> set[str]:
    """Returns what is not counted by the agent or the model that was asked for."""
    if model is not None:
        return set(KINDS)
    return {"requests", "workflow_executions"} if agent_id is not None else set()


def _rows_of(rows: Iterable[Row], level: int) -> list[Row]:
    return [row for row in rows if row["level"] == level]


def _build_sums(
    row: Row | dict[str, Any],
    cost: Decimal | None,
    hidden: set[str],
    kinds: tuple[str, ...] = KINDS,
) -> dict[str, Any]:
    prompt_tokens, completion_tokens = (
        int(row["prompt_tokens"] or 0),
        int(row["completion_tokens"] or 0),
    )
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "cost_usd": float(round(cost or Decimal(), _DECIMALS)),
        "conversations": int(row["conversations"] or 0),
        **{kind: None if kind in hidden else int(row[kind] or 0) for kind in kinds},
    }


def _build_days(
    rows: list[Row], since: datetime | None, now: datetime, hidden: set[str]
) -> list[DayUsage]:
    """Returns the days in order; all time has only days with usage. Each cost is rounded so that
    the sum of the days is the rounded total.
    """
    rows_by_date: dict[date, Any] = {}
    if since is not None:
        count = (now.astimezone(UTC).date() - since.date()).days + 1
        rows_by_date = dict.fromkeys(
            (since.date() + timedelta(days=number) for number in range(count)), _NO_USAGE
        )
    rows_by_date |= {row["date"]: row for row in rows}
    days, total, rounded = [], Decimal(), Decimal()
    for day, row in sorted(rows_by_date.items()):
        total += row["cost_usd"]
        cost = round(total, _DECIMALS) - rounded
        rounded += cost
        days.append(DayUsage(date=day, **_build_sums(row, cost, hidden)))
    return days
