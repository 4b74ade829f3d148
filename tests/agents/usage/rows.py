"""Rows of usage for tests: what turns, executions and requests would store."""

from datetime import datetime
from typing import Any

from app.domain.agents.usage.request_counter import RequestCounter
from app.kit.ids import new_id
from app.services import Services
from tests.database import run_sql
from tests.world import Client

_ADD_USAGE = """
INSERT INTO usage (tenant_id, agent_id, conversation_id, message_id, source, model, prompt_tokens,
                   completion_tokens, cost_usd, turns, conversations, messages, response_time_ms,
                   created_at)
VALUES ($1, $2, '', $3, 'console', $4, $5, $6, $7::text::numeric, 1, $8, 2, 100,
        coalesce($9, now()))
"""
_ADD_COUNT = """
INSERT INTO usage_counts (tenant_id, kind, id, agent_id, created_at)
VALUES ($1, $2, $3, $4, coalesce($5, now()))
"""


async def add_usage(
    services: Services,
    tenant_id: str,
    *,
    agent_id: str | None = None,
    model: str = "acme/one",
    tokens: tuple[int, int] = (10, 1),
    cost: str = "0",
    conversations: int = 0,
    at: datetime | None = None,
) -> None:
    """The agent does not exist any more. No two tenants have one with the same id."""
    agent_id = agent_id or f"agt_{tenant_id}"
    values = (agent_id, new_id("msg"), model, *tokens, cost, conversations, at)
    await run_sql(services, _ADD_USAGE, tenant_id, *values)


async def add_count(
    services: Services,
    tenant_id: str,
    kind: str = "tool_executions",
    *,
    agent_id: str = "",
    at: datetime | None = None,
) -> None:
    await run_sql(services, _ADD_COUNT, tenant_id, kind, new_id("exe"), agent_id, at)


async def get_usage(client: Client, **params: str) -> dict[str, Any]:
    answer = await client.get("/api/v1/usage", params=params)
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


async def store_requests(services: Services) -> None:
    await services.get(RequestCounter).store()


def sum_days(report: dict[str, Any]) -> dict[str, Any]:
    """Returns the sums of all days, as the totals have them."""
    names = report["totals"].keys()
    sums = {name: sum(day[name] for day in report["by_day"]) for name in names}
    return sums | {"cost_usd": round(sums["cost_usd"], 6)}
