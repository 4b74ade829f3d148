"""Statistics of a tool's executions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.services import Services
from tests.agents.tools.execution_requests import ECHO, fetch_value, get_tool, insert_execution
from tests.agents.tools.factories import ToolClient, create_tool_client
from tests.assertions import refused
from tests.world import World


@pytest.fixture
async def tools(world: World) -> ToolClient:
    return await create_tool_client(world)


async def _get_stats(tools: ToolClient, tool_id: str, **params: Any) -> dict[str, Any]:
    answer = await tools.client.get(f"/v1/tools/{tool_id}/stats", params=params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data"}
    stats: dict[str, Any] = answer.json()["data"]
    return stats


async def test_the_stats_of_an_unused_tool_are_zeros(tools: ToolClient) -> None:
    tool_id = await tools.create("function", ECHO)
    stats = await _get_stats(tools, tool_id)
    days = stats.pop("daily_breakdown")
    assert stats == {
        "tool_id": tool_id,
        "period": "7d",
        "total_executions": 0,
        "successful": 0,
        "failed": 0,
        "success_rate": 0.0,
        "avg_execution_time_ms": 0.0,
        "p95_execution_time_ms": 0.0,
        "p99_execution_time_ms": 0.0,
        "top_agents": [],
    }
    assert len(days) == 8
    assert all((day["executions"], day["failures"]) == (0, 0) for day in days)


async def test_stats_cover_their_period(
    tools: ToolClient, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, str], str, int]] = [
        ({"period": "24h"}, "24h", 1),
        ({"period": "7d"}, "7d", 3),
        ({"period": "30d"}, "30d", 5),
        ({"period": "90d"}, "90d", 7),
        ({}, "7d", 3),
    ]
    tool_id, now = await tools.create("function", ECHO), datetime.now(UTC)
    # Just inside and just outside of each period; the latter is inside of the next period.
    for days in (1, 7, 30, 90):
        for minutes in (-5, 5):
            at = now - timedelta(days=days, minutes=minutes)
            await insert_execution(services, tools, tool_id, at)
    for params, period, total in cases:
        with subtests.test(params=params):
            stats = await _get_stats(tools, tool_id, **params)
            assert (stats["period"], stats["total_executions"]) == (period, total)
            assert sum(day["executions"] for day in stats["daily_breakdown"]) == total


async def test_percentiles_are_those_of_postgres(tools: ToolClient, services: Services) -> None:
    tool_id, now = await tools.create("function", ECHO), datetime.now(UTC)
    times = [5, 17, 17, 80, 123, 250, 251, 900, 1800, 9999, 42]
    for ms in times:
        await insert_execution(services, tools, tool_id, now - timedelta(hours=1), ms=ms)
    stats = await _get_stats(tools, tool_id)
    for name, share in (("p95", 0.95), ("p99", 0.99)):
        sql = "SELECT percentile_cont($2) WITHIN GROUP (ORDER BY ms) FROM unnest($1::int[]) ms"
        expected = await fetch_value(services, sql, times, share)
        assert stats[f"{name}_execution_time_ms"] == round(expected, 1)
    assert stats["avg_execution_time_ms"] == round(sum(times) / len(times), 1)


async def test_the_success_rate_is_a_percentage(tools: ToolClient, services: Services) -> None:
    tool_id, now = await tools.create("function", ECHO), datetime.now(UTC)
    for status in ("completed", "completed", "failed", "timeout", "completed", "completed"):
        await insert_execution(services, tools, tool_id, now - timedelta(hours=1), status=status)
    await insert_execution(services, tools, tool_id, now, status="running", finished=False)
    stats = await _get_stats(tools, tool_id)
    assert (stats["total_executions"], stats["successful"], stats["failed"]) == (6, 4, 2)
    assert stats["success_rate"] == 66.67
    usage = (await get_tool(tools, tool_id))["usage_stats"]
    assert (usage["total_executions"], usage["success_rate"]) == (6, 66.67)


async def test_days_are_utc_days(tools: ToolClient, services: Services) -> None:
    tool_id = await tools.create("function", ECHO)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for at, status in [
        (today - timedelta(seconds=1), "completed"),
        (today - timedelta(days=1), "failed"),
        (today - timedelta(days=1, seconds=1), "timeout"),
        (today, "completed"),
    ]:
        await insert_execution(services, tools, tool_id, at, status=status)
    days = (await _get_stats(tools, tool_id))["daily_breakdown"]
    dates = [(today - timedelta(days=back)).strftime("%Y-%m-%d") for back in range(7, -1, -1)]
    assert [day["date"] for day in days] == dates
    counts = [(day["executions"], day["failures"]) for day in days[-3:]]
    assert counts == [(1, 1), (2, 1), (1, 0)]


async def test_the_agents_with_the_most_runs_are_listed(
    tools: ToolClient, services: Services
) -> None:
    tool_id, now = await tools.create("function", ECHO), datetime.now(UTC)
    often, seldom = await tools.create_agent(), await tools.create_agent()
    await tools.client.put(f"/api/v1/agents/{often}", {"name": "Often"})
    for agent_id, times in ((often, 3), (seldom, 1), (None, 5)):
        for _ in range(times):
            await insert_execution(
                services, tools, tool_id, now - timedelta(hours=1), agent_id=agent_id
            )
    assert (await _get_stats(tools, tool_id))["top_agents"] == [
        {"agent_id": often, "agent_name": "Often", "executions": 3},
        {"agent_id": seldom, "agent_name": "Agent", "executions": 1},
    ]


async def test_a_deleted_agent_still_counts(tools: ToolClient, services: Services) -> None:
    tool_id, agent_id = await tools.create("function", ECHO), await tools.create_agent()
    await insert_execution(services, tools, tool_id, datetime.now(UTC), agent_id=agent_id)
    await tools.client.delete(f"/api/v1/agents/{agent_id}")
    top = (await _get_stats(tools, tool_id))["top_agents"]
    assert top == [{"agent_id": agent_id, "agent_name": "", "executions": 1}]


async def test_an_unknown_period_is_refused(tools: ToolClient, subtests: pytest.Subtests) -> None:
    tool_id = await tools.create("function", ECHO)
    for period in ("1h", "all_time", "", "7D"):
        with subtests.test(period=period):
            answer = await tools.client.get(f"/v1/tools/{tool_id}/stats", params={"period": period})
            assert "period" in refused(answer, 422, "validation_error")["details"]
